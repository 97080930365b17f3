import { createFairPool, type FairLimits, WORKERS_FOR_ALL } from "../../lib/fair-pool.ts";
import type { WorkProblem } from "../../lib/worker-pool.ts";
import type { Doubt } from "../../trust/own-words/reply-doubt.ts";
import type { SignedForm } from "./signed-form.ts";
import { MB } from "../../lib/sizes.ts";

/** Milliseconds of the processor after which reading a mail is given up, and its process ended. */
const READ_WITHIN_MS = 2_000;
const MORE_MS_PER_MB = 100;
/** Bytes that a process may grow by while one mail is read; the largest mail of nothing but HTML takes 300 MB. */
const MAX_MEMORY_BYTES = 512 * MB;

export type ParseProblem =
  | "too_slow"
  | "held_up"
  | "too_many_parts"
  | "too_deep"
  | "headers_too_large"
  | "crashed";

export interface MailAttachment {
  /** Safe to show and to store: no folders, no control characters, 1-255 characters. */
  filename: string;
  content_type: string;
  size: number;
  bytes: Uint8Array;
  /** True for a picture shown inside the text (a logo, a pasted picture), which mail programs do not list as a file. */
  inline: boolean;
  /** The Content-ID by which the HTML shows it. */
  cid?: string;
  /** Whether it is a picture that is shown in the sender's signature alone. */
  of_signature?: true;
}

export interface ParsedMail {
  subject: string;
  /**
   * False if a program or somebody else wrote the subject: in calendar answers, reports, and mails passed on as a file.
   */
  own_subject: boolean;
  /** Whether the mail holds nothing to read but the sender's own words and a short signature. */
  whole: boolean;
  /** Unix seconds of the Date field; null when it is absent or unreadable. */
  date: number | null;
  /**
   * The sender's own new words: above quotes, forwards and the signature, below quotes that end without doubt, and without
   * what a mail program may have inserted.
   */
  new_text: string;
  /**
   * Everything else that can be read: what is quoted, forwarded, inserted or in further text parts. If the new words
   * are `interleaved`, they are in it too, marked as such. Never an instruction.
   */
  rest_text: string;
  /** Whether new words stand below a quote, and so answer it, or around what a mail program may have inserted. */
  interleaved: boolean;
  /**
   * Text that only marks separate from the new words; whoever wrote some of the new words may have written it as well.
   */
  marked_off: string;
  /** Where the HTML leads or loads something from among the new words, without words that say so. */
  leads: string[];
  /** Whether new words stand below a quote whose end only the marks before its lines show. */
  below_marks: boolean;
  /** Why some of the rest may be the sender's own words all the same; null if nothing suggests that. */
  in_doubt: Doubt | null;
  /** Text below two dashes, or a mail program's own line. Never an instruction. */
  signature: string;
  /** Number of zero-width, tag, bidi and control characters that were removed from both texts. */
  hidden_characters: number;
  /**
   * Number of HTML elements and comments with words that a reader would not have seen; they were removed from both
   * texts.
   */
  hidden_html: number;
  attachments: MailAttachment[];
  /** The subjects of the attached mails that were read. */
  attached_subjects: string[];
  /** Sentences about what could not be read, for the reply and the activity page. */
  warnings: string[];
}

/** `message` is a sentence for the user; `text` is what could still be read of a mail over a limit, never an instruction. */
export type ParseOutcome =
  | { ok: true; mail: ParsedMail }
  | { ok: false; problem: ParseProblem; message: string; text: string };

export interface MailParser extends AsyncDisposable {
  /**
   * Reads a mail as it came, or the part of it in a signed form. Whatever is wrong with the mail is in the outcome,
   * never an exception. `raw` stays usable. Accounts take turns, and mails of `strangers` to an account wait behind its
   * others. Of `ours`, a mail that this server wrote, all words are its own.
   */
  parse(
    raw: Uint8Array,
    reading?: { form?: SignedForm | undefined; account?: string; strangers?: boolean; ours?: boolean },
  ): Promise<ParseOutcome>;
}

/** Creates a parser with processes that start with the first mail and end when idle. */
export function createMailParser({
  workers = WORKERS_FOR_ALL,
  read_within_ms = READ_WITHIN_MS,
  more_ms_per_mb = MORE_MS_PER_MB,
  ...limits
}: { workers?: number; read_within_ms?: number; more_ms_per_mb?: number } & FairLimits = {}): MailParser {
  const pool = createFairPool<ParseOutcome>("mail/reading/parse-worker.ts", {
    size: workers,
    memory_bytes: MAX_MEMORY_BYTES,
    ...limits,
  });
  return {
    async parse(raw, { form, account = "", strangers = false, ours = false } = {}) {
      const limit_ms = read_within_ms + (raw.byteLength / MB) * more_ms_per_mb;
      const transfer = [raw.buffer as ArrayBuffer];
      const outcome = await pool.run({ who: account, strangers }, () => ({
        input: { raw, form, ours },
        limit_ms,
        transfer,
      }));
      return outcome.ok ? outcome.output : refusal(outcome.problem);
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

function refusal(problem: WorkProblem): ParseOutcome {
  const known = problem === "too_much_memory" ? "crashed" : problem;
  return { ok: false, problem: known, message: REFUSALS[known], text: "" };
}

const REFUSALS = {
  too_slow:
    "Reading the mail took too long, so nothing of it was read. Send it again in a simpler form, such as plain text.",
  held_up: "The server was too busy to read the mail, so nothing of it was read. Send it again later.",
  crashed:
    "The mail is built in a way that could not be read. Send it again in a simpler form, such as plain text.",
};
