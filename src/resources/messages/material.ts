import type { MessageRow } from "../../db/schema.ts";
import { writtenMoment } from "../../lib/written-moment.ts";
import { decodeWords, mailboxes, type MailHeaders } from "../../mail/reading/headers.ts";
import { allText } from "../../mail/reading/mail-text.ts";
import type { ParsedMail, ParseOutcome } from "../../mail/reading/parse.ts";
import { visibleLine } from "../../trust/own-words/hidden-characters.ts";
import { hasAuthority } from "./authority.ts";

/** The most of a To or Cc field that is shown: a list of hundreds says no more than how many they are. */
const MAX_FIELD_CHARS = 300;

interface Shown {
  headers: MailHeaders;
  /** The account's, in which moments are told. */
  timezone: string;
}

/** Returns the part of a mail that is material, not instruction, with the `texts` of its files. */
export function materialOf(
  message: MessageRow,
  outcome: ParseOutcome,
  { headers, timezone, texts = [] }: Shown & { texts?: string[] },
): string {
  const head = [
    senderLine(message),
    `Subject: ${message.subject ?? ""}`,
    ...dateLine(outcome.ok ? outcome.mail.date : null, timezone),
    ...recipientLines(headers, (field) => listOf(field)),
  ].join("\n");
  const parts = outcome.ok ? [...wordsOf(message, outcome.mail), ...texts] : [outcome.text];
  return [head, ...parts.map((part) => part.trim()).filter(Boolean)].join("\n\n");
}

/** Returns what can be read in a mail beside the instruction. */
export function wordsOf(message: MessageRow, mail: ParsedMail): string[] {
  return hasAuthority(message) ? [mail.rest_text, mail.signature] : [allText(mail)];
}

/**
 * The material of a mail whose words are all its author's. Nothing in it may be words of others, so that of the
 * addresses only those of the run's own people are shown: whoever made up another one, or a name beside it, chose its
 * words.
 */
export function plainMaterialOf(
  message: MessageRow,
  { date }: ParsedMail,
  { headers, timezone, own }: Shown & { own: string[] },
): string {
  const known = new Set([message.sender, ...own]);
  return [
    senderLine(message),
    ...dateLine(date, timezone),
    ...recipientLines(headers, (field) => knownOf(field, known)),
  ].join("\n");
}

function senderLine({ sender }: Pick<MessageRow, "sender">): string {
  return `From: ${sender ?? "unknown"}`;
}

function dateLine(date: number | null, timezone: string): string[] {
  return date === null ? [] : [`Date: ${writtenMoment(date, timezone)}`];
}

function recipientLines(headers: MailHeaders, shown: (field: string) => string): string[] {
  return ["To", "Cc"].flatMap((name) => {
    const field = headers.get(name);
    const words = field === undefined ? "" : shown(field);
    return words === "" ? [] : [`${name}: ${words}`];
  });
}

/** Returns the mailboxes of a field, as many as are shown; an invalid field as it is written. */
function listOf(field: string): string {
  const list = mailboxes(field);
  if (!list.ok) return cut(visibleLine(decodeWords(field)));
  const written = list.mailboxes.map(({ name, address }) =>
    name === "" ? address : `${cut(visibleLine(name))} <${address}>`,
  );
  const shown: string[] = [];
  let room = MAX_FIELD_CHARS;
  for (const one of written) {
    room -= one.length;
    if (room < 0 && shown.length > 0) break;
    shown.push(one);
  }
  return inWords(shown, written.length - shown.length);
}

function knownOf(field: string, known: Set<string | null>): string {
  const list = mailboxes(field);
  const addresses = list.ok ? list.mailboxes.map(({ address }) => address) : [];
  const shown = [...new Set(addresses.filter((address) => known.has(address)))];
  const others = addresses.filter((address) => !known.has(address)).length;
  return inWords(shown, others);
}

function inWords(shown: string[], others: number): string {
  const count = others === 1 ? "1 other, not shown here" : `${others} others, not shown here`;
  return [...shown, ...(others === 0 ? [] : [count])].join(", ");
}

function cut(text: string): string {
  return text.length > MAX_FIELD_CHARS ? `${text.slice(0, MAX_FIELD_CHARS).toWellFormed()}…` : text;
}
