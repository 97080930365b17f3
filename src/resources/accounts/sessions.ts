import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SessionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { refusalOfDeleted } from "./accounts.ts";
import { equalBytes, hashSecret, randomToken } from "../../lib/secrets.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const TOKEN_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** 258 bits. */
const TOKEN_CHARS = 43;
const MAC_BYTES = 16;
const MAX_USER_AGENT_CHARS = 200;

/** Who a session is for, and what is known of the browser that holds it. */
export interface SignIn {
  user_id: string;
  /** Whether the sign-in was with a code, which proves the mail address. */
  by_code: boolean;
  client: string;
  user_agent: string;
}

/** Signs a browser in; the value is what its cookie holds, and is not stored. */
export async function startSession(app: App, tx: Db, signIn: SignIn): Promise<string> {
  const token = randomToken(TOKEN_CHARS, TOKEN_ALPHABET);
  const now = app.now();
  const row: SessionRow = {
    id: hashSecret(token),
    user_id: signIn.user_id,
    created: now,
    expires: app.after(sessionSeconds(app)),
    code_login_at: signIn.by_code ? now : null,
    client: signIn.client,
    user_agent: signIn.user_agent.slice(0, MAX_USER_AGENT_CHARS),
  };
  await tx.deleteFrom("sessions").where("expires", "<=", now).execute();
  await tx.insertInto("sessions").values(row).execute();
  return `${token}.${macOf(app, token)}`;
}

/** The living session that a cookie's value names, and its user. */
export async function findSession(
  app: App,
  value: string,
): Promise<{ session: SessionRow; user: UserRow } | undefined> {
  const token = tokenOf(app, value);
  if (token === undefined) return undefined;
  const session = await app.db
    .selectFrom("sessions")
    .selectAll()
    .where("id", "=", hashSecret(token))
    .where("expires", ">", app.now())
    .executeTakeFirst();
  if (!session) return undefined;
  const user = await app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", session.user_id)
    .where("email_verified", "=", 1)
    .executeTakeFirst();
  return user && { session, user };
}

/** Who makes a request, and by which credential. */
export interface Caller {
  user: UserRow;
  /** The browser's session; null for an API key. */
  session: SessionRow | null;
  /** Id of the API key; null for a session. */
  key_id: string | null;
  /** The address that the request came from; "" if that is not known. Worked out only where it is noted. */
  client: () => string;
}

type Credential = Pick<Caller, "session" | "key_id">;

/** Whether the credential of a request would still let it in. */
export async function isLetIn(app: App, db: Db, { session, key_id }: Credential): Promise<boolean> {
  const found =
    session === null
      ? await db
          .selectFrom("api_keys")
          .select("id")
          .where("id", "=", key_id ?? "")
          .executeTakeFirst()
      : await db
          .selectFrom("sessions")
          .select("id")
          .where("id", "=", session.id)
          .where("expires", ">", app.now())
          .executeTakeFirst();
  return found !== undefined;
}

/**
 * Throws `unauthorized` when the credential of a request has ended; to be called in the transaction that adds a way
 * to sign in or to reach others.
 */
export async function refuseEnded(
  app: App,
  tx: Db,
  credential: Credential & Pick<Caller, "user">,
): Promise<void> {
  if (await isLetIn(app, tx, credential)) return;
  const deleted = await refusalOfDeleted(tx, credential.user);
  if (deleted) throw deleted;
  throw new AppError(
    "unauthorized",
    credential.session === null
      ? "This API key was revoked at the same moment."
      : "This browser was signed out at the same moment.",
  );
}

/** Ends the session of a cookie. A value that names none, or one that has ended, is no error. */
export async function endSession(app: App, value: string): Promise<void> {
  const token = tokenOf(app, value);
  if (token === undefined) return;
  await app.write((tx) => tx.deleteFrom("sessions").where("id", "=", hashSecret(token)).execute());
}

/** Signs the user out everywhere, but for the session `keep`. */
export async function endOtherSessions(tx: Db, user_id: string, keep: string | null): Promise<void> {
  const others = tx.deleteFrom("sessions").where("user_id", "=", user_id);
  await (keep === null ? others : others.where("id", "!=", keep)).execute();
}

export function sessionSeconds(app: App): number {
  return app.config.auth.session_days * DAY_SECONDS;
}

/**
 * The token in a cookie's value; undefined for a made-up value, which the signature tells without a look into the
 * database.
 */
function tokenOf(app: App, value: string): string | undefined {
  const [token = "", mac = ""] = value.split(".", 2);
  return token.length === TOKEN_CHARS && equalBytes(mac, macOf(app, token)) ? token : undefined;
}

function macOf(app: App, token: string): string {
  return app.secrets.hmac("session", token).subarray(0, MAC_BYTES).toString("base64url");
}
