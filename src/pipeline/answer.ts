import { LASTING_FAULTS } from "../reasons.ts";
import { asCode, asText } from "../trust/shown/as-code.ts";
import { literalMarkdown } from "../trust/shown/harmless-text.ts";
import { FILES_TARGET } from "../trust/guard/guard.ts";
import type { ToolFile } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { MessageRow } from "../db/schema.ts";
import type { MailParts } from "../mail/writing/compose.ts";
import { type Picture, pictureOf } from "../mail/writing/pictures.ts";
import { type Written, written, writtenPlain } from "../mail/writing/written.ts";
import { type Answerable, answerNow, type Withheld } from "../resources/messages/withheld.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Ending, Run, Unmade } from "./close.ts";
import { asBlock } from "./form.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { mayAnswer, type PreparedReply, prepareReply } from "./reply.ts";
import { isOwnersMatter, tellOwnerInstead } from "./tell-owner.ts";
import type { RoomLeft } from "./room-left.ts";
import type { RunSettings } from "./settings.ts";
import { type StepDraft, sentencesToRepeat, warningStep } from "./steps.ts";
import { type Guarded, workOnText } from "./text-work.ts";
import { MB } from "../lib/sizes.ts";

/** Base64 makes the files a third larger, and many mail servers take no more than 20 MB. */
const MAX_MAILED_BYTES = 10 * MB;

/**
 * Returns the answer to mail back: the result with its files and `words` about what the run lacked to do more, or a
 * notice of the failure for a person who could act on it. What the answer has to say about itself is added to the steps
 * of the run.
 */
export async function answerTo(
  app: App,
  run: Run,
  ending: Ending,
  { files, words: lacking, room }: { files: ToolFile[]; words: string[]; room: RoomLeft },
): Promise<PreparedReply | undefined> {
  const { message: accepted, input, settings } = run;
  const now = await nowForAnswer(app, run);
  const { headers } = input;
  const unheard = headers === null && accepted.schedule_id === null && accepted.approval_id === null;
  if (now === undefined || now.why !== null || unheard) {
    if (files.length > 0 && settings.private) run.steps.push(warningStep(NOT_HANDED_OVER));
    return insteadOf(app, accepted, ending);
  }
  const message = { ...accepted, authority: now.authority };
  const answered = { message, inbox: now.inbox, headers };
  if (ending.state === "done") {
    // In capture mode the mail itself is kept here, so that it must not hold a file either for which there is no
    // room.
    const captures = app.config.outbound.mode === "capture";
    const mailed = mailedFiles(run, files, { ...room, captures });
    const stranger = !hasAuthority(message);
    const pictures = mailed.flatMap((file) => pictureOf(file) ?? []);
    const result = ending.form === undefined ? ending.result : asBlock(ending.result, ending.form);
    const words = await answerWords(app, run, { result, pictures, lacking, stranger });
    return prepareReply(app, answered, {
      kind: "reply",
      approval_id: ending.about,
      ...words,
      by_model: ending.model !== null,
      build: (parts) => built(app, parts, run),
      files: mailed,
      pictures,
      private: settings.private,
      most_kept: room.mail_bytes,
    });
  }
  if (!hasAuthority(message)) return insteadOf(app, accepted, ending);
  const markdown = noticeWords(app, run, { message, ending });
  return prepareReply(app, answered, {
    kind: "notice",
    words: written(markdown, { own: true }),
    most_kept: room.mail_bytes,
  });
}

/** What a person is told who has sent a mail without a result, and who could act on that. */
function noticeWords(
  app: App,
  { changed }: Run,
  { message, ending }: { message: MessageRow; ending: Unmade },
): string {
  const is_limited = ending.state === "limited";
  const again = is_limited || LASTING_FAULTS.has(ending.reason) ? sendAgain(app, message) : "";
  // What a budget holds is the owner's to know.
  const error = is_limited && message.authority !== "owner" ? BEYOND_BUDGET : ending.error;
  return failureWords(error, { changed }) + again;
}

const BEYOND_BUDGET =
  "The owner of this inbox has limited what its model may cost in a month, and this would have been more.";

/** Tells the owner of a failed mail of whose failure its sender is not told. Of what a budget holds there is a letter, see `tellOfUndone`. */
function insteadOf(app: App, message: MessageRow, ending: Ending): PreparedReply | undefined {
  return ending.state === "failed" && isOwnersMatter(message, ending.reason)
    ? tellOwnerInstead(app, message)
    : undefined;
}

/**
 * Returns the inbox and the authority that count at the end of the run; undefined if it is not to be answered. What
 * forbids an answer by now is added to the steps.
 */
async function nowForAnswer(app: App, run: Run): Promise<Answerable | Withheld | undefined> {
  const { message, settings, steps } = run;
  if (!settings.reply || !mayAnswer(message, run.inbox)) return undefined;
  const now = await answerNow(app.db, message);
  if (now.why !== null) steps.push(warningStep(now.why));
  return now;
}

/**
 * Tells how to get a mail done that failed because of its model's server. Only the owner of the inbox sees its
 * activity, so only they are sent there.
 */
