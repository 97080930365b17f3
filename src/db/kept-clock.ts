import type { CalmClock, KeptTime } from "../lib/calm-clock.ts";
import { firstIdAt, millisecondsOf } from "../lib/first-id.ts";
import type { Db, Write } from "./database.ts";
import { saveEachMinute } from "./each-minute.ts";
import { keepNote, readNote } from "./installation.ts";

const ROW = "clock";

/** Returns what the last process stored about the time; undefined at the first start, and where it is damaged. */
export async function readKeptTime(db: Db): Promise<KeptTime | undefined> {
  const kept = await readNote<Partial<KeptTime> | null>(db, ROW);
  const is_whole = Number.isFinite(kept?.calm_ms) && Number.isFinite(kept?.wall_ms);
  return is_whole ? (kept as KeptTime) : undefined;
}

/** Returns the time in the id of the newest message before a moment, in milliseconds; 0 without any. */
export async function newestMessageMs(db: Db, { before_ms }: { before_ms: number }): Promise<number> {
  const below = firstIdAt(Math.ceil(before_ms / 1_000));
  const ids = db.selectFrom("messages").select("id").where("id", "<", below);
  const row = await ids.orderBy("id", "desc").limit(1).executeTakeFirst();
  return row ? millisecondsOf(row.id) : 0;
}

/** Stores what the clock knows, now, every minute, and on disposal. */
export async function keepClock(
  { write, calm }: { write: Write; calm: CalmClock },
  warn: (problem: unknown) => void,
): Promise<AsyncDisposable> {
  const save = async (): Promise<void> => {
    const kept = calm.kept();
    await write((tx) => keepNote(tx, ROW, kept));
  };
  // A disk that cannot be written must not keep a server from starting.
  const trySaving = (): Promise<void> => save().catch(warn);
  await trySaving();
  return saveEachMinute(trySaving);
}
