import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { type Going, type Objection, objectionToPlaces } from "../trust/guard/guard.ts";
import { alikeOnes, type TitleToFind, titleToFind } from "../trust/guard/titles.ts";
import type { Place, ToolFile } from "../trust/guard/tool.ts";
import { buildMail, type MailParts } from "../mail/writing/compose.ts";
import { markdownToHtml } from "../mail/writing/html-writer.ts";
import { fencesOf } from "../mail/writing/markdown.ts";
import type { Picture } from "../mail/writing/pictures.ts";
import { type Written, written, writtenNotes } from "../mail/writing/written.ts";
import { parseJson } from "../lib/quote.ts";
import { type Fenced, fence } from "../trust/shown/fence.ts";
import { guardMarkdown, learnFrom, linkGuard, madeUpLinks, type Trust } from "../trust/shown/links.ts";
import { MAX_TEXT_BYTES, textFile } from "./made-files.ts";

/** What is done to texts that others wrote, by its name. Each takes and gives what can be sent to a thread. */
export const TEXT_WORK = {
  /** Material between its marks. */
  fence: ({ material, nonce, max_chars }: { material: string; nonce: string; max_chars: number }): Fenced =>
    fence(material, nonce, max_chars),
  /** Markdown without the addresses that may not stay. */
  guard: ({ markdown, trust }: { markdown: string; trust: Trust }): Guarded => {
    const links = linkGuard(trust);
    return { text: trust.tainted ? guardMarkdown(markdown, links) : markdown, left_out: links.left_out };
  },
  /** Markdown as HTML; in it only the links that may stay. */
  html: ({ markdown, trust }: { markdown: string; trust: Trust }): Guarded => {
    const links = linkGuard(trust);
    return { text: markdownToHtml(markdown, links), left_out: links.left_out };
  },
  /** An answer as the words of a mail. */
  write: ({ markdown, trust, pictures }: { markdown: string; trust: Trust; pictures: Picture[] }): Wrote => {
    const guard = linkGuard(trust);
    return { ...written(markdown, { guard, pictures }), left_out: guard.left_out };
  },
  notes: ({ markdown, trust }: { markdown: string; trust: Trust }): Written =>
    writtenNotes(markdown, linkGuard(trust)),
  fences: ({ markdown }: { markdown: string }): { language: string; content: string }[] => fencesOf(markdown),
  file: ({ file, trust }: { file: Parameters<typeof textFile>[0]; trust: Trust }): MadeFile =>
    textFile(file, trust),
  build: (parts: MailParts): Promise<Uint8Array> => buildMail(withBuffers(parts)),
  /** What a round of calls brings: the addresses that its arguments made up, and the material it adds. */
  learn: ({ trust, args, said, made_up }: Round): Learnt => {
    const asked = JSON.stringify(args.map((text) => parseJson(text) ?? text));
    const all = new Set([...made_up, ...madeUpLinks(trust, asked)]);
    const fresh: Trust = { ...trust, material: "" };
    for (const text of said) learnFrom(fresh, { text, made_up: all });
    return { made_up: [...all], material: fresh.material };
  },
  /** Whether a call may go where it would: all that others have found and written, held against the instruction. */
  places: (going: Going): Objection | null => objectionToPlaces(going),
  title: ({ id, going }: { id: string; going: Going }): TitleToFind | null => titleToFind(id, going),
  alike: ({ title, places, going }: { title: string; places: Place[]; going: Going }) =>
    alikeOnes(title, places, going),
};

/** To a thread they come as mere bytes. */
function withBuffers(parts: MailParts): MailParts {
  for (const one of parts.attachments ?? [])
    if (one.content instanceof Uint8Array) one.content = Buffer.from(one.content);
  return parts;
}

interface Wrote extends Written {
  /** How many addresses were. */
  left_out: number;
}

export interface Guarded {
  text: string;
  /** How many addresses were. */
  left_out: number;
}

export type MadeFile = ToolFile | { refusal: string };

interface Round {
  trust: Trust;
  /** The arguments of its calls, as the model wrote them. */
  args: string[];
  /** What the model was shown of their results. */
  said: string[];
  made_up: string[];
}

export interface Learnt {
  made_up: string[];
  material: string;
}

export type Threads = Pick<App, "texts" | "log">;
type Works = typeof TEXT_WORK;
export type WorkName = keyof Works;

/** To the thread. */
export interface SentWork {
  name: WorkName;
  input: unknown;
}

/** Shorter texts are worked on right here, in a few milliseconds at the worst; Markdown has more ways to take its time. */
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
  // One length times another one.
  places: 4_096,
  title: 4_096,
  alike: 4_096,
};
/** A text that takes longer is given up, and the thread working on it ended. */
const WORK_WITHIN_MS = 3_000;
const MORE_MS_PER_MB = 2_000;
const MB = 1_048_576;

/**
 * Does a piece of work on texts of others without holding up everybody else: a long one on a thread, where the account
 * that it is done for has its turn. Undefined for one that took too long, or more memory than there is.
 */
export async function workOn<Name extends WorkName>(
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
  const job = { input: sent, limitMs: WORK_WITHIN_MS + (chars / MB) * MORE_MS_PER_MB };
  const outcome = await app.texts.run({ who: account, strangers }, () => job);
  if (outcome.ok) return outcome.output as Output;
  app.log.info({ work: name, chars, problem: outcome.problem }, "a text was given up");
  return undefined;
}

/** A file of text as `textFile` makes it. */
export async function fileOf(
  app: Threads,
  file: Parameters<typeof textFile>[0],
  trust: Trust,
  from: ReadFor,
): Promise<MadeFile> {
  if (file.text.length > MAX_TEXT_BYTES) return textFile(file, trust);
  const made = await workOn(app, "file", { file, trust }, from);
  return (
    made ?? { refusal: `${file.filename} was left out: it is built in a way that takes too long to read.` }
  );
}

function charsIn(value: unknown): number {
  if (typeof value === "string") return value.length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, inner) => sum + charsIn(inner), 0);
}
