import { type Brought, refuseOthers } from "../resources/messages/brought.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import type { App } from "../app.ts";
import { hasEarlierMessages } from "../resources/conversations/conversations.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import type { MailHeaders } from "../mail/reading/headers.ts";
import { hiddenInWords, visibleLine } from "../trust/own-words/hidden-characters.ts";
import type { MailAttachment, ParsedMail } from "../mail/reading/parse.ts";
import type { FreshCall, IncomingFile } from "../inbound/accept.ts";
import { allText, filesOf, openingOf } from "../mail/reading/mail-text.ts";
import { headersAs } from "../mail/reading/headers-as.ts";
import { mayAnswer, saysItAnswers } from "../mail/reading/thread-fields.ts";
import { sizeOf, sourceOf } from "../resources/messages/run-use.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { purged } from "../resources/messages/retry.ts";
import { readBytes } from "../resources/messages/stored-bytes.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { materialOf, plainMaterialOf } from "../resources/messages/material.ts";
import { lineOfMail, type NamedImage, readMaterial } from "./attachments.ts";
import { bareLetters } from "../lib/bare-letters.ts";
import { namesFiles } from "../trust/own-words/file-names.ts";
import { mayCommand } from "../trust/own-words/names-in-text.ts";
import { belowGreeting, withoutGreeted } from "../trust/own-words/greeting.ts";
import { isAlone, plainness } from "./plain-word.ts";
import { doubtsAbout, whyWithheld } from "./doubts.ts";
import {
  hasAddressOfOthers,
  holdsAddress,
  isOfOthers,
  readShared,
  type SharedText,
  withoutOwnSite,
} from "../trust/own-words/shared-page.ts";
import type { Run } from "./close.ts";
import type { Gathered } from "./digest.ts";
import type { StepDraft } from "./steps.ts";

/** An attached mail: its text is part of the mail's own text. */
const ATTACHED_MAIL = /^message\/(rfc822|global)$/;

/** What a run works on: the trusted instruction apart from everything else. */
export interface RunInput {
  /** The words of a person with authority; empty if there are none. */
  instruction: string;
  /**
   * The end of the instruction that is surely its author's. Commands count only in this part, and only its words name
   * places; what is before it is for the model to read. It is all of the instruction, except for:
   * - a new mail with a web address: nothing;
   * - a mail that answers: what stands below the last address;
   * - a mail with words below a quote whose end only its marks show: nothing;
   * - a subject that may be a file's title: nothing.
   */
  sure: string;
  /** The last web address before `sure`, which counts as named all the same. */
  page: string;
  /** The part of the instruction in which `--allow-destructive` counts. */
  may_allow: string;
  /**
   * Whether addresses and a target in the instruction count. They do not in a subject alone, which a link or a program
   * may have filled in.
   */
  names: boolean;
  /**
   * Why words of others may stand among the author's: those of a page that a program has shared by its address, in the
   * text of a new mail ("page"), in what is cut off that text ("below"), or in an answer above the address ("answer");
   * or those of a quote whose end only its marks show ("quote").
   */
  may_share: "page" | "below" | "answer" | "quote" | null;
  /** The instruction, whose first line may answer a letter of this server; empty where words of others may stand above it. */
  opening: string;
  /** The subject of a mail; empty unless the subject is the own words of a person with authority. */
  subject: string;
  /**
   * Whether nothing in the mail, the subject included, can be anybody's but the author's, and the author has authority.
   */
  plain: boolean;
  /** Whether nothing speaks against `plain` but that a tool may have mailed so few words. */
  few_words?: boolean;
  content: string;
  files: IncomingFile[];
  /**
   * The names of a mail's files, which programs write into its text, and those subjects of attached mails that could be
   * an order there.
   */
  filenames: string[];
  /** One line for each file, whether it was read or not; untrusted like the content. */
  manifest: string[];
  /** Pictures, for a model that can see. */
  images: NamedImage[];
  /** What was read of each file. */
  extracted: StepDraft[];
  /** Sentences about what could not be read. */
  warnings: string[];
  /** The header of a mail, for its answer; null for a call. */
  headers: MailHeaders | null;
  /** The same with those fields that the signature of the mail does not cover. */
  headers_as_came: MailHeaders | null;
  /**
   * All that can be read in a message, of its author and of others, without the text of its files; and the bytes of the mail,
   * or of all that a call brought. They are made when rules ask for them, because a large call would be kept twice.
   */
  whole: () => { text: string; size: number };
  /** What came in since the last run of a digest; it is part of `content`. */
  gathered?: Gathered;
  /** Up to which message a run of a schedule has read, or passed over for good. It counts once the run is done. */
  read_up_to?: string;
  /** Behind which message a digest has begun to read; empty where no run had read anything before. */
  read_from?: string;
}

