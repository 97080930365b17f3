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
  return sellsPlans(config) ? "free" : "team";
}

/** Whether plans are sold here. Where they are not, people are told of no plan: what is allowed is the server's choice. */
export function sellsPlans(config: Config): boolean {
  return config.billing.stripe_secret_key !== "";
}

/** Who allows an account what it may have, such as “this server allows you”. */
export function allowedBy(config: Config, plan: Plan): string {
  return sellsPlans(config) ? `your ${planName(plan)} plan allows` : "this server allows you";
}

/** How an account comes to more of what `setting` of its plan bounds. */
export function moreOf(config: Config, plan: Plan, setting: keyof PlanLimits): string {
  return sellsPlans(config)
    ? "ask the operator for a larger plan"
    : `ask the administrator of this server to raise plans.${plan}.${setting}`;
}

/** What is counted, one and several of it. */
const COUNTED = {
  allowlist_entries: ["allowed sender in one inbox", "allowed senders in one inbox"],
  api_keys: ["API key", "API keys"],
  connections: ["connection", "connections"],
  contexts: ["context", "contexts"],
  custom_domains: ["custom domain", "custom domains"],
  inboxes: ["inbox", "inboxes"],
  mcp_per_inbox: ["MCP connection in one inbox", "MCP connections in one inbox"],
  schedules: ["schedule", "schedules"],
  webhooks: ["webhook endpoint", "webhook endpoints"],
} as const satisfies Partial<Record<keyof PlanLimits, readonly [string, string]>>;

type Counted = keyof typeof COUNTED;

/** "1 inbox", "50 inboxes". */
export function countWords(count: number, counted: Counted): string {
  return `${count === 0 ? "no" : count} ${COUNTED[counted][count === 1 ? 0 : 1]}`;
}

/** As the beginning of a sentence. */
export function capitalized(words: string): string {
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}

/** Throws `plan_limit_reached` when an account may have fewer than the `wanted` that there are to be after `adding` more. */
export function refuseOverCap(
  { config }: Pick<App, "config">,
  { plan }: Pick<UserRow, "plan">,
  counted: Counted,
  { wanted, adding = 1, which = "" }: { wanted: number; adding?: number; which?: string },
): void {
  const limit = planLimits(config, plan)[counted];
  if (wanted <= limit) return;
  const allowed = `${capitalized(allowedBy(config, plan))} ${countWords(limit, counted)}${which}`;
  throw new AppError("plan_limit_reached", `${allowed}; this would make ${wanted}.`, {
    fix: `Remove some of your ${COUNTED[counted][1]}, or ${moreOf(config, plan, counted)}.`,
    members: { limit, current: wanted - adding },
  });
}

/**
 * Throws `plan_limit_reached` for what an account has no room for: of `count` things it may have some, and this is the
 * `rank`th, the oldest being the first.
 */
export function refuseBeyondPlan(
  { config }: Pick<App, "config">,
  { plan }: Pick<UserRow, "plan">,
  counted: Counted,
  { rank, count }: { rank: number; count: number },
): void {
  const limit = planLimits(config, plan)[counted];
  if (rank <= limit) return;
  const allowed = `${capitalized(allowedBy(config, plan))} ${countWords(limit, counted)}`;
  throw new AppError(
    "plan_limit_reached",
    `${allowed}, and this is one of the newest of your ${count}: it is kept as it is.`,
    {
      fix: `Remove some of your ${COUNTED[counted][1]}, or ${moreOf(config, plan, counted)}.`,
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
