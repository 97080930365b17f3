import type { App } from "../../app.ts";
import type { PendingPasswordRow, UserRow } from "../../db/schema.ts";
import { equalBytes, hashSecret } from "../../lib/secrets.ts";
import type { User } from "./accounts.ts";
import { isPassword } from "./passwords.ts";
import { findPending } from "./registration.ts";

/**
 * What a client that verifies a code has, to show that it also chose the password. The address it calls from shows
 * nothing.
 */
export interface RegistrationProof {
  /** The tokens of the cookie and of the body, as far as there are any. */
  tokens: string[];
  /** The password itself, once more. */
  password: string | undefined;
}

/** What becomes of the waiting password when a code is verified. */
export interface Settlement {
  /** Whether a password that was given with the code works from then on; true when none was given. */
  works: boolean;
  /** The waiting password that becomes the account's own; undefined if none does. */
  pending: PendingPasswordRow | undefined;
}

/**
 * Decides which password an account has once its code is verified; outside of a transaction, since comparing takes
 * long.
 */
export async function judgeRegistration(
  app: App,
  user: User,
  { tokens, password, client }: RegistrationProof & { client: string },
): Promise<Settlement> {
  const waiting = await findPending(app, app.db, user.id);
  if (user.password_hash !== null)
    return {
      works: password === undefined || (await isPassword(password, user.password_hash, client)),
      pending: undefined,
    };
  if (password !== undefined) {
    const works = await isPassword(password, waiting?.password_hash, client);
    return { works, pending: works ? waiting : undefined };
  }
  const known = waiting && tokens.some((token) => equalBytes(hashSecret(token), waiting.token_hash));
  return { works: true, pending: known ? waiting : undefined };
}

/**
 * The columns that change when a waiting password becomes the account's own. A name that was chosen with it does so
 * too, if the account has none.
 */
export function settledColumns(
  user: User,
  pending: PendingPasswordRow | undefined,
): Partial<Pick<UserRow, "password_hash" | "name">> {
  if (!pending) return {};
  const { password_hash, name } = pending;
  return user.name === null && name !== null ? { password_hash, name } : { password_hash };
}