export function sendAgain(app: App, { id, authority }: MessageRow): string {
  const there = ` or have it tried again [in the activity](${app.base_url}/app/messages/${id})`;
  return `\n\nOnce that is mended, send your mail again${authority === "owner" ? there : ""}.`;
}

/** Returns the text of a notice of failure; `changed`: tools had been called. */
export function failureWords(error: string, { changed }: { changed: boolean }): string {
  return `Your mail could not be worked on.\n\n${asText(error)}\n\nNothing was charged.${changed ? CHANGED : ""}`;
}

const CHANGED =
  " But tools had been called before that: what they changed stays so. The steps of this message in the activity say what was done. This very mail, when it comes again or is tried again there, goes on from that and does none of it twice; a new mail would.";
const NOT_HANDED_OVER =
  "Files were made, but not kept because of --private, and there was no mail to send them with.";

async function answerWords(
  app: App,
  run: Run,
  {
    result,
    pictures,
    lacking,
    stranger,
  }: { result: string; pictures: Picture[]; lacking: string[]; stranger: boolean },
): Promise<{ words: Written; notes: Written }> {
  const { steps, trust, message } = run;
  const { text: markdown, left_out } = await guarded(app, result, run);
  const wrote = await workOnText(app, "write", { markdown, trust, pictures }, sourceOf(message));
  // Links that only the Markdown syntax hid from `guarded` are counted as well.
  const count = left_out + (wrote?.left_out ?? 0);
  if (count > 0) steps.push(warningStep(leftOut(count, run)));
  const warnings = sentencesToRepeat(steps, { stranger }).map(asCode);
  const said = (await guarded(app, [...lacking, ...warnings].join("\n\n"), run)).text;
  const notes = await workOnText(app, "notes", { markdown: said, trust }, sourceOf(message));
  return { words: wrote ?? plainWords(markdown, run), notes: notes ?? plainWords(said, run) };
}

/** The words of Markdown that takes too long to read, and so is not looked through for what is hidden in it. */
function plainWords(markdown: string, { trust }: Run): Written {
  const words = writtenPlain(markdown);
  const { whole } = words;
  return { ...words, whole: whole !== null && trust.tainted ? literalMarkdown(whole) : whole };
}

async function guarded(app: App, markdown: string, { trust, message }: Run): Promise<Guarded> {
  return (
    (await workOnText(app, "guard", { markdown, trust }, sourceOf(message))) ?? {
      text: NOT_READ,
      left_out: 0,
    }
  );
}

async function built(app: App, parts: MailParts, { message }: Run): Promise<Buffer> {
  const raw = await workOnText(app, "build", parts, sourceOf(message));
  if (raw === undefined) throw new Error("The answer could not be encoded as a mail in time");
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
}

const NOT_READ =
  "*The answer is not shown here: it is built in a way that takes too long to read. The whole result is in the activity, unless it was private.*";

function leftOut(count: number, run: Run): string {
  const links = count === 1 ? "1 link was" : `${count} links were`;
  const rule = `${links} left out of the mail, since ${whyLeftOut(run, count === 1 ? "it" : "them")}`;
  return run.settings.private ? rule : `${rule} The whole result is in the activity.`;
}

/** Names what alone has cost the links, if nothing of others stood in the mail and no tool was called. */
function whyLeftOut({ alone, steps }: Run, links: string): string {
  const called = steps.some(({ type, server }) => type === "tool_call" && server !== FILES_TARGET);
  if (!alone || called)
    return `words of others, or a tool, took part in this answer and could have planted ${links}. To keep a link, name its address in your mail.`;
  const { few_words, servers } = alone;
  if (servers.length === 0) return few_words ? FEW_WORDS : MAIL_LINKS;
  const names = servers.map((target) => `@${target.replace(/^mcp:/, "")}`).join(", ");
  const begin = few_words ? " that begins with a line of 20 letters or more, and" : "";
  return `the model was offered tools of others (${names}). To keep links, send a new mail${begin} with --no-tools, or name the address in it.`;
}

const FEW_WORDS =
  "your mail begins with so few words that a tool could have mailed it in your name: one has written something in the last 30 days that you had not read before. Begin with a line of 20 letters or more, and all links stay.";
const MAIL_LINKS = "a link to a mail that is already written is shown as its address alone.";

/** Returns the files that go into a mail, in their order; for the others a step says where they are. */
export function mailedFiles(
  { settings, steps }: { settings: Pick<RunSettings, "private">; steps: StepDraft[] },
  files: ToolFile[],
  { left_out, captures }: Pick<RoomLeft, "left_out"> & { captures: boolean },
): ToolFile[] {
  let room = MAX_MAILED_BYTES;
  return files.filter((file) => {
    const { filename, bytes } = file;
    const fits = bytes.byteLength <= room && !(captures && left_out.has(file));
    if (fits) room -= bytes.byteLength;
    else if (left_out.has(file)) steps.push(warningStep(`${filename} is not in the mail, for want of room.`));
    else if (settings.private)
      steps.push(warningStep(`${filename} was too large for the mail and, being private, was not kept.`));
    else
      steps.push(
        warningStep(`${filename} was too large for the mail; it is kept for download in the activity.`),
      );
    return fits;
  });
}
