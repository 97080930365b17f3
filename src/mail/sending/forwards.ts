import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { OutgoingMailRow } from "../../db/schema.ts";
import { enqueue } from "../../jobs/queue.ts";

/** Has what became of a forward written on its message: what it means there is known above this row of the house. */
export async function settleForwardLater(
  app: App,
  tx: Db,
  { id }: Pick<OutgoingMailRow, "id">,
): Promise<void> {
  await enqueue(app, tx, { kind: "settle_forward", payload: { outgoing_id: id } });
}
