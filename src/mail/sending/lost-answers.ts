import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { OutgoingMailRow } from "../../db/schema.ts";
import { enqueue } from "../../jobs/queue.ts";

/** Has the schedule of a message told that its answer did not arrive: schedules are known above this row of the house. */
export async function settleLostLater(
  app: App,
  tx: Db,
  { id, message_id }: Pick<OutgoingMailRow, "id" | "message_id">,
): Promise<void> {
  const of_schedule = await tx
    .selectFrom("messages")
    .select("id")
    .where("id", "=", message_id ?? "")
    .where("schedule_id", "is not", null)
    .executeTakeFirst();
  if (of_schedule) await enqueue(app, tx, { kind: "settle_lost", payload: { outgoing_id: id } });
}
