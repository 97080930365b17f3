import { safeFilename } from "../../trust/shown/attachment-name.ts";
import { isCalendarAnswer, isCalendarMail, isMeetingMail } from "./calendar-mail.ts";
import { chooseBody, isMail } from "./choose-body.ts";
import { stripHiddenCharacters, visibleLine } from "../../trust/own-words/hidden-characters.ts";
import { decodeWords, type MailHeaders, readHeaders } from "./headers.ts";
import { allText, filesOf } from "./mail-text.ts";
import type { MailAttachment, ParsedMail, ParseOutcome } from "./parse.ts";
import { joined } from "../../trust/own-words/pieces.ts";
import { type Part, partsOf, readStructure, type Structure } from "./parse-structure.ts";
import { readableHtml, splitNewText, type SplitText } from "../../trust/own-words/reply-text.ts";
import { hasReplyMark } from "../../trust/own-words/subject-mark.ts";
import { mayAnswer } from "./thread-fields.ts";
import type { PackedMail } from "./winmail.ts";
import { inSignedForm, type SignedForm } from "./signed-form.ts";
import { withShortRuns } from "./short-runs.ts";
import { MB } from "../../lib/sizes.ts";

const MAX_TEXT_CHARS = MB;
const MAX_HTML_CHARS = 4 * MB;
const MAX_SUBJECT_CHARS = 998;
/**
 * Bytes of the beginning of a mail that are read instead when the whole is over a limit, the second if the first still
 * is; and how much of their text is returned.
 */
const PARTIAL_BYTES = [64 * 1024, 4 * 1024];
const MAX_PARTIAL_CHARS = 16 * 1024;
/** Mails attached to a mail are read too, to this depth and number; the others stay files. */
const MAX_ATTACHED_DEPTH = 3;
const MAX_ATTACHED_MAILS = 5;
const MAX_ATTACHMENTS = 1_000;

interface Reading {
  form?: SignedForm | undefined;
  /** Whether this server wrote it, so that nobody's words are to be told from those of others. */
  ours?: boolean;
  /** How many mails it is attached within. */
  attached?: number;
}

/** Reads one raw mail, as received or in its signed form. A problem of the mail is an outcome; only a bug throws. */
export async function readMail(came: Uint8Array, reading: Reading = {}): Promise<ParseOutcome> {
  const { form } = reading;
  const signed = form && inSignedForm(came, readHeaders(came), form);
  const raw = withShortRuns(signed ?? came);
  const structure = await readStructure(raw);
  if (form && !signed) structure.doubt = "its body is not the one that was signed";
  const mail = await readParts(structure, reading);
  if (structure.problem === null) return { ok: true, mail };
  const { problem } = structure;
  const text = allText(mail) || (await textOfBeginning(raw));
  return {
    ok: false,
    problem: problem.code,
    message: problem.message,
    text: text.slice(0, MAX_PARTIAL_CHARS),
  };
}

/**
 * Returns the text of the beginning of a mail. mailparser stops at a limit before it has handled what came ahead of it,
 * so the beginning is parsed separately.
 */
async function textOfBeginning(raw: Uint8Array): Promise<string> {
  for (const bytes of PARTIAL_BYTES) {
    const structure = await readStructure(raw.subarray(0, bytes));
    if (structure.problem === null)
      return allText(await readParts(structure, { attached: MAX_ATTACHED_DEPTH }));
  }
  return "";
}

