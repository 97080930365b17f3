import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { type Besides, objectionBesides } from "../trust/guard/besides.ts";
import { type Going, type Objection, objectionToPlaces } from "../trust/guard/guard.ts";
import {
  type Giving,
  type HiddenOrder,
  objectionToHiddenOrder,
  objectionToMailed,
} from "../trust/guard/hidden-orders.ts";
import { objectionToYes } from "../trust/guard/written-consents.ts";
import { alikeOnes, type TitleToFind, titleToFind } from "../trust/guard/titles.ts";
import { type Judgement, tellsOf } from "../trust/guard/tells.ts";
import type { Place, ToolFile } from "../trust/guard/tool.ts";
import { buildMail, type MailParts } from "../mail/writing/compose.ts";
import { markdownToHtml } from "../mail/writing/html-writer.ts";
import { fencesOf } from "../mail/writing/markdown.ts";
import type { Picture } from "../mail/writing/pictures.ts";
import { type Written, written, writtenNotes } from "../mail/writing/written.ts";
import { type NumbersFound, numbersToCompare, struckOut } from "../resources/accounts/code-in-texts.ts";
import { type Found, findSought, type Sought } from "../resources/inboxes/rules/words.ts";
import { parseJson } from "../lib/foreign-json.ts";
import { type Fenced, fence } from "../trust/shown/fence.ts";
import { harmlessWhole } from "../trust/shown/harmless-text.ts";
import { guardMarkdown, learnFrom, linkGuard, madeUpLinks, type Trust } from "../trust/shown/links.ts";
import { type Answered, changedFields } from "../trust/shown/changed-fields.ts";
import { type ShownCall, shownArguments } from "../trust/shown/shown-call.ts";
import { MAX_TEXT_BYTES, textFile } from "./made-files.ts";
import { hashesToNote } from "./written-texts.ts";
import { MB } from "../lib/sizes.ts";

/**
 * The kinds of work on texts that others wrote, by name. Inputs and outputs are plain data, as they may go to a worker
 * and back.
 */
