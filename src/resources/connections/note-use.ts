import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { LASTING_FAULTS, type MessageReason } from "../../reasons.ts";
import type { OpenConnection } from "./connections.ts";

/**
 * Shows on a connection that a message has failed because of it, or that it works again. Otherwise a connection would
 * show the outcome of its last test for as long as nobody tests it again.
 */
export async function noteUse(
  app: App,
  tx: Db,
  { id, trusted, failed, fallback_connection_ids }: OpenConnection,
  fault: { reason: MessageReason; error: string } | null,
): Promise<void> {
  // With a fallback, the answer may have come from that one.
  const is_well = failed && fallback_connection_ids.length === 0;
  const is_news = fault === null ? is_well : LASTING_FAULTS.has(fault.reason);
  if (trusted || !is_news) return;
  const status = fault === null ? "ok" : "error";
  await tx
    .updateTable("connections")
    .set({ status, last_error: fault?.error ?? null, last_tested_at: app.now() })
    .where("id", "=", id)
    .where("status", "!=", "needs_auth")
    .execute();
}
