import type { App } from "../../app.ts";
import { AppError } from "../../errors.ts";
import { clientNetwork } from "../../net/networks.ts";
import { emailFingerprint, ensureUser, findUserByEmail, normalizeEmail, type User } from "./accounts.ts";
import type { Asker } from "./code-askers.ts";
import { mayRegister, promiseCode } from "./codes.ts";
import { countAttempt, hashNewPassword, isPassword } from "./passwords.ts";
import { checkedName } from "./profile.ts";
import { findPending, keepPending, newRegistrationToken } from "./registration.ts";
import { noteRefusal, noteSecurityEvent } from "./security-events.ts";
import { startSession } from "./sessions.ts";
import { refuseUnverified } from "./verified.ts";

export interface Registration {
  email: string;
  password: string;
  name?: string | undefined;
}

/**
 * Registers an address with a password. The answer does not tell whether there is such an account; the mail does, to
 * whoever may read it.
 */
export async function register(
  app: App,
  input: Registration,
  asker: Asker,
): Promise<{ retry_after: number; registration_token: string }> {
  const email = normalizeEmail(input.email);
  const name = input.name === undefined ? null : checkedName(input.name);
  const password_hash = await hashNewPassword(input.password, email, asker.client);
  const token = newRegistrationToken();
  const { retry_after } = await app.write(async (tx) => {
    const user = mayRegister(app) ? await ensureUser(app, tx, email) : await findUserByEmail(tx, email);
    if (user) await keepPending(app, tx, { user, password_hash, name, token });
    return promiseCode(app, tx, { email, registering: true, asker });
  });
  return { retry_after, registration_token: token };
}

export interface Login {
  email: string;
  password: string;
  client: string;
  user_agent: string;
}

/** Signs in with a password. Every refusal takes as long as any other. `value` is what the session's cookie holds. */
export async function login(app: App, input: Login): Promise<{ user: User; value: string }> {
  const email = normalizeEmail(input.email);
  const { client, user_agent } = input;
  const key = `login-failures:${emailFingerprint(app, email)} ${clientNetwork(client)}`;
  countAttempt(app, key);
  const user = await findUserByEmail(app.db, email);
  if (!(await isPassword(input.password, user?.password_hash, client))) {
    await refuseWaiting(app, user, input);
    if (user) noteRefusal(app, { user_id: user.id, kind: "password_failed", client });
    throw wrong();
  }
  app.limiter.forget(key);
  const value = await app.write(async (tx) => {
    // The password may have been changed, or the account deleted, while it was compared.
    const now = await findUserByEmail(tx, email);
    if (!now || now.id !== user?.id || now.password_hash !== user.password_hash) throw wrong();
    refuseUnverified(now);
    await noteSecurityEvent(app, tx, { user_id: now.id, kind: "password_sign_in", client });
    return startSession(app, tx, { user_id: now.id, by_code: false, client, user_agent });
  });
  return { user: user as User, value };
}

/**
 * Tells a client that has just chosen this password that the address is still to be proven. Where nobody may register,
 * a password waits only for those who have an account, so that nothing may be said of it.
 */
async function refuseWaiting(
  app: App,
  user: User | undefined,
  { password, client }: Pick<Login, "password" | "client">,
): Promise<void> {
  const pending = user && mayRegister(app) ? await findPending(app, app.db, user.id) : undefined;
  // A password is compared in any case, or the time would tell that somebody registers.
  if (!(await isPassword(password, pending?.password_hash, client))) return;
  throw new AppError(
    "email_not_verified",
    "The mail address has to be verified before this password works.",
    {
      fix: "Enter the code from the mail, and with it this password once more (`POST /auth/verify`, also with the `registration_token`).",
    },
  );
}

function wrong(): AppError {
  return new AppError("invalid_credentials", "The address or the password is wrong.", {
    fix: "Forgotten? Sign in with a code instead (`POST /auth/request-code`).",
  });
}
