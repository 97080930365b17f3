import type { App } from "../../app.ts";
import type { Config } from "../../config/config.ts";
import type { Plan, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

export const PLANS: Plan[] = ["free", "pro", "team"];

/** What one plan allows. 0 means no limit for a rate, and none of them for a count. */
export type PlanLimits = Config["plans"]["free"];

/** What a plan allows; an unknown plan, as a damaged disk may leave one, allows what the smallest does. */
export function planLimits(config: Config, plan: Plan): PlanLimits {
  return Object.hasOwn(config.plans, plan) ? config.plans[plan] : config.plans.free;
}

/** What a plan has beyond its numbers. */
export function planFeatures(plan: Plan): string[] {
  return plan === "free" ? [] : ["command_contexts", "api_key_revocation", "credit_topup"];
}

/**
 * Returns the plan of a new account, and of one whose subscription has ended. Where nobody can pay, it gets
 * everything.
 */
export function defaultPlan(config: Config): Plan {
  if (config.plans.default !== "") return config.plans.default;
  return config.billing.stripe_secret_key === "" ? "team" : "free";
}

/** Throws `plan_limit_reached` when a plan allows fewer than the `wanted` that there are to be after `adding` more. */
export function refuseOverCap(noun: string, limit: number, wanted: number, adding = 1): void {
  if (wanted <= limit) return;
  throw new AppError("plan_limit_reached", `Your plan allows ${limit} ${noun}; this would make ${wanted}.`, {
    fix: `Remove some of your ${noun}, or ask the operator for a larger plan.`,
    members: { limit, current: wanted - adding },
  });
}

/**
 * Throws `plan_limit_reached` for what a plan has no room for: of `count` things it allows `limit`, and this is the
 * `rank`th, the oldest being the first.
 */
export function refuseBeyondPlan(
  noun: string,
  limit: number,
  { rank, count }: { rank: number; count: number },
): void {
  if (rank <= limit) return;
  throw new AppError(
    "plan_limit_reached",
    `Your plan allows ${limit} ${noun}, and this is one of the newest of your ${count}: it is kept as it is.`,
    {
      fix: `Remove some of your ${noun}, or ask the operator for a larger plan.`,
      members: { limit, current: count },
    },
  );
}

/** The unix second from which on an account sees its messages. */
export function historySince(app: Pick<App, "config" | "calmNow">, user: Pick<UserRow, "plan">): number {
  const { history_days } = planLimits(app.config, user.plan);
  return history_days === 0 ? 0 : Math.max(0, app.calmNow() - history_days * DAY_SECONDS);
}

/**
 * How many runs of an account may go on at once. Where the plan has no limit, they leave some slots to other
 * accounts.
 */
export function runShare(app: { config: Config }, user: UserRow): { account: string; slots: number | null } {
  const slots = planLimits(app.config, user.plan).concurrent_routes;
  return { account: user.id, slots: slots === 0 ? null : slots };
}

/** Throws `plan_required` unless the user's plan is `required` or a larger one; `what` begins the sentence. */
export function refuseBelowPlan(user: UserRow, required: Plan, what: string): void {
  if (PLANS.indexOf(user.plan) >= PLANS.indexOf(required)) return;
  throw new AppError("plan_required", `${what} needs the ${planName(required)} plan.`, {
    fix: "Upgrade your plan, or ask the operator of this server for a larger one.",
    members: { required_plan: required },
  });
}

/** As people call it. */
export function planName(plan: Plan): string {
  return plan.charAt(0).toUpperCase() + plan.slice(1);
}