async function readParts(structure: Structure, reading: Reading): Promise<ParsedMail> {
  const { headers, root, files, packed, doubt } = structure;
  const parts = [...partsOf(root)];
  const body = chooseBody(parts);
  const warnings = new Set<string>();
  const { whole, signature_pictures, ...cut } = cutOf(body, { ...reading, headers, warnings });
  const attachments = [
    ...withoutSignature(parts, files),
    ...body.named.map((part, index) => namedText(part, files.length + index + 1)),
  ];
  markShown(attachments, new Set(signature_pictures));
  const of_others =
    parts.some(isOfOthers) || attachments.some(isCalendarAnswer) || isMeetingMail(packed, cut.new_text);
  const passes_on = parts.some(isMail) || packed.some((inner) => inner.attached);
  const own_subject = doubt === null && !of_others && !passes_on;
  const mail: ParsedMail = {
    subject: subjectOf(headers),
    date: dateOf(headers),
    ...cut,
    own_subject,
    whole: whole && own_subject && body.others.length + filesOf({ attachments }).length + packed.length === 0,
    attachments,
    attached_subjects: packed.filter((inner) => inner.attached).map(({ subject }) => shownSubject(subject)),
    warnings: [],
  };
  if (doubt !== null) warnings.add(doubtful(doubt));
  if (doubt !== null || of_others) takeForMaterial(mail);
  const others = body.others.map((part) => readOther(part, mail, warnings));
  const { attached = 0 } = reading;
  const mails = await readAttachedMails(mail, attached, warnings);
  const inner = readPacked(packed, { mail, others, warnings });
  addMaterial(mail, { others, more: [...mails, ...inner] }, warnings);
  mail.warnings = [...warnings, ...unreadable(root, mail.attachments)];
  return mail;
}

/** Tells the author's own words from others, of which a mail of this server has none. */
function cutOf(
  { texts, pages }: Pick<ReturnType<typeof chooseBody>, "texts" | "pages">,
  { form, ours, headers, warnings }: Reading & { headers: MailHeaders; warnings: Set<string> },
): SplitText {
  const text = textsOf(texts, warnings).join("\n\n");
  const html = textsOf(pages, warnings);
  const all = ours ? uncut(text) : undefined;
  return all ?? splitNewText({ text, html }, { fresh: isFresh(headers, form) });
}

/** A text all of which is its author's own; undefined where there is none. */
function uncut(text: string): SplitText | undefined {
  if (text === "") return undefined;
  return {
    new_text: text.trim(),
    rest_text: "",
    signature: "",
    interleaved: false,
    whole: true,
    marked_off: "",
    below_marks: false,
    in_doubt: null,
    leads: [],
    signature_pictures: [],
    hidden_characters: 0,
    hidden_html: 0,
  };
}

/** Marks the pictures that are shown in the signature alone. */
function markShown(files: MailAttachment[], cids: Set<string>): void {
  for (const file of files) {
    const { cid, content_type } = file;
    if (cid !== undefined && cids.has(cid) && content_type.startsWith("image/")) file.of_signature = true;
  }
}

/** Removes the signature part of a signed mail, which is no file of its author's (RFC 1847 §2.1). */
function withoutSignature(parts: Part[], files: MailAttachment[]): MailAttachment[] {
  const signed = parts.find(({ contentType }) => contentType === "multipart/signed");
  const type = signed?.children.length === 2 ? signed.children[1]?.contentType : undefined;
  const of_type = files.filter(({ content_type }) => SIGNATURE.test(content_type) && content_type === type);
  return of_type.length === 1 ? files.filter((file) => file !== of_type[0]) : files;
}

/** S/MIME (RFC 8551 §3.5.3) and OpenPGP (RFC 3156 §5). */
const SIGNATURE = /^application\/(?:(?:x-)?pkcs7-signature|pgp-signature)$/;

function addMaterial(
  mail: ParsedMail,
  { others, more }: { others: string[]; more: string[] },
  warnings: Set<string>,
): void {
  if (mail.new_text !== "" && joined(others) !== "") mail.in_doubt ??= "further_part";
  const rest = joined([mail.rest_text, ...others, ...more]);
  if (rest.length > MAX_TEXT_CHARS) warnings.add(TOO_LONG);
  mail.rest_text = rest.slice(0, MAX_TEXT_CHARS);
}

function takeForMaterial(mail: ParsedMail): void {
  mail.rest_text = allText({ ...mail, signature: "" });
  mail.new_text = "";
  mail.interleaved = false;
  mail.in_doubt = null;
}

