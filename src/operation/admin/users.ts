import type { App } from "../../app.ts";
import { changePlan } from "../../resources/billing/change-plan.ts";
import { creditsOf } from "../../resources/billing/ledger.ts";
import type { Plan, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { decodeCursor, encodeCursor } from "../../lib/pagination.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const MONTH_SECONDS = 30 * DAY_SECONDS;

/** Returns a page of accounts, the newest first. */
export async function listUsersPage(
  app: App,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
) {
  const rows = await app.db
    .selectFrom("users")
    .selectAll()
    .where("deleted_at", "is", null)
    .$if(cursor !== undefined, (query) => query.where("id", "<", decodeCursor(cursor ?? "", ["id"])[0]))
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const shown = rows.slice(0, limit);
  const items = [];
  for (const row of shown) items.push(await viewUser(app, row));
  const last = shown.at(-1);
  return { items, next_cursor: rows.length > limit && last ? encodeCursor([last.id]) : null };
}

/** Changes an account as far as the administrator may. */
export async function patchUser(app: App, id: string, { plan }: { plan?: Plan | undefined }) {
  const user = await app.write(async (tx) => {
    const row = await tx
      .selectFrom("users")
      .selectAll()
      .where("id", "=", id)
      .where("deleted_at", "is", null)
      .executeTakeFirst();
    if (!row) throw new AppError("not_found", "There is no such account.");
    return plan === undefined || plan === row.plan
      ? row
      : changePlan(app, tx, row, { plan, reason: "operator" });
  });
  return viewUser(app, user);
}

export async function viewUser(app: App, user: UserRow) {
  const { id, email, name, plan, created } = user;
  const { allowance, used, topup, remaining, unlimited } = await creditsOf(app, app.db, user);
  return {
    id,
    email,
    email_verified: user.email_verified === 1,
    has_password: user.password_hash !== null,
    name,
    plan,
    is_admin: user.is_admin === 1,
    created,
    credits: { allowance, used, topup, remaining, unlimited },
    usage: await usageOf(app, id),
  };
}

async function usageOf(app: App, user_id: string) {
  const owned = (table: "inboxes" | "connections" | "messages") =>
    app.db
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<number>().as("n"))
      .where("user_id", "=", user_id);
  const recent = owned("messages").where("id", ">=", firstIdAt(app.now() - MONTH_SECONDS));
  const [inboxes, connections, messages] = await Promise.all(
    [owned("inboxes").where("deleted_at", "is", null), owned("connections"), recent].map((query) =>
      query.executeTakeFirstOrThrow(),
    ),
  );
  return {
    inboxes: inboxes?.n ?? 0,
    connections: connections?.n ?? 0,
    messages_30_days: messages?.n ?? 0,
  };
}
