import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow } from "../../db/schema.ts";

/**
 * Marks the other attempts of a message whose retry succeeded as redone, in the transaction that deletes the retry:
 * none of them may be done once more.
 */
export async function markRedone(
  tx: Db,
  { state, retry_of }: Pick<MessageRow, "state" | "retry_of">,
): Promise<void> {
  if (state === "done" && retry_of !== null) await mark(tx, { first: retry_of });
}

const mark = prepared((db, { first }: { first: string }) =>
  db
    .updateTable("messages")
    .set({ redone: 1 })
    .where("state", "=", "failed")
    .where((eb) => eb.or([eb("id", "=", first), eb("retry_of", "=", first)])),
);
