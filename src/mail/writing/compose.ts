import type MailComposer from "nodemailer/lib/mail-composer";

import { AppError, invalid } from "../../errors.ts";
import { sha256 } from "../../lib/sha256.ts";
import { mailPage } from "./page.ts";
import type { Written } from "./written.ts";
import { MB } from "../../lib/sizes.ts";

export interface OutgoingAttachment {
  filename: string;
  content_type: string;
  bytes: Buffer;
  /** The Content-ID of a picture that the HTML shows. */
  cid?: string;
}

export interface ReplyInput {
  from: { name: string; address: string };
  to: string;
  reply_to?: string;
  /** The envelope sender, to which bounces go; "" is the null reverse-path <>. */
  envelope_from: string;
  /** The subject of the mail that a reply answers, or a notice's own. */
  subject: string;
  in_reply_to?: string;
  references?: string[];
  message_id: string;
  hop: number;
  words: Written;
  /** Notes below the answer, which are kept even if that is cut. */
  notes?: Written;
  /** Encodes the mail; by default on this thread. */
  build?: (parts: MailParts) => Promise<Buffer>;
  /** One line of plain text under the answer. */
  footer?: string;
  attachments?: OutgoingAttachment[];
  date: Date;
  kind: "reply" | "notice";
}

export interface ComposedMail {
  /** The unsigned mail with CRLF line ends. The same input gives the same bytes. */
  raw: Buffer;
  /** The Message-ID without angle brackets. */
  rfc_message_id: string;
  envelope_from: string;
  envelope_to: string;
}

const FOOTER_CHARACTERS = 1_000;
const SUBJECT_CHARACTERS = 250;
const NAME_CHARACTERS = 100;
const FILE_NAME_CHARACTERS = 150;
const ATTACHMENTS_BYTES = 25 * MB;
/** Limit of a Message-ID: lines have at most 998 octets (RFC 5322 §2.1.1), and an id cannot be folded. */
const MESSAGE_ID_OCTETS = 900;
const LAST_REFERENCES = 20;

/** Prefixes of replies and forwards in many languages. */
const SUBJECT_PREFIXES =
  /^(?:(?:re|fwd?|aw|wg|sv|vs|vb|vl|rv|tr|res|enc|rif|antw|odp|pd|ynt|ilt|atb|回复|回覆|答复|转发|轉寄|轉發)\s?(?:\[\d+\]|\(\d+\)|\^\d+)?\s?[:：]\s?)+/i;

/** Builds the mail. Throws an AppError for an address that cannot be in a header, and for attachments over 25 MB. */
export async function composeReply(input: ReplyInput): Promise<ComposedMail> {
  const rfc_message_id = bareId(input.message_id);
  if (rfc_message_id === undefined) {
    throw invalid("message_id", "invalid", "The Message-ID is not of the form left@right.");
  }
  const to = checkedAddress("to", input.to);
  const envelope_from =
    input.envelope_from === "" ? "" : checkedAddress("envelope_from", input.envelope_from);
  const raw = await (input.build ?? buildMail)({
    ...addressFields(input, to),
    ...threadFields(input),
    messageId: `<${rfc_message_id}>`,
    subject:
      input.kind === "reply" ? replySubject(input.subject) : headerText(input.subject, SUBJECT_CHARACTERS),
    date: input.date,
    headers: {
      // RFC 3834 section 5
      "Auto-Submitted": input.kind === "reply" ? "auto-replied" : "auto-generated",
      "X-Auto-Response-Suppress": "All",
      "X-Mailwright-Hop": String(input.hop),
    },
    ...bodyOf(input),
    attachments: attachmentsOf([...(input.attachments ?? []), ...wholeOf(input.words)]),
    baseBoundary: sha256(rfc_message_id, "hex").slice(0, 32),
  });
  return { raw, rfc_message_id, envelope_from, envelope_to: to };
}

export type MailParts = NonNullable<ConstructorParameters<typeof MailComposer>[0]>;

/** Encodes the mail, which takes time for each line. */
export async function buildMail(parts: MailParts): Promise<Buffer> {
  // Loaded with the first mail that is written: its table of file types would be a fiftieth of a start.
  const { default: Composer } = await import("nodemailer/lib/mail-composer");
  return new Composer({ ...parts, newline: "windows", disableFileAccess: true, disableUrlAccess: true })
    .compile()
    .build();
}

/** Returns the subject with one "Re: ", whatever prefixes it had. */
export function replySubject(subject: string): string {
  const bare = headerText(subject, SUBJECT_CHARACTERS).replace(SUBJECT_PREFIXES, "").trim();
  return `Re: ${bare === "" ? "(no subject)" : bare}`;
}

