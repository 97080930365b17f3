import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { AppError } from "../../errors.ts";
import { normalTags } from "../../lib/tags.ts";
import { ownMessage } from "./messages.ts";

/** Replaces the tags of a message of the user's own. They help to find it, and do nothing else. */
export async function tagMessage(
  app: App,
  user: UserRow,
  { id, tags: given }: { id: string; tags: string[] },
): Promise<void> {
  const tags = normalTags(given);
  await app.write(async (tx) => {
    const [message] = await ownMessage(tx, { user_id: user.id, id, since: historySince(app, user) });
    if (!message) throw new AppError("not_found", "There is no such message.");
    await tx
      .updateTable("messages")
      .set({ tags: JSON.stringify(tags) })
      .where("id", "=", id)
      .execute();
    afterCommit(tx, () => app.changes.tell(user.id, id));
  });
}

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
