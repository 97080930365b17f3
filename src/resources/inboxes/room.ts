import type { App } from "../../app.ts";
import { planLimits, refuseBeyondPlan } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";

type Account = Pick<UserRow, "id" | "plan">;

/** Whether the plan of its account has room for an inbox: the oldest ones have it, and the others rest. */
export async function hasRoom(
  app: App,
  db: Db,
  user: Account,
  { id }: Pick<InboxRow, "id">,
): Promise<boolean> {
  const { rank } = await rankOf(db, user, id);
  return rank <= planLimits(app.config, user.plan).inboxes;
}

/** Throws `plan_limit_reached` for an inbox that rests. */
export async function refuseResting(
  app: App,
  db: Db,
  user: Account,
  { id }: Pick<InboxRow, "id">,
): Promise<void> {
  refuseBeyondPlan(app, user, "inboxes", await rankOf(db, user, id));
}

async function rankOf(db: Db, user: Account, id: string): Promise<{ rank: number; count: number }> {
  const ids = await inboxIds(db, { user_id: user.id });
  return { rank: ids.findIndex((row) => row.id === id) + 1, count: ids.length };
}

/** All inboxes of a user, the oldest first. */
export const inboxIds = remembered((db, key: { user_id: string }) =>
  db
    .selectFrom("inboxes")
    .select("id")
    .where("user_id", "=", key.user_id)
    .where("deleted_at", "is", null)
    .orderBy("id"),
);