type Loaded = Pick<Run, "message" | "inbox" | "owner_email" | "owner_timezone">;

/**
 * The instruction and the material of a message, from the stored raw mail or from the stored call; of a `fresh` one from memory.
 */
export async function readInput(
  app: App,
  run: Loaded,
  {
    fresh,
    brought,
    signal,
  }: { fresh?: FreshCall | undefined; brought?: Brought | undefined; signal: AbortSignal },
): Promise<RunInput> {
  const { message } = run;
  if (fresh) return inputOf(app, { ...fresh, message }, signal);
  return message.raw_mail_id === null
    ? readCall(app, message, { brought, signal })
    : readMail(app, run, signal);
}

async function readCall(
  app: App,
  message: MessageRow,
  { brought, signal }: { brought: Brought | undefined; signal: AbortSignal },
): Promise<RunInput> {
  const [stored] = await contentOf(app.db, { message_id: message.id });
  const rows = await filesInto(app.db, { message_id: message.id });
  refuseOthers(brought, { content: stored, files: rows });
  const files: IncomingFile[] = [];
  for (const row of rows) {
    const { filename, content_type } = row;
    files.push({
      filename,
      content_type,
      bytes: (await readBytes(app, "attachments", row)) ?? new Uint8Array(),
    });
  }
  return inputOf(app, { message, content: stored?.content ?? null, files }, signal);
}

