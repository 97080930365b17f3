import type { App } from "../../app.ts";
import { refuseBelowPlan, refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError, messageOf } from "../../errors.ts";
import { checkApiKeyFormat, hashSecret, mintApiKey } from "../../lib/secrets.ts";
import { prepareKeyLetter } from "./account-mail.ts";
import { livingUser, normalizeEmail, type User, userOfEmail } from "./accounts.ts";
import { noteChange } from "./changes.ts";
import { keyMarksOf } from "./key-marks.ts";
import { checkedName } from "./profile.ts";
import { noteSecurityEvent } from "./security-events.ts";
import type { Caller } from "./sessions.ts";
import { refuseUnverified } from "./verified.ts";

/** A key's `last_used_at` is rewritten at most this often: a request must not cost a write. */
const LAST_USED_EVERY_SECONDS = 300;

export interface NewApiKey {
  id: string;
  name: string | null;
  /** The key itself, shown only now: what is stored is its hash. */
  key: string;
  prefix: string;
  last4: string;
  created: number;
}

/** Makes an API key for the command line, in addition to those that there are, whatever the plan. */
export async function createApiKey(app: App, input: { email: string; name?: string }): Promise<NewApiKey> {
  const email = normalizeEmail(input.email);
  const { row, hash, key } = newKey(app, input.name === undefined ? null : checkedName(input.name));
  await app.write(async (tx) => {
    const user = await userOfEmail(tx, email);
    refuseUnverified(user);
    await insertKey(tx, user, { ...row, hash });
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "api_key_created", client: "" });
  });
  return { ...row, key };
}

/** Returns the keys of an account, oldest first, without the secrets, which nobody has. Throws `not_found`. */
export async function apiKeysOf(app: App, email: string) {
  return listApiKeys(app.db, await userOfEmail(app.db, normalizeEmail(email)));
}

/** Revokes a key for the command line: by its id or by its last four characters, if no other key ends in them. */
export async function revokeApiKeyOf(app: App, input: { email: string; key: string }): Promise<string> {
  const email = normalizeEmail(input.email);
  return app.write(async (tx) => {
    const user = await userOfEmail(tx, email);
    const keys = await listApiKeys(tx, user);
    const found = keys.filter(({ id, last4 }) => id === input.key || last4 === input.key);
    const [key] = found;
    if (!key || found.length > 1)
      throw new AppError(
        "not_found",
        key
          ? `${found.length} keys of ${email} end with ${key.last4}: say which one by its id.`
          : `No key of ${email} has this id, or these last four characters.`,
        {
          fix: `It has ${keys.map(({ id, prefix, last4 }) => `${id} (${prefix}…${last4})`).join(", ") || "no keys"}.`,
        },
      );
    await tx.deleteFrom("api_keys").where("id", "=", key.id).execute();
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "api_key_revoked", client: "" });
    return key.id;
  });
}

/** Makes another key; on the Free plan it takes the place of those that there are. The owner is told by mail. */
export async function addApiKey(
  app: App,
  caller: Caller,
  name: string | null,
): Promise<NewApiKey & { replaced: string[] }> {
  const { row, hash, key } = newKey(app, name);
  const { user } = caller;
  const by = await keyMarksOf(app.db, caller.key_id);
  const queue = await prepareKeyLetter(app, user, { key: row, by });
  const replaced = await app.write(async (tx) => {
    const { plan } = await livingUser(tx, user);
    // This comes before the change: a new key may take the place of the one that made it.
    await noteChange(app, tx, caller, "api_key_created");
    const known = (await listApiKeys(tx, user)).map(({ id }) => id);
    const replaces = plan === "free";
    if (replaces) await tx.deleteFrom("api_keys").where("user_id", "=", user.id).execute();
    else refuseOverCap(app, { plan }, "api_keys", { wanted: known.length + 1 });
    await insertKey(tx, user, { ...row, hash });
    await queue(tx);
    return replaces ? known : [];
  });
  return { ...row, key, replaced };
}

export function listApiKeys(db: Db, user: UserRow) {
  return db
    .selectFrom("api_keys")
    .select(["id", "name", "prefix", "last4", "created", "last_used_at", "last_used_ip"])
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
}

export async function revokeApiKey(app: App, caller: Caller, id: string): Promise<void> {
  const { user } = caller;
  refuseBelowPlan(user, "pro", "Revoking a key");
  await app.write(async (tx) => {
    // This comes before the change: a key may revoke itself.
    await noteChange(app, tx, caller, "api_key_revoked");
    const { numDeletedRows } = await tx
      .deleteFrom("api_keys")
      .where("id", "=", id)
      .where("user_id", "=", user.id)
      .executeTakeFirst();
    if (numDeletedRows === 0n) throw new AppError("not_found", "There is no such API key.");
  });
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
  const [row] = await ownerOfKey(app.db, { hash: hashSecret(key) });
  if (!row) return undefined;
  const { key_id, last_used_at, ...user } = row;
  if (app.now() - (last_used_at ?? 0) >= LAST_USED_EVERY_SECONDS) touchKey(app, key_id, client());
  return { user, key_id };
}

const ownerOfKey = remembered((db, key: { hash: string }) =>
  db
    .selectFrom("api_keys")
    .innerJoin("users", "users.id", "api_keys.user_id")
    .selectAll("users")
    .select(["api_keys.id as key_id", "api_keys.last_used_at"])
    .where("hash", "=", key.hash)
    .where("deleted_at", "is", null),
);

/**
 * Notes when a key was last used, without waiting for it: a request must not fail, nor be slow, because a date could
 * not be noted.
 */
function touchKey(app: App, key_id: string, client: string): void {
  const used = { last_used_at: app.now(), last_used_ip: client || null };
  app
    .write((tx) => tx.updateTable("api_keys").set(used).where("id", "=", key_id).execute())
    .catch((error: unknown) =>
      app.log.warn({ err: messageOf(error) }, "the use of an API key was not noted"),
    );
}

function newKey(app: App, name: string | null) {
  const { key, hash, prefix, last4 } = mintApiKey();
  return { key, hash, row: { id: app.newId(), name, prefix, last4, created: app.now() } };
}

async function insertKey(tx: Db, user: User, row: Omit<NewApiKey, "key"> & { hash: string }): Promise<void> {
  const columns = { ...row, user_id: user.id, last_used_at: null, last_used_ip: null };
  await tx.insertInto("api_keys").values(columns).execute();
}
