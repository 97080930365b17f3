import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { PendingPasswordRow } from "../../db/schema.ts";
import { hashSecret, randomToken } from "../../lib/secrets.ts";
import type { User } from "./accounts.ts";

const TOKEN_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** 258 bits. */
const TOKEN_CHARS = 43;
/** How long a chosen password waits for the code. */
export const PENDING_SECONDS = 900;

export function newRegistrationToken(): string {
  return randomToken(TOKEN_CHARS, TOKEN_ALPHABET);
}

/**
 * Keeps a password that somebody chose for an address until the address is proven. It is kept even for an account
 * that has a password, which it can never replace: signing in must look the same in all cases.
 */
export async function keepPending(
  app: App,
  tx: Db,
  chosen: { user: User; password_hash: string; name: string | null; token: string },
): Promise<void> {
  const { user, password_hash, name, token } = chosen;
  const row: PendingPasswordRow = {
    user_id: user.id,
    password_hash,
    name,
    token_hash: hashSecret(token),
    client: "",
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

export async function dropPending(tx: Db, user_id: string): Promise<void> {
  await tx.deleteFrom("pending_passwords").where("user_id", "=", user_id).execute();
}
