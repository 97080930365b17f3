import type { MessageRow } from "./schema.ts";

/** Whether nobody of the household caused a message; it is them who try a failed one again, whoever wrote it. */
export function isOfStrangers({ authority, retry_of }: Pick<MessageRow, "authority" | "retry_of">): boolean {
  return retry_of === null && authority !== "owner" && authority !== "listed";
}
