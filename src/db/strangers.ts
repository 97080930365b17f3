import type { MessageRow } from "./schema.ts";

/**
 * Returns whether a message was caused by a stranger. A retry was not: only the owner or listed senders retry a failed
 * message, whoever wrote it.
 */
export function isCausedByStranger({
  authority,
  retry_of,
}: Pick<MessageRow, "authority" | "retry_of">): boolean {
  return retry_of === null && authority !== "owner" && authority !== "listed";
}
