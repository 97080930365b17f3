import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { inboxIds } from "./room.ts";

type Account = Pick<UserRow, "id">;

/** The inbox of calls that name none: the one that was chosen, else the oldest; undefined without any. */
export async function defaultInboxId(db: Db, { id: user_id }: Account): Promise<string | undefined> {
  const [user] = await choiceOf(db, { user_id });
  const ids = (await inboxIds(db, { user_id })).map(({ id }) => id);
  return ids.find((id) => id === user?.default_inbox_id) ?? ids[0];
}

/** The inbox that a request names, or else the default one. Throws `inbox_required` where there is none at all. */
export async function namedOrDefaultInboxId(
  db: Db,
  user: Account,
  named: string | undefined,
): Promise<string> {
  const id = named ?? (await defaultInboxId(db, user));
  if (id !== undefined) return id;
  throw new AppError("inbox_required", "This account has no inbox.", {
    fix: "Make one on the page “Inboxes” (`POST /inboxes`).",
  });
}

/**
 * Does what the member `is_default` of an inbox asks for. There is always a default: it ends only when another inbox
 * takes its place.
 */
export async function setDefault(
  tx: Db,
  user: Account,
  { id, is_default }: { id: string; is_default: boolean | undefined },
): Promise<void> {
  if (is_default === true) return choose(tx, user, id);
  if (is_default === false && (await defaultInboxId(tx, user)) === id)
    throw invalid(
      "body.is_default",
      "needs_another",
      "One inbox is always the default: make another one the default instead.",
    );
}

/** Called when an inbox is deleted. If it was the default, the oldest of the others takes its place. */
export async function leaveDefault(tx: Db, user: Account, id: string): Promise<void> {
  const [row] = await choiceOf(tx, { user_id: user.id });
  if (row?.default_inbox_id === id) await choose(tx, user, null);
}

async function choose(tx: Db, user: Account, default_inbox_id: string | null): Promise<void> {
  await tx.updateTable("users").set({ default_inbox_id }).where("id", "=", user.id).execute();
}

const choiceOf = remembered((db, key: { user_id: string }) =>
  db.selectFrom("users").select("default_inbox_id").where("id", "=", key.user_id),
);
