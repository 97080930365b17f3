import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import { eraseRestLater } from "../../jobs/erase.ts";
import { ownEndpoint } from "./endpoints.ts";
import { cancelAttempts } from "./pending.ts";

/** Rows in one step. */
const ROWS = 50;

/**
 * Deletes an endpoint with its deliveries, those that wait too; where there are many, a job deletes them some at a
 * time.
 */
export async function deleteEndpoint(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "webhook_deleted");
    const row = await ownEndpoint(tx, caller.user, id);
    await tx
      .updateTable("webhook_endpoints")
      .set({ enabled: 0, disabled_reason: null, event_types: "[]", deleted_at: app.now() })
      .where("id", "=", row.id)
      .execute();
    await cancelAttempts(tx, row.id);
    if (await clearEndpoint(tx, row)) await eraseRestLater(app, tx, { endpoint_id: row.id });
  });
}

/** Deletes some deliveries of a deleted endpoint, and with the last of them itself; false once it is gone. */
export async function clearEndpoint(tx: Db, { id }: { id: string }): Promise<boolean> {
  const cleared = await forgetDeliveries(tx, { id });
  if (cleared.length === ROWS) return true;
  await tx.deleteFrom("webhook_endpoints").where("id", "=", id).where("deleted_at", "is not", null).execute();
  return false;
}

const forgetDeliveries = prepared((db, endpoint: { id: string }) =>
  db
    .deleteFrom("webhook_deliveries")
    .where("id", "in", (eb) =>
      eb.selectFrom("webhook_deliveries").select("id").where("endpoint_id", "=", endpoint.id).limit(ROWS),
    )
    .returning("id"),
);
