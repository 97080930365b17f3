import type { RateLimiter, RateRule, RateVerdict } from "../lib/rate-limit.ts";
import { type Db, unlessCommitted, type Write } from "./database.ts";
import { saveEachMinute } from "./each-minute.ts";

const ROWS_AT_ONCE = 500;

/** Counts a use against a rate limit within an operation of `tx`; if the operation is undone, so is the use. */
export function takeTurn(
  { limiter }: { limiter: RateLimiter },
  tx: Db,
  { key, rule }: { key: string; rule: RateRule },
): RateVerdict {
  const verdict = limiter.take(key, rule);
  if (verdict.ok) unlessCommitted(tx, () => limiter.giveBack(key, rule));
  return verdict;
}

/** Loads the rate limits of the last process, then stores them every minute and on disposal. */
export async function keepRateLimits(
  { db, write, limiter }: { db: Db; write: Write; limiter: RateLimiter },
  warn: (problem: unknown) => void,
): Promise<AsyncDisposable> {
  const rows = await db.selectFrom("rate_limits").selectAll().execute();
  limiter.restore(rows.map(({ key, full_at }) => [key, full_at]));
  return saveEachMinute(() => write((tx) => saveRateLimits(tx, limiter)).catch(warn));
}

async function saveRateLimits(tx: Db, limiter: RateLimiter): Promise<void> {
  await tx.deleteFrom("rate_limits").execute();
  const rows = limiter.lasting().map(([key, full_at]) => ({ key, full_at }));
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE)
    await tx
      .insertInto("rate_limits")
      .values(rows.slice(start, start + ROWS_AT_ONCE))
      .execute();
}
