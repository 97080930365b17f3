import type { CalmClock, KeptTime } from "../lib/calm-clock.ts";
import { firstIdAt, millisecondsOf } from "../lib/first-id.ts";
import { storedJson } from "../lib/stored-json.ts";
import type { Db, Write } from "./database.ts";

const ROW = "clock";
const SAVE_EVERY_MS = 60_000;

/** What the last process knew of the time; undefined at the first start. */
export async function readKeptTime(db: Db): Promise<KeptTime | undefined> {
  const row = await db.selectFrom("installation").select("value").where("name", "=", ROW).executeTakeFirst();
  return row && storedJson<KeptTime | undefined>(Buffer.from(row.value).toString(), undefined);
}

/** When the newest message from before a moment was made, by its id; 0 without any. */
export async function newestMessageMs(db: Db, { before_ms }: { before_ms: number }): Promise<number> {
  const below = firstIdAt(Math.ceil(before_ms / 1_000));
  const ids = db.selectFrom("messages").select("id").where("id", "<", below);
  const row = await ids.orderBy("id", "desc").limit(1).executeTakeFirst();
  return row ? millisecondsOf(row.id) : 0;
}

/** Writes down what is known of the time now, every minute, and at the end. */
export async function keepClock(
  { write, calm }: { write: Write; calm: CalmClock },
  warn: (problem: unknown) => void,
): Promise<AsyncDisposable> {
  const save = async (): Promise<void> => {
    const value = Buffer.from(JSON.stringify(calm.kept()));
    await write((tx) =>
      tx
        .insertInto("installation")
        .values({ name: ROW, value })
        .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
        .execute(),
    );
  };
  // A disk that takes nothing keeps no server from its start.
  await save().catch(warn);
  const timer = setInterval(() => void save().catch(warn), SAVE_EVERY_MS);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await save().catch(warn);
    },
  };
}