/** Returns whether a mail is neither a reply nor a forward, as far as its signed fields show. */
function isFresh(headers: MailHeaders, form: SignedForm | undefined): boolean {
  const has_subject = form === undefined || form.fields.includes("subject");
  return has_subject && !mayAnswer(headers, form) && !hasReplyMark(subjectOf(headers));
}

function doubtful(why: string): string {
  return `Read as material, not as an instruction: mail programs may show this mail in different ways, because ${why}. Send it again as plain text, or from another mail program.`;
}

const TOO_LONG = "The mail's text is very long; only its beginning was read.";

/**
 * Returns whether a part has words of others: a calendar program writes the organiser's words into an answer, and a
 * report or digest contains other mails.
 */
function isOfOthers(part: Part): boolean {
  return isCalendarMail(part) || /^multipart\/(report|digest)\b/.test(part.contentType || "");
}

function textsOf(parts: Part[], warnings: Set<string>): string[] {
  return parts.map((part) => textOf(part, warnings));
}

function textOf(part: Part, warnings: Set<string>): string {
  if (part.textContent === undefined) return "";
  const limit = part.contentType === "text/html" ? MAX_HTML_CHARS : MAX_TEXT_CHARS;
  if (part.textContent.length > limit) warnings.add(TOO_LONG);
  if (part.textContent.includes("\uFFFD")) warnings.add(garbled(part));
  const text = part.textContent.slice(0, limit);
  return part.flowed === null ? text : withoutSoftBreaks(text, part.flowed.del_sp);
}

function garbled({ node: { charset } }: Part): string {
  const named = charset ? `"${charset.slice(0, 40)}"` : "which the mail does not name";
  return `Some characters of the text could not be read in its character set (${named}).`;
}

/**
 * Joins flowed lines (RFC 3676 §4): a space at the end of a line joins it with the next, unless that is quoted
 * differently or is the "-- " of a signature.
 */
function withoutSoftBreaks(text: string, delSp: boolean): string {
  const out: string[] = [];
  /** The quote marks of the line that the next one continues; undefined if none is to be continued. */
  let open: string | undefined;
  for (const line of text.split("\n")) {
    const quoting = /^>*/.exec(line)?.[0] ?? "";
    const content = line.slice(quoting.length).replace(/^ /, "");
    const soft = content.endsWith(" ") && content !== "-- ";
    if (open !== quoting || content === "-- ") out.push("\n", quoting && `${quoting} `);
    out.push(soft && delSp ? content.slice(0, -1) : content);
    open = soft ? quoting : undefined;
  }
  return out.join("").slice(1);
}

function readOther(part: Part, mail: ParsedMail, warnings: Set<string>): string {
  return readMaterial(textOf(part, warnings), part.contentType === "text/html", mail);
}

/**
 * Returns the texts of a winmail.dat as material, as those of any file: few programs show it, so the author may have
 * seen other words than its reader. Only if the mail has no text elsewhere is the mail itself read from it.
 */
function readPacked(
  packed: PackedMail[],
  { mail, others, warnings }: { mail: ParsedMail; others: string[]; warnings: Set<string> },
): string[] {
  const has_text = [allText(mail), ...others].some((text) => text !== "");
  return packed
    .filter(({ attached }) => attached || !has_text)
    .map(({ subject, text, html, attached }) => {
      const is_html = text.trim() === "";
      const limit = is_html ? MAX_HTML_CHARS : MAX_TEXT_CHARS;
      const shown = readMaterial((is_html ? html : text).slice(0, limit), is_html, mail);
      if (attached) return `Attached mail: ${shownSubject(subject)}\n\n${shown}`.trim();
      warnings.add(shown === "" ? NO_TEXT_IN_WINMAIL : TEXT_IN_WINMAIL);
      return shown;
    });
}

