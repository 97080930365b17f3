import { normalizeEmail } from "../accounts/accounts.ts";
import { findAdministrator } from "../accounts/administrator.ts";
import type { App } from "../../app.ts";
import type { ContactSubmissionRow, UserRow } from "../../db/schema.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { AppError, invalid } from "../../errors.ts";
import { splitAddress } from "../../lib/mail-address.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import type { ContactInput } from "./shapes.ts";
import { DAY_MS, HOUR_SECONDS } from "../../lib/durations.ts";

const MAX_NAME_CHARS = 100;
const MAX_MESSAGE_CHARS = 5_000;
const MAX_SUBJECT_CHARS = 200;
const MAX_TOPIC_CHARS = 100;
/** The shortest time in which a person fills in the form. */
const MIN_FILL_MS = 2_000;
const MAX_FILL_MS = DAY_MS;
/** The longest line of what was written: the text part of a letter puts four blanks in front. */
const LINE_CHARS = 72;
/** What a caller is told to wait while there is no administrator. */
const NO_READER_SECONDS = HOUR_SECONDS;

/** What was written, in its kept form, and what it was taken for. */
export interface Contact extends Pick<
  ContactSubmissionRow,
  "name" | "email" | "message" | "subject" | "topic" | "flag"
> {
  by_form: boolean;
}

/** Checks a submission, and decides whether a machine made it. Throws `validation_error`. `now` is in milliseconds. */
export function checkedContact(input: ContactInput, now: number): Contact {
  return {
    name: checkedText("name", lineOf(input.name), MAX_NAME_CHARS),
    email: normalizeEmail(input.email),
    message: checkedText("message", plainText(input.message), MAX_MESSAGE_CHARS),
    subject: optionalText("subject", input.subject, MAX_SUBJECT_CHARS),
    topic: optionalText("topic", input.topic, MAX_TOPIC_CHARS),
    flag: flagOf(input, now),
    by_form: input.started_at !== undefined,
  };
}

/** The account that is mailed submissions; throws `unavailable` while there is none that would read them. */
export async function contactReader(app: App): Promise<UserRow> {
  const reader = await findAdministrator(app);
  if (reader) return reader;
  throw new AppError(
    "unavailable",
    "This server has no administrator yet, who would read it. Nothing was kept.",
    {
      fix: "Try again later. If you run this server: make its first account, or set auth.admin_email.",
      retry_after_seconds: NO_READER_SECONDS,
    },
  );
}

/**
 * Keeps a submission and mails it to `reader`. What looks like the work of a machine is kept too, but not
 * mailed; its answer, and the work for it, are the same, so that a machine learns nothing.
 */
export async function submitContact(
  app: App,
  contact: Contact,
  { reader, client }: { reader: UserRow; client: string },
) {
  const queue = await prepareContactLetter(app, contact, reader);
  const { by_form: _, ...columns } = contact;
  const row: ContactSubmissionRow = { id: app.newId(), ...columns, client, created: app.now() };
  await app.write(async (tx) => {
    await tx.insertInto("contact_submissions").values(row).execute();
    if (row.flag === null) await queue(tx);
  });
  return { id: row.id, created: row.created, status: "received" as const };
}

/** Why a submission is taken for the work of a machine; null if it is not. */
function flagOf({ website = "", started_at }: ContactInput, now: number): string | null {
  if (website !== "") return "honeypot";
  if (started_at === undefined) return null;
  const taken = now - started_at;
  if (taken < 0) return "started_in_future";
  if (taken < MIN_FILL_MS) return "too_fast";
  return taken > MAX_FILL_MS ? "too_slow" : null;
}

async function prepareContactLetter(app: App, contact: Contact, reader: UserRow): Promise<QueueLetter> {
  // Many mail servers refuse a letter with other letters in its header (RFC 6532).
  const is_plain = /^[\x20-\x7e]*$/.test(contact.email);
  // To an inbox of this server, the administrator's answer would be an instruction.
  const answerable = is_plain && !(await isOwnDomain(app, splitAddress(contact.email).domain));
  const answer = answerable ? "An answer to this mail goes to" : "Answer to";
  return prepareLetter(app, {
    user_id: reader.id,
    to: reader.email,
    subject: `Contact form: ${contact.subject ?? contact.name}`,
    entrusted: true,
    ...(answerable ? { reply_to: contact.email } : {}),
    markdown: [
      `Somebody wrote to you through the contact form of your Mailwright server. ${answer} the address they gave, which nobody has checked.`,
      ...(contact.by_form
        ? []
        : ["It was sent by a program, or by a form that does not say when it was shown."]),
      fenced(letterText(contact)),
    ].join("\n\n"),
  });
}

function letterText({ name, email, subject, topic, message }: Contact): string {
  const fields = { Name: name, "E-mail": email, Subject: subject, Topic: topic };
  const lines = Object.entries(fields).flatMap(([field, value]) => (value ? [`${field}: ${value}`] : []));
  return `${lines.join("\n")}\n\n${message.split("\n").map(wrapped).join("\n")}`;
}

/** A text in a fence, so that nothing in it can become a link or a heading of our letter. */
function fenced(text: string): string {
  const longest = Math.max(0, ...(text.match(/~+/g) ?? []).map((run) => run.length));
  const fence = "~".repeat(Math.max(3, longest + 1));
  return `${fence}\n${text}\n${fence}`;
}

/** Fenced text does not wrap by itself. */
function wrapped(line: string): string {
  const lines: string[] = [];
  for (const word of line.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > LINE_CHARS) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.join("\n");
}

function optionalText(field: string, given: string | undefined, limit: number): string | null {
  const text = lineOf(given ?? "");
  return text === "" ? null : checkedText(field, text, limit);
}

function checkedText(field: string, text: string, limit: number): string {
  if (text === "") throw invalid(`body.${field}`, "too_short", `The ${field} must not be blank.`);
  if (isLongerThan(text, limit))
    throw invalid(`body.${field}`, "too_long", `The ${field} must have at most ${limit} characters.`);
  return text;
}

function lineOf(text: string): string {
  return plainText(text).replaceAll(/[\s\p{Cc}]+/gu, " ");
}

/**
 * A text as it is kept: well-formed, with bare line feeds, and without characters that only steer a terminal or turn
 * text around.
 */
function plainText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/(?![\n\t])\p{Cc}|[\u202A-\u202E\u2066-\u2069]/gu, "")
    .trim();
}
