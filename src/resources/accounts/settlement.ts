import type { App } from "../../app.ts";
import type { PendingPasswordRow, UserRow } from "../../db/schema.ts";
import { equalBytes, hashSecret } from "../../lib/secrets.ts";
import type { User } from "./accounts.ts";
import { isPassword } from "./passwords.ts";
import { findPending } from "./registration.ts";

/** By what the client that verifies a code shows that it chose the password. The address it calls from shows nothing. */
export interface RegistrationProof {
  /** Those of the cookie and of the body, as far as they are there. */
  tokens: string[];
  /** The password itself, once more. */
  password: string | undefined;
}

/** What a code that is verified now makes of the password that waits for it. */
export interface Settlement {
  /** Whether a password that was given with the code works from then on; true when none was given. */
  works: boolean;
  /** Undefined: nothing that waits becomes real. */
  pending: PendingPasswordRow | undefined;
}

/** Compares outside of any transaction: a password takes its time. */
export async function judgeRegistration(
  app: App,
  user: User,
  { tokens, password }: RegistrationProof,
): Promise<Settlement> {
  const waiting = await findPending(app, app.db, user.id);
  if (user.password_hash !== null)
    return {
      works: password === undefined || (await isPassword(password, user.password_hash)),
      pending: undefined,
    };
  if (password !== undefined) {
    const works = await isPassword(password, waiting?.password_hash);
    return { works, pending: works ? waiting : undefined };
  }
  const known = waiting && tokens.some((token) => equalBytes(hashSecret(token), waiting.token_hash));
  return { works: true, pending: known ? waiting : undefined };
}

/** The columns of an account whose chosen password becomes its own, and its first name with it. */
export function settledColumns(
  user: User,
  pending: PendingPasswordRow | undefined,
): Partial<Pick<UserRow, "password_hash" | "name">> {
  if (!pending) return {};
  const { password_hash, name } = pending;
  return user.name === null && name !== null ? { password_hash, name } : { password_hash };
}