/** Returns the ids a reply refers to (RFC 5322 §3.6.4), without angle brackets: the first and the last twenty. */
export function references(parent_references: string[], parent_id?: string): string[] {
  const ids = [...parent_references, ...(parent_id === undefined ? [] : [parent_id])]
    .map(bareId)
    .filter((id) => id !== undefined);
  // The last of a repeated id counts, so the parent is at the end even if its own References has it.
  const unique = [...new Set(ids.toReversed())].toReversed();
  return unique.length <= LAST_REFERENCES + 1
    ? unique
    : [...unique.slice(0, 1), ...unique.slice(-LAST_REFERENCES)];
}

function addressFields(input: ReplyInput, to: string) {
  const from = {
    name: headerText(input.from.name, NAME_CHARACTERS),
    address: checkedAddress("from.address", input.from.address),
  };
  return {
    from,
    to: { name: "", address: to },
    ...(input.reply_to === undefined
      ? {}
      : {
          replyTo: {
            // Replies to a notice go to somebody else than its sender, so the name is left out.
            name: input.kind === "reply" ? from.name : "",
            address: checkedAddress("reply_to", input.reply_to),
          },
        }),
  };
}

function threadFields(input: ReplyInput) {
  const parent = bareId(input.in_reply_to ?? "");
  const ids = references(input.references ?? []);
  return {
    ...(parent === undefined ? {} : { inReplyTo: `<${parent}>` }),
    ...(ids.length === 0 ? {} : { references: ids.map((id) => `<${id}>`).join(" ") }),
  };
}

function bodyOf({ words, notes, footer: given = "" }: ReplyInput): { text: string; html: string } {
  const footer = headerText(given, FOOTER_CHARACTERS);
  const answer = [words.text, notes?.text ?? ""].filter(Boolean).join("\n\n");
  return {
    text: answer + (footer === "" ? "\n" : `\n\n-- \n${footer}\n`),
    html: mailPage({ answer: words.html, notes: notes?.html ?? "", footer }),
  };
}

function wholeOf({ whole }: Written): OutgoingAttachment[] {
  if (whole === null) return [];
  return [{ filename: "reply.md", content_type: "text/markdown; charset=utf-8", bytes: Buffer.from(whole) }];
}

function attachmentsOf(attachments: OutgoingAttachment[]) {
  const bytes = attachments.reduce((total, attachment) => total + attachment.bytes.length, 0);
  if (bytes > ATTACHMENTS_BYTES) {
    throw new AppError("payload_too_large", "The files of this reply are together larger than 25 MB.");
  }
  return attachments.map(({ filename, content_type, bytes, cid }) => ({
    filename: fileName(filename),
    contentType: isFileType(content_type) ? content_type : "application/octet-stream",
    content: bytes,
    ...(cid === undefined ? {} : { cid }),
  }));
}

function fileName(name: string): string {
  const bare = headerText(name.replaceAll(/[/\\]/g, "_"), FILE_NAME_CHARACTERS);
  return bare === "" ? "attachment" : bare;
}

/**
 * Returns whether a type may be used for an attachment: a message or a multipart cannot be base64-encoded (RFC 2045
 * §6.4), and would be opened as mail.
 */
function isFileType(type: string): boolean {
  return (
    /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+(?:; charset=[a-z0-9-]+)?$/i.test(type) &&
    !/^(?:message|multipart)\//i.test(type)
  );
}

/** Returns a text for a header, without control characters or anything that a reader would decode as an encoded word. */
function headerText(text: string, limit: number): string {
  return text
    .slice(0, limit)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202A-\u202E\u2066-\u2069]+/gu, " ")
    .replaceAll("=?", "= ?")
    .replaceAll(/ {2,}/g, " ")
    .trim();
}

function checkedAddress(path: string, address: string): string {
  if (isAddress(address)) return address;
  throw invalid(path, "invalid", "This is not one mail address of the form name@domain.");
}

function isAddress(text: string): boolean {
  return (
    text.length <= 320 &&
    /^(?:"[^"\\\p{Cc}]*"|[^\s"(),:;<>@[\\\]\p{Cc}]+)@[^\s"(),;<>@\\\p{Cc}]+$/u.test(text)
  );
}

/** Returns a message id without angle brackets; undefined if it is invalid. */
function bareId(id: string): string | undefined {
  const bare = id.trim().replace(/^<(.*)>$/, "$1");
  return bare.length <= MESSAGE_ID_OCTETS && /^[\x21-\x3b\x3d\x3f-\x7e]+$/.test(bare) ? bare : undefined;
}
