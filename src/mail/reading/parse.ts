import { createFairPool, THREADS_FOR_ALL } from "../../lib/fair-pool.ts";
import type { WorkProblem } from "../../lib/worker-pool.ts";
import type { Doubt } from "../../trust/own-words/reply-doubt.ts";
import type { SignedForm } from "./signed-form.ts";

/** A mail that takes longer than this to read is given up, and the thread reading it is ended. */
const READ_WITHIN_MS = 2_000;
const MORE_MS_PER_MB = 100;
const MB = 1024 * 1024;

export type ParseProblem = "too_slow" | "too_many_parts" | "too_deep" | "headers_too_large" | "crashed";

export interface MailAttachment {
  /** Safe to show and to store: no folders, no control characters, 1-255 characters. */
  filename: string;
  content_type: string;
  size: number;
  bytes: Uint8Array;
  /** Shown inside the text (a logo, a pasted picture), not listed as a file by mail programs. */
  inline: boolean;
}

export interface ParsedMail {
  subject: string;
  /** False where a program or somebody else wrote the subject: calendar answers, reports, mails passed on as a file. */
  own_subject: boolean;
  /** Whether the sender's own words are all there is to be read in it, but for a short signature. */
  whole: boolean;
  /** Unix seconds of the Date field; null when it is absent or unreadable. */
  date: number | null;
  /**
   * The sender's own new words: above quotes, forwards and the signature, below quotes that end without doubt, and without
   * what a mail program may have inserted.
   */
  new_text: string;
  /**
   * Everything else that can be read: quoted, forwarded, inserted, further text parts; with the new words among it, named as such, if
   * they are `interleaved`. Never an instruction.
   */
  rest_text: string;
  /** Whether new words stand below a quote, and so answer it, or around what a mail program may have inserted. */
  interleaved: boolean;
  /** What nothing but marks in the text parts from the new words; whoever wrote some of these may have written it as well. */
  marked_off: string;
  /** Whether new words stand below a quote of which nothing but marks before its lines says where it ends. */
  below_marks: boolean;
  /** Why some of the rest may be the sender's own all the same; null where nothing speaks for that. */
  in_doubt: Doubt | null;
  /** What stands below two dashes, or a mail program says of itself. Never an instruction. */
  signature: string;
  /** Zero-width, tag, bidi and control characters taken out of both texts. */
  hidden_characters: number;
  /** HTML elements and comments whose words a reader would not have seen; taken out of both texts. */
  hidden_html: number;
  attachments: MailAttachment[];
  /** Sentences about what could not be read, for the reply and the activity page. */
  warnings: string[];
}

/** `message` is a sentence for the user; `text` is what could still be read of a mail over a limit, never an instruction. */
export type ParseOutcome =
  | { ok: true; mail: ParsedMail }
  | { ok: false; problem: ParseProblem; message: string; text: string };

export interface MailParser extends AsyncDisposable {
  /**
   * Reads a mail as it came, or what of it is in a signed form. Whatever is wrong with it is in the outcome, never an
   * exception. `raw` stays usable. Accounts have their turns, and what `strangers` wrote to one waits behind the rest.
   */
  parse(
    raw: Uint8Array,
    reading?: { form?: SignedForm | undefined; account?: string; strangers?: boolean },
  ): Promise<ParseOutcome>;
}

/** Reads mails on threads of their own, started by the first mail and ended when idle. */
export function createMailParser({
  workers = THREADS_FOR_ALL,
  readWithinMs = READ_WITHIN_MS,
  moreMsPerMb = MORE_MS_PER_MB,
}: { workers?: number; readWithinMs?: number; moreMsPerMb?: number } = {}): MailParser {
  const pool = createFairPool<ParseOutcome>("mail/reading/parse-worker.ts", { size: workers });
  return {
    async parse(raw, { form, account = "", strangers = false } = {}) {
      const limitMs = readWithinMs + (raw.byteLength / MB) * moreMsPerMb;
      const outcome = await pool.run({ who: account, strangers }, () => {
        const copy = new Uint8Array(raw);
        return { input: { raw: copy, form }, limitMs, transfer: [copy.buffer] };
      });
      return outcome.ok ? outcome.output : refusal(outcome.problem);
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

function refusal(problem: WorkProblem): ParseOutcome {
  const message =
    problem === "too_slow"
      ? "Reading the mail took too long, so nothing of it was read. Send it again in a simpler form, such as plain text."
      : "The mail is built in a way that could not be read. Send it again in a simpler form, such as plain text.";
  return { ok: false, problem: problem === "too_slow" ? problem : "crashed", message, text: "" };
}
