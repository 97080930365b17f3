import type { App } from "../../app.ts";
import { creditsOf } from "../billing/ledger.ts";
import { budgetColumn, refuseRaised } from "../billing/budget-column.ts";
import { planFeatures, planLimits } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { asAmount } from "../../lib/money.ts";
import { isLongerThan } from "../../lib/text-length.ts";
import { livingUser, type User } from "./accounts.ts";
import { noteChange } from "./changes.ts";
import type { Caller } from "./sessions.ts";
import type { ProfileInput } from "./shapes.ts";

const MAX_NAME_CHARS = 100;

/** The account as its owner sees it. */
export async function viewMe(app: App, user: User) {
  const { contexts, schedules, inboxes, connections, custom_domains, webhooks, api_keys, storage_mb } =
    planLimits(app.config, user.plan);
  return {
    id: user.id,
    email: user.email,
    email_verified: user.email_verified === 1,
    is_admin: user.is_admin === 1,
    name: user.name,
    has_password: user.password_hash !== null,
    plan: user.plan,
    credits: await creditsOf(app, app.db, user),
    limits: { contexts, schedules, inboxes, connections, custom_domains, webhooks, api_keys, storage_mb },
    features: planFeatures(user.plan),
    timezone: user.timezone,
    reply_footer: user.reply_footer === 1,
    monthly_budget: asAmount(user.monthly_budget),
    currency: app.config.costs.currency,
    created: user.created,
  };
}

/** Changes the profile as RFC 7396 has it: absent members stay as they are; `null` takes the name away. */
export async function patchProfile(app: App, caller: Caller, input: ProfileInput): Promise<User> {
  const { user } = caller;
  const change: Partial<UserRow> = {
    ...(input.name === undefined ? {} : { name: input.name === null ? null : checkedName(input.name) }),
    ...(input.timezone === undefined ? {} : { timezone: checkedTimezone(input.timezone) }),
    ...(input.reply_footer === undefined ? {} : { reply_footer: input.reply_footer ? 1 : 0 }),
    ...budgetColumn(input),
  };
  if (Object.keys(change).length === 0) return user;
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "profile_changed");
    const before = await livingUser(tx, user);
    refuseRaised(caller, before, { ...before, ...change });
    await tx.updateTable("users").set(change).where("id", "=", user.id).execute();
    return livingUser(tx, user);
  });
}

/** Whether replies from an account's inboxes end with a line about who sent them. */
export async function wantsFooter(db: Db, { user_id }: { user_id: string }): Promise<boolean> {
  const [user] = await footerOf(db, { user_id });
  return user?.reply_footer !== 0;
}

const footerOf = remembered((db, key: { user_id: string }) =>
  db.selectFrom("users").select("reply_footer").where("id", "=", key.user_id),
);

/** A name as it is stored: trimmed, on one line, 1 to 100 characters. Throws `validation_error` for any other. */
export function checkedName(given: string, path = "body.name"): string {
  const name = given.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
  if (name === "") throw invalid(path, "too_short", "A name must not be blank.");
  if (isLongerThan(name, MAX_NAME_CHARS))
    throw invalid(path, "too_long", `A name has at most ${MAX_NAME_CHARS} characters.`);
  return name;
}

/** The IANA name in its usual case. */
export function checkedTimezone(given: string, path = "body.timezone"): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat("en", { timeZone: given }).resolvedOptions();
    if (/^[a-z]/i.test(given)) return timeZone.toLowerCase() === given.toLowerCase() ? timeZone : given;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  throw invalid(path, "unknown_timezone", "A time zone has an IANA name such as Europe/Berlin.");
}
