import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";

export const MAX_TRIPS = 5;
export const MAX_WAITING = 20;
/** What others are given to answer in; most answer sooner. */
const RETRY_SECONDS = 10;

interface Trips {
  under_way: number;
  waiting: (() => void)[];
}

const byAccount = new Map<string, Trips>();

/**
 * For a request that waits for a server of others, whose address its account may have chosen: what all accounts ask others
 * at once, over HTTP or of the DNS, is bounded in all. Five of an account are under way at once, and end with the disposal
 * of what is given; more of them wait. Throws `rate_limited` where 20 wait already.
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

/** The next one takes its place. */
function endTrip(id: string, trips: Trips): void {
  const next = trips.waiting.shift();
  if (next) return next();
  trips.under_way -= 1;
  if (trips.under_way === 0) byAccount.delete(id);
}
