import type { App } from "../app.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { MAX_IN_HAND } from "../lib/paced-turns.ts";
import { isLike, SAFE_METHODS } from "./request.ts";

const RETRY_SECONDS = 1;
/** Writes of contexts take turns as well: they hold up to 256 KB, which this thread reads and writes. */
const CONTEXTS = /^\/contexts(?:\/|$)/;

const ends = new WeakMap<Request, () => void>();

/**
 * Waits, if need be, for the turn of a request whose answer may keep this thread busy: reads of an account's data,
 * whose size shows only while reading. Throws `rate_limited` when the account has too many such requests in progress.
 * `endTurn` must end the turn.
 */
export function awaitTurn(app: App, { id }: UserRow, request: Request): Promise<void> | undefined {
  if (!SAFE_METHODS.has(request.method) && !isLike(request, CONTEXTS)) return undefined;
  const turn = app.requests(id);
  if (!turn)
    throw new AppError("rate_limited", `${MAX_IN_HAND} requests of this account are in hand already.`, {
      fix: "Wait for the answers of some of them before you send more.",
      retry_after_seconds: RETRY_SECONDS,
    });
  if (turn instanceof Promise) return turn.then((end) => void ends.set(request, end));
  ends.set(request, turn);
  return undefined;
}

/** Ends the turn of a request. Must be called once it has been answered. */
export function endTurn(request: Request): void {
  ends.get(request)?.();
  ends.delete(request);
}
