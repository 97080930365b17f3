import { normalForm } from "../../lib/normal-form.ts";
import type { App } from "../../app.ts";
import { changePlan } from "../billing/change-plan.ts";
import { defaultPlan } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { Plan, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { withoutQuotes } from "../../lib/mail-address.ts";
import { mailDomain } from "../../lib/mail-domain.ts";
import { base32Token } from "../../lib/secrets.ts";

/** The longest path without its angle brackets (RFC 5321 §4.5.3.1.3). */
const MAX_ADDRESS_OCTETS = 254;
/**
 * The longest input that is normalised: the time for marks that pile up on one letter grows with the square of their
 * number.
 */
const MAX_WRITTEN_CHARS = 1_000;
/** Characters that stand for an address in the keys of the rate limiter, which are stored. */
const FINGERPRINT_CHARS = 26;

export type User = UserRow;

/**
 * Returns an address in the stored form: trimmed, in lower case, its domain in A-labels. Throws `validation_error` for
 * anything that is no address.
 */
export function normalizeEmail(input: string, path = "body.email"): string {
  const text = input.length > MAX_WRITTEN_CHARS ? "" : normalForm("NFC", input.trim()).toLowerCase();
  const email = withoutQuotes(text);
  const at = email.lastIndexOf("@");
  const local = email.slice(0, at);
  const domain = mailDomain(email.slice(at + 1));
  const address = `${local}@${domain}`;
  const valid =
    at > 0 &&
    domain !== undefined &&
    /^[^\s\p{C}@<>(),;:"[\]\\]+$/u.test(local) &&
    Buffer.byteLength(address) <= MAX_ADDRESS_OCTETS;
  if (!valid)
    throw invalid(
      path,
      "invalid_email",
      `"${input.slice(0, 100)}" is not a mail address such as ada@example.com.`,
    );
  return address;
}

/** Returns a fingerprint (HMAC) of an address, for places where the address itself should not be stored. */
export function emailFingerprint(app: App, email: string): string {
  return base32Token(app.secrets.hmac("email", email), FINGERPRINT_CHARS);
}

/**
 * Prepares what is stored together with a new account, such as a mail, outside of the transaction because that takes
 * long.
 */
type Beside = (made: Pick<User, "id" | "email">) => Promise<(tx: Db) => Promise<void>>;

/** Makes a verified account for the operator; an account that waits for its first code becomes one. */
export async function createVerifiedUser(
  app: App,
  input: { email: string; plan?: Plan },
  beside: Beside = async () => async () => undefined,
): Promise<User> {
  const email = normalizeEmail(input.email);
  const known = await findUserByEmail(app.db, email);
  const made = { id: known?.id ?? app.newId(), email };
  const write = await beside(made);
  return app.write(async (tx) => {
    const user = await ensureUser(app, tx, email, made.id);
    // Somebody may have begun to register, or have been deleted, meanwhile.
    if (user.id !== made.id) throw new AppError("conflict", `${email} was signing up at the same moment.`);
    if (user.email_verified === 1)
      throw new AppError("conflict", `There is already an account for ${email}.`, {
        fix: `\`mailwright api-key create ${email}\` makes another key for it.`,
      });
    const change = { ...(await verifiedColumns(app, tx, email)), plan: input.plan ?? user.plan };
    await tx.updateTable("users").set(change).where("id", "=", user.id).execute();
    await write(tx);
    return { ...user, ...change };
  });
}

/** Returns the account of an address, and creates it unverified if there is none. */
export async function ensureUser(app: App, tx: Db, email: string, id: string = app.newId()): Promise<User> {
  const known = await findUserByEmail(tx, email);
  if (known) return known;
  const user: User = {
    id,
    email,
    email_verified: 0,
    name: null,
    plan: defaultPlan(app.config),
    is_admin: 0,
    created: app.now(),
    password_hash: null,
    timezone: "UTC",
    reply_footer: 1,
    deleted_at: null,
    plan_changed_at: null,
    default_inbox_id: null,
    monthly_budget: null,
  };
  await tx.insertInto("users").values(user).execute();
  return user;
}

/**
 * The columns that change when an address is proven. The first account, and that of `auth.admin_email`, administer
 * the server.
 */
export async function verifiedColumns(
  app: App,
  tx: Db,
  email: string,
): Promise<Pick<User, "email_verified" | "is_admin">> {
  const other = await tx
    .selectFrom("users")
    .select("id")
    .where("email_verified", "=", 1)
    .limit(1)
    .executeTakeFirst();
  const chosen = email === app.config.auth.admin_email.toLowerCase();
  return { email_verified: 1, is_admin: other === undefined || chosen ? 1 : 0 };
}

export function findUserByEmail(db: Db, email: string): Promise<User | undefined> {
  return db.selectFrom("users").selectAll().where("email", "=", email).executeTakeFirst();
}

/** Returns the account as it is now; throws `unauthorized` if it was deleted since the request came. */
export async function livingUser(tx: Db, user: User): Promise<User> {
  const now = await tx.selectFrom("users").selectAll().where("id", "=", user.id).executeTakeFirst();
  if (now?.deleted_at === null) return now;
  throw deletedAccount();
}

/** The error `unauthorized` for a request whose account was deleted meanwhile, so that nothing was stored. */
export async function refusalOfDeleted(db: Db, user: User): Promise<AppError | undefined> {
  const [row] = await livingAccount(db, { id: user.id });
  return row ? undefined : deletedAccount();
}

const livingAccount = remembered((db, key: { id: string }) =>
  db.selectFrom("users").select("id").where("id", "=", key.id).where("deleted_at", "is", null),
);

/** Returns the account of an address, for the command line; throws `not_found`. */
export async function userOfEmail(db: Db, email: string): Promise<User> {
  const user = await findUserByEmail(db, email);
  if (user) return user;
  throw new AppError("not_found", `There is no account for ${email}.`, {
    fix: "`mailwright user list` shows all, and `mailwright user create` makes one.",
  });
}

export function listUsers(db: Db): Promise<User[]> {
  return db.selectFrom("users").selectAll().where("deleted_at", "is", null).orderBy("id").execute();
}

/** Sets the plan of an account for the command line; this month's credits change with it. */
export async function setPlan(app: App, input: { email: string; plan: Plan }): Promise<User> {
  const email = normalizeEmail(input.email);
  return app.write(async (tx) => {
    const user = await userOfEmail(tx, email);
    return changePlan(app, tx, user, { plan: input.plan, reason: "operator" });
  });
}

function deletedAccount(): AppError {
  return new AppError("unauthorized", "This account has been deleted.");
}
