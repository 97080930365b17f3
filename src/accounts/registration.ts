import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { PendingPasswordRow, UserRow } from "../db/schema.ts";
import { equalBytes, hashSecret, randomToken } from "../lib/secrets.ts";
import type { User } from "./accounts.ts";

const TOKEN_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** 258 bits. */
const TOKEN_CHARS = 43;
/** How long a chosen password waits for the code. */
export const PENDING_SECONDS = 900;

/** By what the client that verifies a code is known as the one that chose the password. */
export interface RegistrationProof {
  /** Of the cookie and of the body, as far as they are there. */
  tokens: string[];
  /** The address it calls from; "" when that is not certain. */
  client: string;
}

export function newRegistrationToken(): string {
  return randomToken(TOKEN_CHARS, TOKEN_ALPHABET);
}

/**
 * Keeps a password that somebody chose for an address, until the address is proven. Kept also for an account that
 * has a password, which it can never replace: signing in with it must look the same in all cases.
 */
export async function keepPending(
  app: App,
  tx: Db,
  chosen: { user: User; password_hash: string; name: string | null; token: string; client: string },
): Promise<void> {
  const { user, password_hash, name, token, client } = chosen;
  const row: PendingPasswordRow = {
    user_id: user.id,
    password_hash,
    name,
    token_hash: hashSecret(token),
    client,
    created: app.after(0),
  };
  const insert = tx.insertInto("pending_passwords").values(row);
  await insert.onConflict((conflict) => conflict.column("user_id").doUpdateSet(row)).execute();
}

/** The password that waits for the account's code, if there is one. */
export function findPending(app: App, db: Db, user_id: string): Promise<PendingPasswordRow | undefined> {
  return db
    .selectFrom("pending_passwords")
    .selectAll()
    .where("user_id", "=", user_id)
    .where("created", ">", app.now() - PENDING_SECONDS)
    .executeTakeFirst();
}

/**
 * What a verified code makes of the password that waits for it: the account's own if the same client chose it,
 * else nothing. It waits no longer either way, or somebody else's choice could outlive the owner's sign-in.
 */
export async function settleRegistration(
  app: App,
  tx: Db,
  user: User,
  proof: RegistrationProof,
): Promise<Partial<Pick<UserRow, "password_hash" | "name">>> {
  const settled = await chosenBy(app, tx, user, proof);
  await dropPending(tx, user.id);
  return settled;
}

/** What `settleRegistration` would give, without an end to the waiting. */
export async function chosenBy(
  app: App,
  db: Db,
  user: User,
  proof: RegistrationProof,
): Promise<Partial<Pick<UserRow, "password_hash" | "name">>> {
  const pending = await findPending(app, db, user.id);
  if (!pending || user.password_hash !== null || !isSameClient(pending, proof)) return {};
  const { password_hash, name } = pending;
  return user.name === null && name !== null ? { password_hash, name } : { password_hash };
}

export async function dropPending(tx: Db, user_id: string): Promise<void> {
  await tx.deleteFrom("pending_passwords").where("user_id", "=", user_id).execute();
}

/** The address counts only for a client that keeps no token: one with a wrong token is another client. */
function isSameClient(pending: PendingPasswordRow, { tokens, client }: RegistrationProof): boolean {
  if (tokens.length > 0) return tokens.some((token) => equalBytes(hashSecret(token), pending.token_hash));
  return client !== "" && client === pending.client;
}
