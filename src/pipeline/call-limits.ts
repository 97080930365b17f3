import type { App } from "../app.ts";
import { isLong } from "../db/long-bytes.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { MINUTE_SECONDS, spanWords } from "../lib/durations.ts";
import type { RateVerdict } from "../lib/rate-limit.ts";
import type { IncomingFile } from "../inbound/accept.ts";
import { remainingCredits } from "../resources/billing/ledger.ts";
import { planLimits } from "../resources/billing/plans.ts";
import { whyFull } from "../resources/billing/storage.ts";
import { bytesOf } from "../resources/messages/stored-files.ts";

/** Counts a call, and throws `rate_limited` for one too many in a minute. */
export function takeRate(app: App, user: UserRow, onRate: (rate: RateVerdict) => void): void {
  const { key, limit, rule } = rateOf(app, user);
  const rate = app.limiter.take(key, rule);
  onRate(rate);
  if (rate.ok) return;
  throw new AppError("rate_limited", `More than ${limit} calls in a minute.`, {
    retry_after_seconds: rate.retry_after_seconds,
    fix: `Try again in ${spanWords(rate.retry_after_seconds)}.`,
  });
}

function rateOf(app: App, { id, plan }: UserRow) {
  const limit = planLimits(app.config, plan).route_per_minute;
  return { key: `route:${id}`, limit, rule: { limit, window_seconds: MINUTE_SECONDS } };
}

/**
 * Returns what of a call's files the transaction that accepts it may store: all, unless it is clear by now that it will be refused,
 * as the disk must not write what is sent in vain.
 */
export async function mayStoreCall(
  app: App,
  user: UserRow,
  { files, bytes }: { files: IncomingFile[]; bytes: number },
): Promise<Uint8Array[]> {
  const stores = bytesOf(files);
  if (!stores.some(isLong)) return [];
  const { key, rule } = rateOf(app, user);
  if (!app.limiter.peek(key, rule).ok || (await remainingCredits(app, app.db, user)) <= 0) return [];
  return (await whyFull(app, app.db, user, bytes)) ? [] : stores;
}
