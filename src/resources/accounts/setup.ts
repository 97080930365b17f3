import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { AppError, invalid } from "../../errors.ts";
import { equalBytes, hashSecret, randomToken } from "../../lib/secrets.ts";
import { ensureUser, normalizeEmail, type User, verifiedColumns } from "./accounts.ts";
import { hashNewPassword } from "./passwords.ts";
import { checkedName } from "./profile.ts";
import { dropPending } from "./registration.ts";
import { noteSecurityEvent } from "./security-events.ts";
import { startSession } from "./sessions.ts";

const TOKEN_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** What a server is called that hears nobody but its own machine, or that nobody has told its name. */
const OWN_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"]);
/** 258 bits. */
const TOKEN_CHARS = 43;

export interface SetupInput {
  token: string;
  email: string;
  password?: string | undefined;
  name?: string | undefined;
  client: string;
  user_agent: string;
}

/** Whether nobody has a verified account yet. */
export async function needsSetup(db: Db): Promise<boolean> {
  const users = db.selectFrom("users").select("id").where("email_verified", "=", 1).limit(1);
  return (await users.executeTakeFirst()) === undefined;
}

/**
 * Shows in the log the link that makes the first account, while there is none. The link is valid until the next
 * start.
 */
export async function offerSetup(app: App): Promise<void> {
  if (!(await needsSetup(app.db))) return;
  const token = randomToken(TOKEN_CHARS, TOKEN_ALPHABET);
  app.setup.hash = hashSecret(token);
  const link = `${app.base_url}/app/setup?token=${token}`;
  app.log.info(`nobody has an account here yet; make the first one, which administers this server: ${link}`);
  const { protocol, hostname, port } = new URL(app.base_url);
  if (app.config.server.base_url === "" && protocol === "http:" && OWN_HOSTS.has(hostname))
    app.log.info(
      `the link is for a browser on this machine; from another one open a tunnel first: ssh -L ${port}:${hostname}:${port} USER@THIS-MACHINE`,
    );
  if (isOpenToStrangers(app))
    app.log.warn(
      'until then whoever signs in first with a code by mail administers this server; auth.registration = "closed" keeps strangers out',
    );
}

/**
 * Makes the first account, verified and an administrator, for whoever has read the link, and signs in. `value` is what
 * the session's cookie holds.
 */
export async function setUp(app: App, input: SetupInput): Promise<{ user: User; value: string }> {
  if (!(await needsSetup(app.db))) throw alreadySetUp();
  if (!equalBytes(hashSecret(input.token), app.setup.hash ?? "")) throw wrongToken();
  const email = normalizeEmail(input.email);
  refuseOthers(app, email);
  const name = input.name === undefined ? null : checkedName(input.name);
  const password_hash =
    input.password === undefined ? null : await hashNewPassword(input.password, email, input.client);
  const made = await app.write(async (tx) => {
    // Somebody may have been faster, here or by a login code.
    if (!(await needsSetup(tx))) throw alreadySetUp();
    const user = await ensureUser(app, tx, email);
    const change = { ...(await verifiedColumns(app, tx, email)), password_hash, name };
    await tx.updateTable("users").set(change).where("id", "=", user.id).execute();
    // Passwords and codes from before are void: anybody could have asked for them.
    await dropPending(tx, user.id);
    await tx.deleteFrom("login_codes").where("user_id", "=", user.id).execute();
    const { client, user_agent } = input;
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "set_up", client });
    const value = await startSession(app, tx, { user_id: user.id, by_code: false, client, user_agent });
    return { user: { ...user, ...change }, value };
  });
  app.setup.hash = undefined;
  return made;
}

/**
 * Whether strangers could be the first to sign in by a login code. In capture mode they see none: a code is in the
 * log then, as the link is.
 */
function isOpenToStrangers({ config }: App): boolean {
  return config.auth.registration === "open" && config.outbound.mode !== "capture";
}

/** Refuses another address than the one that the configuration names as the administrator's. */
function refuseOthers(app: App, email: string): void {
  const named = app.config.auth.admin_email.toLowerCase();
  if (named === "" || email === named) return;
  throw invalid(
    "body.email",
    "not_administrator",
    "The configuration names another address as the administrator's: use the one in auth.admin_email.",
  );
}

function wrongToken(): AppError {
  return new AppError("invalid_code", "This setup link is wrong, or is not the newest one.", {
    fix: "Use the link in the log of the server's last start; each start makes a new one.",
  });
}

function alreadySetUp(): AppError {
  return new AppError("conflict", "This server has been set up already.", {
    fix: "Sign in with your password or with a code (`POST /auth/login`, `POST /auth/request-code`).",
  });
}
