import { domainToASCII } from "node:url";
import type { App } from "../app.ts";
import { defaultPlan } from "../billing/plans.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { Plan, UserRow } from "../db/schema.ts";
import { AppError, invalid, messageOf } from "../errors.ts";
import { checkApiKeyFormat, hashApiKey, mintApiKey } from "../lib/secrets.ts";

/** RFC 5321 §4.5.3.1.3 without the angle brackets. */
const MAX_ADDRESS_OCTETS = 254;
/** A key's `last_used_at` is rewritten at most this often: a request must not cost a write. */
const LAST_USED_EVERY_SECONDS = 300;

export type User = UserRow;

/** Trimmed, lower-case, domain in its A-label form. Throws `validation_error` on anything that is no address. */
function normalizeEmail(input: string, path = "body.email"): string {
  const email = input.trim().toLowerCase();
  const at = email.lastIndexOf("@");
  const domain = domainToASCII(email.slice(at + 1));
  const local = email.slice(0, at);
  const valid =
    at > 0 &&
    /^[^\s\p{C}@<>(),;:"[\]\\]+$/u.test(local) &&
    domain !== "" &&
    email.length <= MAX_ADDRESS_OCTETS;
  if (!valid)
    throw invalid(path, "invalid_email", `"${input}" is not a mail address such as ada@example.com.`);
  return `${local}@${domain}`;
}

/** A verified account made from the shell. The first account, and `auth.admin_email`, administer the server. */
export async function createVerifiedUser(app: App, input: { email: string; plan?: Plan }): Promise<User> {
  const email = normalizeEmail(input.email);
  return app.write(async (tx) => {
    if (await findUserByEmail(tx, email))
      throw new AppError("conflict", `There is already an account for ${email}.`, {
        fix: `\`mailwright api-key create ${email}\` makes another key for it.`,
      });
    const first = (await tx.selectFrom("users").select("id").limit(1).executeTakeFirst()) === undefined;
    const user: User = {
      id: Bun.randomUUIDv7(),
      email,
      email_verified: 1,
      name: null,
      plan: input.plan ?? defaultPlan(app.config),
      is_admin: first || email === app.config.auth.admin_email.toLowerCase() ? 1 : 0,
      created: app.now(),
      password_hash: null,
      timezone: "UTC",
      reply_footer: 1,
    };
    await tx.insertInto("users").values(user).execute();
    return user;
  });
}

function findUserByEmail(db: Db, email: string): Promise<User | undefined> {
  return db.selectFrom("users").selectAll().where("email", "=", email).executeTakeFirst();
}

export function listUsers(db: Db): Promise<User[]> {
  return db.selectFrom("users").selectAll().orderBy("id").execute();
}

export async function setPlan(app: App, input: { email: string; plan: Plan }): Promise<User> {
  const email = normalizeEmail(input.email);
  return app.write(async (tx) => {
    const user = await tx
      .updateTable("users")
      .set({ plan: input.plan })
      .where("email", "=", email)
      .returningAll()
      .executeTakeFirst();
    if (!user)
      throw new AppError("not_found", `There is no account for ${email}.`, {
        fix: "`mailwright user list` shows all.",
      });
    return user;
  });
}

export interface NewApiKey {
  id: string;
  name: string | null;
  /** Shown this once; only its hash is stored. */
  key: string;
  prefix: string;
  last4: string;
  created: number;
}

export async function createApiKey(app: App, input: { email: string; name?: string }): Promise<NewApiKey> {
  const email = normalizeEmail(input.email);
  const { key, hash, prefix, last4 } = mintApiKey();
  const row = { id: Bun.randomUUIDv7(), name: input.name ?? null, prefix, last4, created: app.now() };
  await app.write(async (tx) => {
    const user = await findUserByEmail(tx, email);
    if (!user)
      throw new AppError("not_found", `There is no account for ${email}.`, {
        fix: "Make one with `mailwright user create`.",
      });
    await tx
      .insertInto("api_keys")
      .values({ ...row, hash, user_id: user.id, last_used_at: null, last_used_ip: null })
      .execute();
  });
  return { ...row, key };
}

export interface KeyOwner {
  user: User;
  key_id: string;
}

/** The account an API key belongs to, or undefined for anything that is not a living key. `client` says who uses it. */
export async function ownerOfApiKey(
  app: App,
  key: string,
  client: () => string,
): Promise<KeyOwner | undefined> {
  if (!checkApiKeyFormat(key)) return undefined;
  const [row] = await ownerOfKey(app.db, { hash: hashApiKey(key) });
  if (!row) return undefined;
  const { key_id, last_used_at, ...user } = row;
  if (app.now() - (last_used_at ?? 0) >= LAST_USED_EVERY_SECONDS) touchKey(app, key_id, client());
  return { user, key_id };
}

const ownerOfKey = prepared((db, key: { hash: string }) =>
  db
    .selectFrom("api_keys")
    .innerJoin("users", "users.id", "api_keys.user_id")
    .selectAll("users")
    .select(["api_keys.id as key_id", "api_keys.last_used_at"])
    .where("hash", "=", key.hash),
);

/** Nobody waits for it: a request must not fail, nor be slow, because a date could not be noted. */
function touchKey(app: App, key_id: string, client: string): void {
  const used = { last_used_at: app.now(), last_used_ip: client || null };
  app
    .write((tx) => tx.updateTable("api_keys").set(used).where("id", "=", key_id).execute())
    .catch((error: unknown) =>
      app.log.warn({ err: messageOf(error) }, "the use of an API key was not noted"),
    );
}
