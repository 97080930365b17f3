import type { App } from "../../app.ts";
import type { Keeper } from "../../db/segment-rows.ts";
import { codeOf } from "../../errors.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

/** The errors by which the disk says that a place cannot be read. */
const FAULTS = { segments: /^(EIO|EUCLEAN|EBADMSG)$/, rows: /^SQLITE_IOERR/ };
/** How long reads have to fail: by then a disk that recovers has done so. */
const LASTING_SECONDS = HOUR_SECONDS;
/** After this time without a failure, a new one begins anew: the row may have been read in between. */
const STALE_SECONDS = DAY_SECONDS;
/** The most rows that are remembered: where more fail, it is not for single places of the disk. */
const MAX_KNOWN = 5_000;
/** How many of the oldest and of the newest other rows are read, to see whether the disk as a whole fails. */
const OTHERS = 4;

/** Since when a row cannot be read, by the clock of `steadyNow`; a restart begins anew. */
const failing = new WeakMap<App, Map<string, number>>();

interface Failed {
  id: string;
  /** Where the bytes are that cannot be read. */
  kept_in: keyof typeof FAULTS;
  error: unknown;
}

/**
 * Whether what a row keeps counts as lost: reads of it have failed for an hour, and `readOther` can read one of the
 * other rows, if there are any. To be asked at each failure; `wasRead` is told of each success.
 */
export async function isUnreadable(
  app: App,
  keeper: Keeper,
  { id, kept_in, error }: Failed,
  readOther: (id: string) => Promise<boolean>,
): Promise<boolean> {
  if (!FAULTS[kept_in].test(codeOf(error)) || !failsForLong(app, keyOf(keeper, id))) return false;
  // For rows, only ids are selected, which the index has: other columns may be what cannot be read.
  const all = app.db.selectFrom(keeper).select("id").where("id", "!=", id);
  const alike = kept_in === "rows" ? all : all.where("segment", "is not", null).where("lost_at", "is", null);
  // Rows at both ends are tried, because the neighbours of a lost row may be lost with it.
  const oldest = await alike.orderBy("id").limit(OTHERS).execute();
  const newest = await alike.orderBy("id", "desc").limit(OTHERS).execute();
  for (const other of [...oldest, ...newest]) if (await readOther(other.id).catch(() => false)) return true;
  return oldest.length === 0;
}

export function wasRead(app: App, keeper: Keeper, id: string): void {
  failing.get(app)?.delete(keyOf(keeper, id));
}

function failsForLong(app: App, key: string): boolean {
  const known = failing.get(app) ?? new Map<string, number>();
  failing.set(app, known);
  const now = app.steadyNow();
  const seconds = now - (known.get(key) ?? Number.NEGATIVE_INFINITY);
  if (seconds < STALE_SECONDS) return seconds >= LASTING_SECONDS;
  known.set(key, now);
  const [oldest] = known.keys();
  if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
  return false;
}

function keyOf(keeper: Keeper, id: string): string {
  return `${keeper} ${id}`;
}
