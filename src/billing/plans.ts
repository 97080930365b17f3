import type { Config } from "../config.ts";
import type { Plan, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";

export const PLANS: Plan[] = ["free", "pro", "team"];

/** What one plan allows. 0 means no limit for rates, none at all for counts. */
export type PlanLimits = Config["plans"]["free"];

export function planLimits(config: Config, plan: Plan): PlanLimits {
  return config.plans[plan];
}

/** What a plan has beyond its numbers. */
export function planFeatures(plan: Plan): string[] {
  return plan === "free" ? [] : ["command_contexts", "api_key_revocation", "credit_topup"];
}

/** Nobody can upgrade where no payment provider is configured, so a new account gets everything there. */
export function defaultPlan(config: Config): Plan {
  return config.plans.default === "" ? "team" : config.plans.default;
}

/** Throws `plan_limit_reached` when a plan that allows `limit` would have to hold `wanted` after `adding` more. */
export function refuseOverCap(noun: string, limit: number, wanted: number, adding = 1): void {
  if (wanted <= limit) return;
  throw new AppError("plan_limit_reached", `Your plan allows ${limit} ${noun}; this would make ${wanted}.`, {
    fix: `Remove some of your ${noun}, or ask the operator for a larger plan.`,
    members: { limit, current: wanted - adding },
  });
}

/** How many runs of an account may go on at once; null without a limit. */
export function runShare(app: { config: Config }, user: UserRow): { account: string; slots: number } | null {
  const slots = planLimits(app.config, user.plan).concurrent_routes;
  return slots === 0 ? null : { account: user.id, slots };
}

/** Throws `plan_required` unless the user's plan is `required` or a larger one; `what` begins the sentence. */
export function refuseBelowPlan(user: UserRow, required: Plan, what: string): void {
  if (PLANS.indexOf(user.plan) >= PLANS.indexOf(required)) return;
  const name = required.charAt(0).toUpperCase() + required.slice(1);
  throw new AppError("plan_required", `${what} needs the ${name} plan.`, {
    fix: "Upgrade your plan, or ask the operator of this server for a larger one.",
    members: { required_plan: required },
  });
}