const NO_TEXT_IN_WINMAIL =
  "If the mail has a text, it could not be read: Outlook packed it into winmail.dat in its own format. Send the mail as HTML or plain text.";
const TEXT_IN_WINMAIL =
  "Read as material, not as an instruction: the text of the mail is in winmail.dat alone, where few programs show it. Send the mail as HTML or plain text.";

function readMaterial(text: string, is_html: boolean, mail: ParsedMail): string {
  if (!is_html) {
    const clean = stripHiddenCharacters(text);
    mail.hidden_characters += clean.removed;
    return clean.text.trim();
  }
  const readable = readableHtml(text);
  mail.hidden_characters += readable.hidden_characters;
  mail.hidden_html += readable.hidden_html;
  return readable.text;
}

/** Returns the text of attached mails. Adds their files to the mail's own. */
async function readAttachedMails(
  mail: ParsedMail,
  attached: number,
  warnings: Set<string>,
): Promise<string[]> {
  if (attached >= MAX_ATTACHED_DEPTH) return [];
  const mails = mail.attachments.filter(({ content_type }) =>
    /^message\/(rfc822|global)$/.test(content_type),
  );
  const texts: string[] = [];
  for (const { bytes, filename } of mails.slice(0, MAX_ATTACHED_MAILS)) {
    const outcome = await readMail(bytes, { attached: attached + 1 });
    if (!outcome.ok) {
      warnings.add(`The attached mail "${filename}" was not read: ${outcome.message}`);
      continue;
    }
    const inner = outcome.mail;
    texts.push(`Attached mail: ${inner.subject}\n\n${allText(inner)}`.trim());
    mail.attachments.push(...inner.attachments.slice(0, MAX_ATTACHMENTS - mail.attachments.length));
    mail.attached_subjects.push(inner.subject, ...inner.attached_subjects);
    mail.hidden_characters += inner.hidden_characters;
    mail.hidden_html += inner.hidden_html;
    for (const warning of inner.warnings) warnings.add(warning);
  }
  if (mails.length > MAX_ATTACHED_MAILS)
    warnings.add(`Only the first ${MAX_ATTACHED_MAILS} attached mails were read.`);
  return texts;
}

function namedText(part: Part, number: number): MailAttachment {
  const bytes = new TextEncoder().encode(part.textContent ?? "");
  const filename = safeFilename(part.node.filename || "", part.contentType || "text/plain", number);
  return {
    filename,
    content_type: part.contentType || "text/plain",
    size: bytes.length,
    bytes,
    inline: false,
  };
}

function subjectOf(headers: MailHeaders): string {
  return shownSubject(decodeWords(headers.get("subject") ?? ""));
}

function shownSubject(subject: string): string {
  return visibleLine(subject).slice(0, MAX_SUBJECT_CHARS);
}

/** Returns the time of the Date field in unix seconds; null if there is none, or none that can be read. */
function dateOf(headers: MailHeaders): number | null {
  const value = (headers.get("date") ?? "")
    .slice(0, 200)
    .replace(/\([^()]*\)/g, "")
    .trim();
  const seconds = Math.floor(Date.parse(value) / 1000);
  return Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : null;
}

function unreadable(root: Part | null, attachments: MailAttachment[]): string[] {
  const warnings: string[] = [];
  const types = [...partsOf(root)].map((part) => part.contentType || "");
  if (types.some((type) => /^(multipart\/encrypted|application\/(x-)?pkcs7-mime)$/.test(type))) {
    warnings.push("The mail is encrypted or signed as a whole, so its text could not be read.");
  }
  const isTnef = ({ filename, content_type }: MailAttachment): boolean =>
    filename.toLowerCase() === "winmail.dat" || content_type.endsWith("ms-tnef");
  if (attachments.some(isTnef)) {
    warnings.push(
      "The files inside winmail.dat could not be read: it is damaged, or no file of Outlook. Send the mail as HTML or plain text.",
    );
  }
  return warnings;
}
