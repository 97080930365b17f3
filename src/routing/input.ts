import type { App } from "../app.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import { type MailHeaders, readHeaders } from "../mail/headers.ts";
import { hiddenInWords, stripHiddenCharacters } from "../mail/hidden-characters.ts";
import type { MailAttachment, ParseOutcome } from "../mail/parse.ts";
import type { IncomingFile } from "../messages/accept.ts";
import { signedHeader, type SignedForm } from "../mail/signed-form.ts";
import { readBytes } from "../messages/stored-bytes.ts";
import { formOf } from "../messages/vouched.ts";
import { lineOfMail, type NamedImage, readMaterial } from "./attachments.ts";
import type { StepDraft } from "./steps.ts";

/** What mail programs put before, around or behind the subject of a mail they answer or pass on. */
const FOREIGN_SUBJECT =
  /\(fwd\)\s*$|^[\s[(]*((re|fwd?|aw|wg|sv|vs|tr|rv|antw|ynt|odp|doorst|vb|res|enc|rif|i|r|fs|vl)\s*(\[\d+\]|\(\d+\))?\s*[:：]|回复|转发|答复|返信|轉寄)/i;
/** The same in languages that the list does not know. */
const ANY_PREFIX = /^[[(]|^[^\s:：]{1,20}(\s[^\s:：]{1,20})?\s*[:：]/iu;
/** The mail's own text holds theirs. */
const ATTACHED_MAIL = /^message\/(rfc822|global)$/;

/** What a run works on: the trusted instruction apart from everything else. */
export interface RunInput {
  /** Empty when no person with authority gave one. */
  instruction: string;
  /** Of a mail; empty unless it is the own words of a person with authority. */
  subject: string;
  content: string;
  files: IncomingFile[];
  /** One line for each file, read or not; untrusted like the content. */
  manifest: string[];
  /** For a model that can see. */
  images: NamedImage[];
  /** What was read of each file. */
  extracted: StepDraft[];
  /** Sentences about what could not be read. */
  warnings: string[];
  /** Of a mail: what its answer needs. */
  headers: MailHeaders | null;
}

/** Instruction and material of a message, from the stored raw mail or from the stored call. */
export async function readInput(app: App, message: MessageRow, signal: AbortSignal): Promise<RunInput> {
  const { raw_mail_id } = message;
  return raw_mail_id === null ? readCall(app, message, signal) : readMail(app, message, raw_mail_id, signal);
}

async function readCall(app: App, message: MessageRow, signal: AbortSignal): Promise<RunInput> {
  const [stored] = await contentOf(app.db, { message_id: message.id });
  const rows = await filesInto(app.db, { message_id: message.id });
  const files: IncomingFile[] = [];
  for (const row of rows) {
    const { filename, content_type } = row;
    files.push({ filename, content_type, bytes: (await readBytes(app, row)) ?? new Uint8Array() });
  }
  const { texts, ...material } = await readMaterial(app, files, { signal, account: message.user_id });
  return {
    instruction: message.instruction ?? "",
    subject: "",
    content: [stored?.content, ...texts].filter(Boolean).join("\n\n"),
    files,
    ...material,
    headers: null,
  };
}

const contentOf = prepared((db, key: { message_id: string }) =>
  db.selectFrom("message_contents").select("content").where("message_id", "=", key.message_id),
);
const filesInto = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("attachments")
    .selectAll()
    .where("message_id", "=", key.message_id)
    .where("direction", "=", "in")
    .orderBy("id"),
);
const rawMailOf = prepared((db, key: { id: string }) =>
  db.selectFrom("raw_mails").selectAll().where("id", "=", key.id),
);

async function readMail(
  app: App,
  message: MessageRow,
  raw_mail_id: string,
  signal: AbortSignal,
): Promise<RunInput> {
  const [stored] = await rawMailOf(app.db, { id: raw_mail_id });
  const raw = stored && (await readBytes(app, stored));
  if (!raw) throw new Error(`The raw mail of message ${message.id} is gone`);
  const form = formOf(message);
  const headers = headersAs(raw, form);
  const outcome = await app.parser.parse(raw, { form, account: message.user_id });
  const subject = message.subject ?? "";
  if (!outcome.ok) {
    const content = materialOf(message, outcome);
    const nothing = { files: [], manifest: [], images: [], extracted: [] };
    return { instruction: "", subject: "", content, ...nothing, warnings: [outcome.message], headers };
  }
  const { new_text, rest_text, attachments, warnings } = outcome.mail;
  const files = attachments.map(toFile);
  const { mails = [], others = [] } = Object.groupBy(files, (file) =>
    ATTACHED_MAIL.test(file.content_type) ? "mails" : "others",
  );
  const { texts, ...material } = await readMaterial(app, others, { signal, account: message.user_id });
  const threaded = rest_text.trim() !== "" || mayAnswer(headers, form);
  const own_subject = outcome.mail.own_subject && isOwnSubject(subject, threaded) ? subject : "";
  return {
    ...trustedWords(message, { new_text, own_subject }),
    content: materialOf(message, outcome, texts),
    files,
    ...material,
    manifest: [...material.manifest, ...mails.map(lineOfMail)],
    warnings: [
      ...replayWarnings(message),
      ...warnings,
      ...hiddenWarnings(outcome.mail),
      ...material.warnings,
    ],
    headers,
  };
}

/** The header as it came, or what of it is in a signed form. */
function headersAs(raw: Uint8Array, form: SignedForm | undefined): MailHeaders {
  const headers = readHeaders(raw);
  return form ? readHeaders(signedHeader(raw, headers.fields, form)) : headers;
}

/** Whether the mail answers another one, or could have before somebody took out what is not signed. */
function mayAnswer(headers: MailHeaders, form: SignedForm | undefined): boolean {
  return ["in-reply-to", "references"].some(
    (name) => headers.get(name) !== undefined || (form && !form.fields.includes(name)),
  );
}

/** Decision G: the new words of a sender with authority; the subject instead, if it is the sender's own and there are none. */
function trustedWords(
  message: MessageRow,
  { new_text, own_subject }: { new_text: string; own_subject: string },
): { instruction: string; subject: string } {
  if (!hasAuthority(message)) return { instruction: "", subject: "" };
  const subject = stripHiddenCharacters(own_subject).text.trim();
  return { instruction: new_text.trim() || subject, subject };
}

function hasAuthority({ authority }: MessageRow): boolean {
  return authority === "owner" || authority === "listed";
}

/** What of a mail is material and no instruction, the `texts` of its files included. */
export function materialOf(message: MessageRow, outcome: ParseOutcome, texts: string[] = []): string {
  const head = { subject: message.subject ?? "", sender: message.sender };
  if (!outcome.ok) return describe({ ...head, parts: [outcome.text] });
  const { new_text, rest_text } = outcome.mail;
  return describe({ ...head, parts: [...(hasAuthority(message) ? [] : [new_text]), rest_text, ...texts] });
}

/** Whether the sender wrote the subject; of a mail that belongs to another one, only if nothing speaks against it. */
function isOwnSubject(subject: string, threaded: boolean): boolean {
  const visible = stripHiddenCharacters(subject).text.trim();
  return !FOREIGN_SUBJECT.test(visible) && !(threaded && ANY_PREFIX.test(visible));
}

function describe(mail: { subject: string; sender: string | null; parts: string[] }): string {
  const head = [`From: ${mail.sender ?? "unknown"}`, `Subject: ${mail.subject}`].join("\n");
  return [head, ...mail.parts.map((part) => part.trim()).filter(Boolean)].join("\n\n");
}

function replayWarnings(message: MessageRow): string[] {
  const auth = JSON.parse(message.auth ?? "{}") as { vouched?: boolean; undated?: boolean };
  if (auth.vouched !== false) return [];
  return [auth.undated === true ? UNDATED : UNVOUCHED];
}

const UNVOUCHED =
  "Read as material, not as an instruction: the mail did not come straight from the sender's own mail server, and no signature covers all of its header fields that matter and names this inbox. Send it straight to the inbox from the sender's own address.";

const UNDATED =
  "Read as material, not as an instruction: the mail did not come straight from the sender's own mail server, and its Date is missing, ahead of the clock or more than a year old, so that it may be an old mail that somebody sends again. Write it anew, or see that the clock of the computer it was written on is right.";

function hiddenWarnings(mail: { hidden_characters: number; hidden_html: number }): string[] {
  const warnings: string[] = [];
  if (mail.hidden_characters > 0)
    warnings.push(`${hiddenInWords(mail.hidden_characters)} taken out of the mail.`);
  if (mail.hidden_html > 0)
    warnings.push(`${mail.hidden_html} hidden parts were taken out of the mail's HTML.`);
  return warnings;
}

function toFile({ filename, content_type, bytes }: MailAttachment): IncomingFile {
  return { filename, content_type, bytes };
}