export const TEXT_WORK = {
  /** Puts material between its marks. */
  fence: ({ material, nonce, max_chars }: { material: string; nonce: string; max_chars: number }): Fenced =>
    fence(material, nonce, max_chars),
  /** Returns Markdown without the addresses that may not stay. */
  guard: ({ markdown, trust }: { markdown: string; trust: Trust }): Guarded => {
    const links = linkGuard(trust);
    return { text: trust.tainted ? guardMarkdown(markdown, links) : markdown, left_out: links.left_out };
  },
  /** Returns Markdown as HTML that has only the links that may stay. */
  html: ({ markdown, trust }: { markdown: string; trust: Trust }): Guarded => {
    const links = linkGuard(trust);
    return { text: markdownToHtml(markdown, links), left_out: links.left_out };
  },
  /** Returns an answer as the words of a mail. */
  write: ({ markdown, trust, pictures }: { markdown: string; trust: Trust; pictures: Picture[] }): Wrote => {
    const guard = linkGuard(trust);
    const words = written(markdown, { guard, pictures });
    const { left_out } = guard;
    const whole = words.whole !== null && trust.tainted ? harmlessWhole(words.whole, guard) : words.whole;
    return { ...words, whole, left_out };
  },
  notes: ({ markdown, trust }: { markdown: string; trust: Trust }): Written =>
    writtenNotes(markdown, linkGuard(trust)),
  fences: ({ markdown }: { markdown: string }): { language: string; content: string }[] => fencesOf(markdown),
  file: ({ file, trust }: { file: Parameters<typeof textFile>[0]; trust: Trust }): MadeFile =>
    textFile(file, trust),
  build: (parts: MailParts): Promise<Uint8Array> => buildMail(withBuffers(parts)),
  /** Returns what a round of calls adds: the addresses that the model made up in the arguments, and new material. */
  learn: ({ trust, args, said, made_up, asked_before }: Round): Learnt => {
    const asked = JSON.stringify(args.map((text) => parseJson(text) ?? text));
    const all = new Set([...made_up, ...madeUpLinks(trust, asked)]);
    const fresh: Trust = { ...trust, material: "" };
    let vouched = "";
    for (const { text, vouches, failed } of said) {
      const from = fresh.material.length;
      learnFrom(fresh, { text, made_up: all, asked: failed ? `${asked_before} ${asked}` : undefined });
      if (vouches) vouched += fresh.material.slice(from);
    }
    return { made_up: [...all], material: fresh.material, vouched };
  },
  /**
   * Returns whether a call may go where it would, and what it tells others then: the guard checks the instruction against
   * all that others have found and written. What it has not read yet are mails.
   */
  places: async (going: Going): Promise<Judgement & { mails: string[] }> => {
    const there = objectionToPlaces(going);
    const { objection, mails } =
      there === null ? await objectionToHidden(going) : { objection: there, mails: [] };
    const tells = objection === null && going.tool.foreign && going.tainted;
    return { objection, mails, tells: tells ? tellsOf(going) : null };
  },
  /** Returns what no consent lifts in a call that the guard objects to. */
  besides: async (going: Going): Promise<Besides & { mails: string[] }> => {
    const { objection, unnamed } = objectionBesides(going);
    const hidden = objection === null ? await objectionToHidden(going) : { objection, mails: [] };
    return { ...hidden, unnamed };
  },
  /** Returns the objection to an order in one of the mails that a tool is to send. */
  mailed: ({ going, mails }: { going: Giving; mails: string[] }): Promise<Objection | null> =>
    objectionToMailed(going, mails),
  /** Returns the arguments of a call as people read them before they consent to it. */
  shown: ({ args, unnamed }: { args: Record<string, unknown>; unnamed: string[] }): ShownCall =>
    shownArguments(args, unnamed),
  /** Returns what a call would change of what its server has answered before, as people read it. */
  changes: ({ tool, args, answers }: Changing): string | null => changedFields(tool, args, answers),
  /** Returns what is to be noted of a call that writes. */
  writes: hashesToNote,
  /** Returns the numbers that may be a sign-in code. */
  numbers: ({ texts }: { texts: string[] }): NumbersFound => numbersToCompare(texts),
  struck: ({ texts, code }: { texts: string[]; code: string }): string[] =>
    texts.map((text) => struckOut(text, code)),
  words: ({ sought }: { sought: Sought[] }): Found => findSought(sought),
  title: ({ id, going }: { id: string; going: Going }): TitleToFind | null => titleToFind(id, going),
  alike: ({ title, places, going }: { title: string; places: Place[]; going: Going }) =>
    alikeOnes(title, places, going),
};

/** Returns the objection to an order or a consent that is one only for who reads a text as a mail that was made of it. */
async function objectionToHidden(going: Going): Promise<HiddenOrder> {
  const hidden = await objectionToHiddenOrder(going);
  return hidden.objection === null ? { ...hidden, objection: await objectionToYes(going) } : hidden;
}

/** Makes buffers of the contents of attachments, which a worker receives as plain byte arrays. */
function withBuffers(parts: MailParts): MailParts {
  for (const one of parts.attachments ?? [])
    if (one.content instanceof Uint8Array) one.content = Buffer.from(one.content);
  return parts;
}

interface Changing {
  /** The name of the tool. */
  tool: string;
  args: Record<string, unknown>;
  answers: Answered[];
}

interface Wrote extends Written {
  /** How many addresses were left out. */
  left_out: number;
}

export interface Guarded {
  text: string;
  /** How many addresses were left out. */
  left_out: number;
}

export type MadeFile = ToolFile | { refusal: string };

/** What the model was shown of a call's result, as far as addresses in it count as read. */
export interface Said {
  text: string;
  /** Whether the model had no part in it. */
  vouches: boolean;
  failed: boolean;
}

interface Round {
  trust: Trust;
  /** The arguments of its calls, as the model wrote them. */
  args: string[];
  said: Said[];
  made_up: string[];
  /** The arguments of the calls of earlier rounds. */
  asked_before: string;
}

