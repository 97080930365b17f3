import { setImmediate } from "node:timers/promises";
import { createFairTurns, type FairTurns } from "../lib/fair-turns.ts";
import { timeoutError, waitLimit } from "../lib/wait-limit.ts";

/** Bytes of one answer that never wait. */
const SMALL_BYTES = 262_144;
/** Time for a large answer, since a slow one keeps others waiting. */
const LONGEST_MS = 30_000;

/** An answer of another server while it is received and parsed. */
export interface Incoming {
  /** Aborts with a TimeoutError when a large one takes more than 30 s from the moment it may be held. */
  signal: AbortSignal;
  /**
   * Must be called with the number of bytes held now, 0 at the end. Resolves once they may be: only so many answers of
   * more than 256 KB are held at once, and at most half of them by one account.
   */
  holds: (bytes: number) => Promise<void>;
}

export type OpenIncoming = (account: string) => Incoming;

/** Memory for parsing an answer of 8 MB, several times its size. */
const LARGE_ANSWER_MB = 64;

/** Returns how many large answers may be read at once: about as much memory as the runs may have. */
export function largeAnswersIn(memory_mb: number): number {
  return Math.max(2, Math.floor(memory_mb / LARGE_ANSWER_MB));
}

/** Creates turns for `at_once` large answers. */
export function createIncoming(at_once: number, longest_ms: number = LONGEST_MS): OpenIncoming {
  const turns = createFairTurns(at_once);
  return (account) => {
    const late = new AbortController();
    const onLate = (): void => late.abort(timeoutError());
    let turn: Turn | undefined;
    return {
      signal: late.signal,
      async holds(bytes) {
        if (bytes > SMALL_BYTES) {
          turn ??= takeTurn(turns, account, { longest_ms, onLate });
          return turn.begun;
        }
        const past = turn;
        turn = undefined;
        if (past === undefined) return;
        // The reader parses the end of an answer in this turn of the event loop.
        await setImmediate();
        past.end();
      },
    };
  };
}

interface Turn {
  begun: Promise<void>;
  end: () => void;
}

function takeTurn(
  turns: FairTurns,
  who: string,
  { longest_ms, onLate }: { longest_ms: number; onLate: () => void },
): Turn {
  const begun = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  void turns({ who }, async () => {
    begun.resolve();
    const limit = waitLimit(longest_ms, () => {
      onLate();
      over.resolve();
    });
    await over.promise;
    limit.clear();
  });
  return { begun: begun.promise, end: over.resolve };
}
