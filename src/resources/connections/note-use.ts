import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { MessageReason } from "../../reasons.ts";
import type { OpenConnection } from "./connections.ts";

/** Faults that the next message would meet as well, and that a test would find. */
export const LASTING: ReadonlySet<MessageReason> = new Set<MessageReason>([
  "invalid_credentials",
  "forbidden",
  "model_not_found",
  "quota_exceeded",
  "unreachable",
  "tls_error",
  "blocked_address",
]);

/**
 * Shows on a connection that a message has failed because of it, and that one has been answered since: else it would be
 * said to work for as long as nobody tests it.
 */
export async function noteUse(
  app: App,
  tx: Db,
  { id, trusted, failed, fallback_connection_id }: OpenConnection,
  fault: { reason: MessageReason; error: string } | null,
): Promise<void> {
  // Another one may have answered in its place.
  const isWell = failed && fallback_connection_id === null;
  const isNews = fault === null ? isWell : LASTING.has(fault.reason);
  if (trusted || !isNews) return;
  const status = fault === null ? "ok" : "error";
  await tx
    .updateTable("connections")
    .set({ status, last_error: fault?.error ?? null, last_tested_at: app.now() })
    .where("id", "=", id)
    .where("status", "!=", "needs_auth")
    .execute();
}