export interface Learnt {
  made_up: string[];
  material: string;
  /** What of the material vouches for its addresses. */
  vouched: string;
}

export type Threads = Pick<App, "texts" | "log">;
type Works = typeof TEXT_WORK;
export type WorkName = keyof Works;

/** A piece of work as it is sent to a worker. */
export interface SentWork {
  name: WorkName;
  input: unknown;
}

/**
 * Characters up to which a text is worked on in this thread, which takes a few milliseconds at the worst. The limit for
 * Markdown is lower, since it has more ways to take long.
 */
const IN_PLACE_CHARS: Record<WorkName, number> = {
  fence: 16_384,
  guard: 16_384,
  html: 4_096,
  write: 4_096,
  notes: 4_096,
  fences: 4_096,
  file: 8_192,
  learn: 16_384,
  build: 32_768,
  // These read mail, whose parser is in memory in workers alone.
  mailed: 0,
  writes: 0,
  words: 2_048,
  // Packed texts are unpacked as often as they may be packed, and each from four places.
  numbers: 2_048,
  struck: 2_048,
  // These take time in proportion to the product of two lengths. What is known of a run counts about 3,000.
  places: 4_608,
  besides: 4_608,
  shown: 16_384,
  changes: 16_384,
  title: 4_096,
  alike: 4_096,
};
/** Milliseconds after which work on a text is given up, and its process ended. */
const WORK_WITHIN_MS = 3_000;
const MORE_MS_PER_MB = 2_000;

/**
 * Does a piece of work on texts of others without holding up everybody else: long work goes to a worker, where it waits
 * for the turn of its account. Undefined if it took too long, or more memory than there is.
 */
export async function workOnText<Name extends WorkName>(
  app: Threads,
  name: Name,
  input: Parameters<Works[Name]>[0],
  { account, strangers = false }: ReadFor,
): Promise<Awaited<ReturnType<Works[Name]>> | undefined> {
  const chars = charsIn(input);
  type Output = Awaited<ReturnType<Works[Name]>>;
  const work = TEXT_WORK[name] as (given: unknown) => Output | Promise<Output>;
  if (chars <= IN_PLACE_CHARS[name]) return work(input);
  const sent: SentWork = { name, input };
  const job = { input: sent, limit_ms: WORK_WITHIN_MS + (chars / MB) * MORE_MS_PER_MB };
  const outcome = await app.texts.run({ who: account, strangers }, () => job);
  if (outcome.ok) return outcome.output as Output;
  app.log.info({ work: name, chars, problem: outcome.problem }, "a text was given up");
  return undefined;
}

/** Makes a file of text as `textFile` does. */
export async function makeTextFile(
  app: Threads,
  file: Parameters<typeof textFile>[0],
  trust: Trust,
  from: ReadFor,
): Promise<MadeFile> {
  if (file.text.length > MAX_TEXT_BYTES) return textFile(file, trust);
  const made = await workOnText(app, "file", { file, trust }, from);
  return (
    made ?? { refusal: `${file.filename} was left out: it is built in a way that takes too long to read.` }
  );
}

/** Characters that each value counts at least, because even a short one is read in several ways. */
const LEAST_CHARS = 30;
/** What may be markup, or packed in a text: each such sign makes more ways to read it. */
const MARK = /[<>&*[\]{}\\`~#=%|+$]/g;
const MARK_CHARS = 40;
/** A text that goes to a worker in any case. */
const MANY_CHARS = 32_768;

/**
 * Returns how much work a value is, as the characters of plain text that are as much. The names of members count too: a
 * model writes them as well.
 */
export function charsIn(value: unknown): number {
  if (typeof value === "string") return charsOf(value);
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== "object" || value === null) return LEAST_CHARS;
  const inner = Array.isArray(value) ? value : Object.entries(value).flat();
  return inner.reduce<number>((sum, one) => sum + charsIn(one), LEAST_CHARS);
}

function charsOf(text: string): number {
  if (text.length > MANY_CHARS) return text.length;
  return Math.max(text.length, LEAST_CHARS) + MARK_CHARS * (text.match(MARK)?.length ?? 0);
}
