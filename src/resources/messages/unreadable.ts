import type { App } from "../../app.ts";
import type { Keeper } from "../../db/segment-rows.ts";
import { codeOf } from "../../errors.ts";

/** How a place of the disk says that it cannot be read. */
const FAULTS = { segments: /^(EIO|EUCLEAN|EBADMSG)$/, rows: /^SQLITE_IOERR/ };
/** A disk that recovers has done so by then. */
const LASTING_SECONDS = 3_600;
/** Between two failures that are further apart than this much may have been read. */
const STALE_SECONDS = 86_400;
/** Where so much fails at once, it is no single place of the disk. */
const MAX_KNOWN = 5_000;
/** So many of the oldest and of the newest others are read, to see whether it is the disk as a whole. */
const OTHERS = 4;

/** Since when what a row keeps cannot be read, on the clock of `steadyNow`; a restart begins anew. */
const failing = new WeakMap<App, Map<string, number>>();

interface Failed {
  id: string;
  /** Where that lies which cannot be read. */
  kept_in: keyof typeof FAULTS;
  error: unknown;
}

/**
 * Whether what a row keeps is as good as lost: reads of it have failed for an hour, and `readOther` can read one of the
 * others, if there are any. To be asked at every failure; `wasRead` takes note of what goes well.
 */
export async function isUnreadable(
  app: App,
  keeper: Keeper,
  { id, kept_in, error }: Failed,
  readOther: (id: string) => Promise<boolean>,
): Promise<boolean> {
  if (!FAULTS[kept_in].test(codeOf(error)) || !failsForLong(app, keyOf(keeper, id))) return false;
  // By the index alone where what the rows say may be what cannot be read.
  const all = app.db.selectFrom(keeper).select("id").where("id", "!=", id);
  const alike = kept_in === "rows" ? all : all.where("segment", "is not", null).where("lost_at", "is", null);
  // Both ends are tried, because neighbours may have gone with it.
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