/** The input of a call whose material is in memory. The words of one whose authority a rule has taken are material. */
async function inputOf(
  app: App,
  { message, content: given, files }: Pick<FreshCall, "message" | "content" | "files">,
  signal: AbortSignal,
): Promise<RunInput> {
  const { texts, ...material } = await readMaterial(app, files, { signal, from: sourceOf(message) });
  const said = message.instruction ?? "";
  const trusted = hasAuthority(message);
  const instruction = trusted ? said : "";
  const content = trusted ? (given ?? "") : [said, given ?? ""].join("\n\n");
  return {
    ...NO_WORDS,
    instruction,
    opening: instruction,
    sure: instruction,
    may_allow: instruction,
    plain: trusted && content.trim() === "" && files.length === 0 && !holdsAddress(said),
    content: [content, ...texts].filter((text) => text.trim() !== "").join("\n\n"),
    files,
    filenames: [],
    ...material,
    headers: null,
    headers_as_came: null,
    whole: () => ({
      text: [said, given ?? ""].join("\n"),
      size: sizeOf({ content: given, files }),
    }),
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

/** The stored mail of a message; `headers` are those of its signed form if only that may be read. */
export async function readStoredMail(
  app: App,
  message: Pick<MessageRow, "raw_mail_id" | "auth">,
): Promise<{ raw: Uint8Array; headers: MailHeaders; headers_as_came: MailHeaders }> {
  const [stored] = await rawMailOf(app.db, { id: message.raw_mail_id ?? "" });
  const raw = stored && (await readBytes(app, "raw_mails", stored));
  if (!raw) throw purged();
  const form = storedAuth(message).signed_form;
  const headers = headersAs(raw, form);
  return { raw, headers, headers_as_came: form ? headersAs(raw, undefined) : headers };
}

async function readMail(app: App, run: Loaded, signal: AbortSignal): Promise<RunInput> {
  const { message, inbox, owner_email, owner_timezone: timezone } = run;
  const { raw, headers, headers_as_came } = await readStoredMail(app, message);
  const form = storedAuth(message).signed_form;
  const from = sourceOf(message);
  const outcome = await app.parser.parse(raw, { form, ...from });
  if (!outcome.ok)
    return {
      ...nothingRead(),
      content: materialOf(message, outcome, { headers, timezone }),
      warnings: [outcome.message],
      headers,
      headers_as_came,
      whole: () => ({ text: outcome.text, size: raw.byteLength }),
    };
  const { attachments, warnings } = outcome.mail;
  const files = attachments.map(toFile);
  const { mails = [], others = [] } = Object.groupBy(files, (file) =>
    ATTACHED_MAIL.test(file.content_type) ? "mails" : "others",
  );
  const threaded = mayAnswer(headers, form) || (await isInThread(app, message));
  const alone = !threaded && isAlone(message, outcome.mail);
  const withheld = await whyWithheld(app, message, { mail: outcome.mail, alone });
  const words = trustedWords(message, outcome.mail, { alone, answers: saysItAnswers(headers), withheld });
  const { plain, few_words = false } = alone
    ? await plainness(app, message, { mail: outcome.mail, words })
    : { plain: false };
  // If all the rest is obeyed, what a mail signature block says or shows is not read.
  const { texts, ...material } = await readMaterial(app, plain ? [] : others, { signal, from });
  return {
    ...words,
    plain,
    few_words,
    content: plain
      ? plainMaterialOf(message, outcome.mail, { headers, timezone, own: [owner_email, addressOf(inbox)] })
      : materialOf(message, outcome, {
          headers,
          timezone,
          texts: [...(withheld === null ? [] : [outcome.mail.new_text]), ...texts],
        }),
    files,
    filenames: [
      ...files.map(({ filename }) => filename),
      ...outcome.mail.attached_subjects.filter((subject) => mayCommand(subject)),
    ],
    ...material,
    manifest: [...material.manifest, ...mails.map(lineOfMail)],
    warnings: [
      ...(withheld === null ? doubtsAbout(message, outcome.mail) : [withheld]),
      ...warnings,
      ...hiddenWarnings(outcome.mail),
      ...material.warnings,
    ],
    headers,
    headers_as_came,
    whole: () => ({ text: allText(outcome.mail), size: raw.byteLength }),
  };
}

/**
 * Whether a message came into a thread. An earlier try may have moved it into a new one (`--new`); a later try of it
 * must not be allowed more for that.
 */
async function isInThread(app: App, message: MessageRow): Promise<boolean> {
  const { in_thread } = storedAuth(message);
  return in_thread === true || (await hasEarlierMessages(app.db, message));
}

function nothingRead() {
  return { ...NO_WORDS, plain: false, files: [], filenames: [], manifest: [], images: [], extracted: [] };
}

type TrustedWords = Pick<RunInput, keyof typeof NO_WORDS>;

const NO_WORDS = {
  instruction: "",
  sure: "",
  page: "",
  may_allow: "",
  names: true,
  may_share: null,
  opening: "",
  subject: "",
};

/**
 * The words of decision G: the new words of a sender with authority or, if there are none, the subject of a mail that
 * stands alone. `answers`: the mail says that it answers or passes on another one. `withheld`: why its words
 * are not its sender's, or null.
 */
function trustedWords(
  message: MessageRow,
  mail: ParsedMail,
  { alone, answers, withheld }: { alone: boolean; answers: boolean; withheld: string | null },
): TrustedWords {
  const text = mail.new_text.trim();
  if (!hasAuthority(message) || withheld !== null) return NO_WORDS;
  const shared = sharedIn(mail, { text, answers, sender: message.sender ?? "" });
  const { may_share, given, page } = shared;
  const typed = given === "" ? belowGreeting(shared.sure, { apart: alone }) : shared.sure;
  const sure = alone ? typed : withoutGreeted(typed);
  const subject = alone && may_share === null ? ownSubject(message, mail) : "";
  return {
    instruction: text || subject,
    sure: text === "" && filesOf(mail).length === 0 ? subject : sure,
    page,
    // A quote that was not recognised begins below the first empty line at the earliest.
    may_allow: (alone ? text : firstParagraph(text)).slice(given.length),
    names: bareLetters(text) !== "",
    may_share,
    opening: openingOf(mail),
    subject,
  };
}

/** The subject, unless a program that sends files may have written it. */
function ownSubject({ subject }: MessageRow, { attachments }: ParsedMail): string {
  const title = visibleLine(subject ?? "");
  const filenames = attachments.map(({ filename }) => filename);
  return namesFiles(title, filenames) ? "" : title;
}

/**
 * Splits the own words of a mail into what is surely its author's and the rest, and gives the reason for the doubt. A
 * program that shares a page begins a new mail, and some write the address first: then the page's words stand below it.
 */
function sharedIn(
  mail: ParsedMail,
  { text, answers, sender }: { text: string; answers: boolean; sender: string },
): SharedText & Pick<RunInput, "may_share"> {
  if (mail.below_marks) return { may_share: "quote", given: text, sure: "", page: "" };
  if (answers) {
    const shared = readShared(text);
    return { ...shared, may_share: shared.page === "" ? null : "answer" };
  }
  const { page } = readShared(withoutOwnSite(text, sender));
  if (page !== "") return { may_share: "page", given: text, sure: "", page };
  const lead = mail.leads.find((address) => isOfOthers(address, sender));
  if (lead !== undefined) return { may_share: "page", given: text, sure: "", page: lead };
  const below = hasAddressOfOthers(mail.marked_off, sender);
  return below
    ? { may_share: "below", given: text, sure: "", page: "" }
    : { may_share: null, given: "", sure: text, page: "" };
}

function firstParagraph(text: string): string {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => line.trim() === "");
  return end === -1 ? text : lines.slice(0, end).join("\n");
}

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
