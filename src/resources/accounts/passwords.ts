import { normalForm } from "../../lib/normal-form.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SessionRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { preparePasswordLetter } from "./account-mail.ts";
import { livingUser, normalizeEmail, userOfEmail, type User } from "./accounts.ts";
import { BREACHED } from "./breached-passwords.ts";
import { hasHash, hashPassword } from "./password-hashing.ts";
import { dropPending } from "./registration.ts";
import { noteRefusal, noteSecurityEvent } from "./security-events.ts";
import { endOtherSessions, refuseEnded } from "./sessions.ts";
import { spanWords } from "../../lib/durations.ts";

const MIN_CHARS = 8;
const MAX_CHARS = 128;
/** How long after a sign-in a password may be set; after a sign-in by code, without the old one. */
const FRESH_SECONDS = 600;
const FAILURES_SECONDS = 900;
/**
 * The hash of a random text that nobody knows. It is compared where there is no password, so that the answer takes as
 * long.
 */
const NOBODYS =
  "$argon2id$v=19$m=19456,t=2,p=1$bJTljIRzxSAOy3AQ9E6uj1CWV5KD+9qwqRNvdvDa+Lc$xlmCnh16RuXkt7OGQOhi5XBTllZ61ftC35L5Nr+p+no";

/** The hash of a new password for the account of `email`; throws `validation_error` for a bad one. `client` as in `hashPassword`. */
export async function hashNewPassword(password: string, email: string, client: string): Promise<string> {
  const text = normalForm("NFKC", password);
  const chars = Array.from(text).length;
  if (chars < MIN_CHARS)
    throw invalid("body.password", "too_short", `A password has at least ${MIN_CHARS} characters.`);
  if (chars > MAX_CHARS)
    throw invalid("body.password", "too_long", `A password has at most ${MAX_CHARS} characters.`);
  const plain = text.toLowerCase().trim();
  if (plain === email || plain === email.slice(0, email.lastIndexOf("@")))
    throw invalid("body.password", "is_email", "A password must not be the mail address.");
  if (BREACHED.has(plain) || new Set(plain).size === 1)
    throw invalid("body.password", "breached", "This password is among the first ones that anybody tries.");
  return hashPassword(text, client);
}

/**
 * Whether a password is right. That takes as long for an account without one, or for no account, as for a wrong
 * password.
 */
export async function isPassword(
  password: string,
  hash: string | null | undefined,
  client: string,
): Promise<boolean> {
  const same = await hasHash(normalForm("NFKC", password), hash ?? NOBODYS, client);
  return same && hash !== null && hash !== undefined;
}

/**
 * Counts one of the tries at a password that are allowed under `key` in 15 minutes; the right password gives all of
 * them back.
 */
export function countAttempt(app: App, key: string): void {
  const rule = { limit: app.config.limits.login_failures, window_seconds: FAILURES_SECONDS };
  const { ok, retry_after_seconds } = app.limiter.take(key, rule);
  if (ok) return;
  throw new AppError("rate_limited", "Too many wrong passwords.", {
    retry_after_seconds,
    fix: `Try again in ${spanWords(retry_after_seconds)}, or sign in with a code.`,
  });
}

/** Who wants to change what a password protects. */
export interface Claimant {
  user: User;
  client: string;
}

/** The password of the account in the body of a request, and the name of its member there. */
interface GivenPassword {
  member: "password" | "current_password";
  given: string | undefined;
}

/** Throws `current_password_required` unless the account has no password, or `given` is it. */
export async function refuseWithoutPassword(
  app: App,
  { user, client }: Claimant,
  { member, given }: GivenPassword,
): Promise<void> {
  if (user.password_hash === null) return;
  if (given === undefined) throw passwordRequired("This needs the current password of the account.", member);
  const key = `current-password:${user.id}`;
  countAttempt(app, key);
  if (await isPassword(given, user.password_hash, client)) return app.limiter.forget(key);
  noteRefusal(app, { user_id: user.id, kind: "password_failed", client });
  throw passwordRequired("That is not the current password of the account.", member);
}

/** Sets the password and signs every other browser out. */
export async function setPassword(
  app: App,
  { user, session, client }: Claimant & { session: SessionRow },
  input: { password: string; current_password?: string | undefined },
): Promise<User> {
  refuseStale(app, session);
  const password_hash = await hashNewPassword(input.password, user.email, client);
  const member = "current_password";
  if (!isFresh(app, session.code_login_at))
    await refuseWithoutPassword(app, { user, client }, { member, given: input[member] });
  const queue = await preparePasswordLetter(app, user);
  return app.write(async (tx) => {
    const living = await livingUser(tx, user);
    // The old password was compared before the transaction: somebody may have changed it since.
    if (living.password_hash !== user.password_hash)
      throw passwordRequired("The password was changed at the same moment.", member);
    await refuseEnded(app, tx, { user, session, key_id: null });
    await tx.updateTable("users").set({ password_hash }).where("id", "=", user.id).execute();
    await dropPending(tx, user.id);
    await endOtherSessions(tx, user.id, session.id);
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "password_set", client });
    await queue(tx);
    return { ...living, password_hash };
  });
}

/** Sets a password for the command line. Nobody stays signed in, since whoever runs it knows the password. */
export async function resetPassword(app: App, input: { email: string; password: string }): Promise<User> {
  const email = normalizeEmail(input.email);
  const password_hash = await hashNewPassword(input.password, email, "");
  return app.write(async (tx) => {
    const user = await userOfEmail(tx, email);
    await tx.updateTable("users").set({ password_hash }).where("id", "=", user.id).execute();
    await dropPending(tx, user.id);
    await endOtherSessions(tx, user.id, null);
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "password_set", client: "" });
    return { ...user, password_hash };
  });
}

/** Takes the password of an account away, which then signs in with codes by mail alone, and signs everybody out. */
export async function clearPassword(app: App, tx: Db, user: User): Promise<User> {
  const cleared = { password_hash: null };
  await tx.updateTable("users").set(cleared).where("id", "=", user.id).execute();
  await dropPending(tx, user.id);
  await endOtherSessions(tx, user.id, null);
  await noteSecurityEvent(app, tx, { user_id: user.id, kind: "password_reset", client: "" });
  return { ...user, ...cleared };
}

/** Whether somebody signed in a moment ago. A session never gets younger by being used. */
function isFresh(app: App, at: number | null): boolean {
  return at !== null && app.now() - at <= FRESH_SECONDS;
}

/**
 * Throws unless the caller signed in within the last ten minutes. Only then may a way to sign in be added or changed: a
 * browser left open, or a stolen cookie, must not be able to.
 */
export function refuseStale(
  app: App,
  { created }: SessionRow,
  what = "A new password needs a sign-in of the last ten minutes",
): void {
  if (isFresh(app, created)) return;
  throw new AppError("session_required", `${what}, and this browser signed in before.`, {
    fix: "Sign out, sign in again, and do it within ten minutes.",
  });
}

function passwordRequired(message: string, member: GivenPassword["member"]): AppError {
  return new AppError("current_password_required", message, {
    fix: `Send it along (\`${member}\`). Forgotten? Sign in with a code: for ten minutes after it a new password needs no old one (\`POST /auth/set-password\`).`,
  });
}
