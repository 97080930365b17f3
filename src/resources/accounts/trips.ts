import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";

export const MAX_TRIPS = 5;
export const MAX_WAITING = 20;
/** What a refused caller is told to wait: most other servers answer sooner. */
const RETRY_SECONDS = 10;

interface Trips {
  under_way: number;
  waiting: (() => void)[];
}

const byAccount = new Map<string, Trips>();

/**
 * Begins a request that waits for somebody else's server, over HTTP or for the DNS, whose address its account may
 * have chosen. What is asked at once for all accounts is bounded; so that no account takes all of that, five of one
 * go on at once, and more wait. Disposing of what is returned ends the request. Throws `rate_limited` where 20 of the
 * account wait already.
 */
export async function beginTrip({ id }: Pick<UserRow, "id">): Promise<Disposable> {
  const trips = byAccount.get(id) ?? { under_way: 0, waiting: [] };
  if (trips.waiting.length >= MAX_WAITING)
    throw new AppError(
      "rate_limited",
      `${MAX_TRIPS + MAX_WAITING} requests of this account wait for the answers of other servers already.`,
      { fix: "Wait until some of them are answered.", retry_after_seconds: RETRY_SECONDS },
    );
  byAccount.set(id, trips);
  if (trips.under_way >= MAX_TRIPS) await new Promise<void>((begin) => trips.waiting.push(begin));
  else trips.under_way += 1;
  return { [Symbol.dispose]: () => endTrip(id, trips) };
}

/** Ends a request; the next one that waits takes its place. */
function endTrip(id: string, trips: Trips): void {
  const next = trips.waiting.shift();
  if (next) return next();
  trips.under_way -= 1;
  if (trips.under_way === 0) byAccount.delete(id);
}
