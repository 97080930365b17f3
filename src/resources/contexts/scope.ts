import { storedJson } from "../../lib/stored-json.ts";
import type { Db } from "../../db/database.ts";
import type { ContextRow, InboxRow, UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";

/** The contexts of an inbox: those that name it, and whether it has those for every inbox as well. */
export interface ContextList {
  id: string;
  listed: string[];
  every: boolean;
}

/** All inboxes of a user, the oldest first. */
export async function contextLists(db: Db, user: Pick<UserRow, "id">): Promise<ContextList[]> {
  const rows = await db
    .selectFrom("inboxes")
    .select(["id", "context_ids", "every_context"])
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  return rows.map((row) => ({ id: row.id, listed: listedIn(row), every: row.every_context === 1 }));
}

/** The contexts that name an inbox. */
export function listedIn({ context_ids }: Pick<InboxRow, "context_ids">): string[] {
  return context_ids === null ? [] : storedJson<string[]>(context_ids, []);
}

/** The inboxes that a context is for; null: every one. */
export function inboxesFor(
  { id, every_inbox }: Pick<ContextRow, "id" | "every_inbox">,
  lists: ContextList[],
): string[] | null {
  if (every_inbox === 1) return null;
  return lists.filter(({ listed }) => listed.includes(id)).map((inbox) => inbox.id);
}

/**
 * Sets the inboxes that a context is for; null for every one. Inboxes that have the contexts for every inbox need not
 * name it then, and inboxes that choose theirs themselves keep their choice.
 */
export async function setInboxes(
  tx: Db,
  user: UserRow,
  { context_id, inbox_ids }: { context_id: string; inbox_ids: string[] | null },
): Promise<void> {
  const lists = await contextLists(tx, user);
  const missing = (inbox_ids ?? []).findIndex((id) => !lists.some((inbox) => inbox.id === id));
  if (missing !== -1) throw invalid(`body.inbox_ids.${missing}`, "inbox_not_found", "inbox not found");
  for (const inbox of lists) {
    const is_listed = inbox.listed.includes(context_id);
    const wanted = inbox_ids === null ? is_listed && !inbox.every : inbox_ids.includes(inbox.id);
    if (wanted === is_listed) continue;
    const others = inbox.listed.filter((id) => id !== context_id);
    await writeList(tx, inbox.id, wanted ? [...others, context_id] : others);
  }
}

/** Takes a context off the lists of all inboxes. */
export async function leaveInboxes(tx: Db, user: UserRow, context_id: string): Promise<void> {
  await setInboxes(tx, user, { context_id, inbox_ids: [] });
}

/** The contexts that an inbox has only because its list names them. */
export async function onlyListed(tx: Db, inbox: Pick<InboxRow, "context_ids">): Promise<string[]> {
  const listed = listedIn(inbox);
  if (listed.length === 0) return [];
  const rows = await tx
    .selectFrom("contexts")
    .select("id")
    .where("id", "in", listed)
    .where("every_inbox", "=", 0)
    .execute();
  const kept = new Set(rows.map(({ id }) => id));
  return listed.filter((id) => kept.has(id));
}

async function writeList(tx: Db, inbox_id: string, ids: string[]): Promise<void> {
  await tx
    .updateTable("inboxes")
    .set({ context_ids: JSON.stringify(ids) })
    .where("id", "=", inbox_id)
    .execute();
}
