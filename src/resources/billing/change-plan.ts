import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { Plan, UserRow } from "../../db/schema.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import { failPending } from "../webhooks/pending.ts";
import { adjustAllowance } from "./ledger.ts";
import { planLimits } from "./plans.ts";

/**
 * Why a webhook endpoint was switched off because of the plan. Such endpoints are found by these very words, so they
 * must not change.
 */
export const NO_ROOM =
  "Your plan allows fewer webhook endpoints than you have. A larger one switches it on again.";

/**
 * Moves an account to another plan, with its allowance. Nothing is deleted: what a smaller plan has no room for rests,
 * the newest first, and a larger one brings it back.
 */
export async function changePlan(
  app: App,
  tx: Db,
  user: UserRow,
  { plan, reason }: { plan: Plan; reason: string },
): Promise<UserRow> {
  const change = { plan, plan_changed_at: app.now() };
  const changed = { ...user, ...change };
  await tx.updateTable("users").set(change).where("id", "=", user.id).execute();
  await adjustAllowance(app, tx, changed, { reason });
  await fitEndpoints(app, tx, changed);
  return changed;
}

/**
 * Switches endpoints off or on as the plan allows. Inboxes, contexts and connections need nothing here: whether there
 * is room for them is seen where they are used.
 */
async function fitEndpoints(app: App, tx: Db, user: UserRow): Promise<void> {
  const endpoints = await tx
    .selectFrom("webhook_endpoints")
    .select(["id", "enabled", "disabled_reason"])
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  const wanted = endpoints.filter(
    ({ enabled, disabled_reason }) => enabled === 1 || disabled_reason === NO_ROOM,
  );
  let are_off = false;
  for (const [index, { id, enabled }] of wanted.entries()) {
    const fits = index < planLimits(app.config, user.plan).webhooks;
    if (fits === (enabled === 1)) continue;
    const change = fits
      ? { enabled: 1, disabled_reason: null, consecutive_failures: 0 }
      : { enabled: 0, disabled_reason: NO_ROOM };
    await tx
      .updateTable("webhook_endpoints")
      .set({ ...change, updated: app.now() })
      .where("id", "=", id)
      .execute();
    if (fits) continue;
    are_off = true;
    await failPending(app, tx, { id, user_id: user.id });
  }
  if (are_off) await tellOwnerLater(app, tx, { user_id: user.id, kind: "beyond_plan" });
}
