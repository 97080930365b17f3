import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { releaseCredit } from "./ledger.ts";

/** The newest entries of the ledger that are looked at: older ones were looked at after an earlier start. */
const SWEPT_ENTRIES = 20_000;

/**
 * Releases the reserves of runs that have ended or are gone, and returns their number. No crash leaves such a reserve,
 * because it is made and ended in the transactions that begin and end its run; this is for cases that nobody thought of.
 */
export async function releaseDeadReserves(app: App, tx: Db): Promise<number> {
  const { newest } = await tx
    .selectFrom("ledger")
    .select((eb) => eb.fn.max("id").as("newest"))
    .executeTakeFirstOrThrow();
  const dead = await tx
    .selectFrom("ledger as reserve")
    .leftJoin("ledger as ended", (join) =>
      join.onRef("ended.message_id", "=", "reserve.message_id").on("ended.kind", "in", ["settle", "release"]),
    )
    .leftJoin("messages as running", (join) =>
      join.onRef("running.id", "=", "reserve.message_id").on("running.state", "=", "received"),
    )
    .leftJoin("replays as pending", (join) =>
      join.onRef("pending.id", "=", "reserve.message_id").on("pending.state", "=", "received"),
    )
    .select("reserve.message_id")
    .where("reserve.id", ">", (newest ?? 0) - SWEPT_ENTRIES)
    .where("reserve.kind", "=", "reserve")
    .where("ended.id", "is", null)
    .where("running.id", "is", null)
    .where("pending.id", "is", null)
    .execute();
  for (const { message_id } of dead)
    if (message_id !== null) await releaseCredit(app, tx, { id: message_id });
  return dead.length;
}
