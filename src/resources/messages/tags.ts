import type { Db } from "../../db/database.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** Adds tags to a message, each once. */
export async function addTags(tx: Db, { id, tags: more }: { id: string; tags: string[] }): Promise<void> {
  if (more.length === 0) return;
  const row = tx.selectFrom("messages").select("tags").where("id", "=", id);
  const { tags } = await row.executeTakeFirstOrThrow();
  const all = [...new Set([...storedJson<string[]>(tags, []), ...more])];
  await tx
    .updateTable("messages")
    .set({ tags: JSON.stringify(all) })
    .where("id", "=", id)
    .execute();
}
