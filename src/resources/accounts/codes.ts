import type { App } from "../../app.ts";
import { prepared } from "../../db/prepared.ts";
import type { Db } from "../../db/database.ts";
import { takeTurn } from "../../db/rate-limits.ts";
import type { CodeAskerRow, LoginCodeRow, UserRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { enqueue, finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import type { RateRule } from "../../lib/rate-limit.ts";
import { equalBytes, randomToken } from "../../lib/secrets.ts";
import type { QueueLetter } from "../../mail/writing/letters.ts";
import { type CodeReason, prepareCodeLetter, preparePasswordLetter } from "./account-mail.ts";
import {
  emailFingerprint,
  ensureUser,
  findUserByEmail,
  normalizeEmail,
  type User,
  verifiedColumns,
} from "./accounts.ts";
import { type Asker, countTry, findAsker, forgetAskers, keepAsker, renewTries } from "./code-askers.ts";
import { dropPending } from "./registration.ts";
import { judgeRegistration, type RegistrationProof, settledColumns, type Settlement } from "./settlement.ts";
import { sweepUnproven } from "./unproven.ts";
import { keyMarksOf, shownKey } from "./key-marks.ts";
import { noteSecurityEvent } from "./security-events.ts";
import { endOtherSessions, startSession } from "./sessions.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

const CODE_DIGITS = 6;
const CODE_SECONDS = 600;
const MAX_ATTEMPTS = 5;
const PAUSE: RateRule = { limit: 1, window_seconds: 60 };

/**
 * Accepts a request for a sign-in code. A job makes and sends the mail, so that the answer is the same, and takes as
 * long, whether or not the account exists.
 */
export async function requestCode(app: App, given: string, asker: Asker): Promise<{ retry_after: number }> {
  const email = normalizeEmail(given);
  return app.write((tx) => promiseCode(app, tx, { email, registering: false, asker }));
}

/**
 * Sends a code to somebody whom an administrator helps to sign in. As with `requestCode`, no second one is sent while
 * one is on its way.
 */
export async function sendCode(app: App, tx: Db, email: string): Promise<{ retry_after: number }> {
  const { due, retry_after } = takeCodeTurn(app, tx, email);
  if (due) await mailCodeLater(app, tx, { email, registering: false });
  return { retry_after };
}

/**
 * Reserves attempts, and enqueues the mail with a code if one is `due`. Otherwise the code that is on its way is the
 * one to enter, whoever asked for it.
 */
export async function promiseCode(
  app: App,
  tx: Db,
  promised: { email: string; registering: boolean; asker: Asker },
): Promise<{ retry_after: number }> {
  const { email, registering, asker } = promised;
  const { due, retry_after } = takeCodeTurn(app, tx, email);
  await keepAsker(app, tx, { ...asker, email, due });
  if (due) await mailCodeLater(app, tx, { email, registering });
  return { retry_after };
}

/**
 * Returns whether an address may get a code now, and in how many seconds the next one may follow. Called in the
 * transaction that enqueues the code: whoever is told that one is on its way must be able to rely on it.
 */
function takeCodeTurn(app: App, tx: Db, email: string): { due: boolean; retry_after: number } {
  const name = emailFingerprint(app, email);
  const hourly = { limit: app.config.limits.code_per_email_hour, window_seconds: HOUR_SECONDS };
  const wait = (): number =>
    Math.max(
      app.limiter.peek(`code-pause:${name}`, PAUSE).retry_after_seconds,
      app.limiter.peek(`code-hour:${name}`, hourly).retry_after_seconds,
    );
  const before = wait();
  if (before > 0) return { due: false, retry_after: before };
  takeTurn(app, tx, { key: `code-pause:${name}`, rule: PAUSE });
  takeTurn(app, tx, { key: `code-hour:${name}`, rule: hourly });
  return { due: true, retry_after: wait() };
}

/** Enqueues a mail with a code, unless one is waiting: of two at once, nobody could say which is newer. */
async function mailCodeLater(
  app: App,
  tx: Db,
  payload: { email: string; registering: boolean },
): Promise<void> {
  const dedupe_key = `mail_code:${emailFingerprint(app, payload.email)}`;
  await enqueue(app, tx, { kind: "mail_code", payload, dedupe_key });
}

/** Makes the account if it is new, and its code, which replaces an earlier one, and queues the mail. */
export async function mailCodeNow(app: App, job: Job<"mail_code">, signal: AbortSignal): Promise<void> {
  const { email, registering } = job.payload;
  const user = await app.write(async (tx) => {
    await sweepUnproven(app, tx);
    return mayRegister(app) ? ensureUser(app, tx, email) : findUserByEmail(tx, email);
  });
  if (!user) return app.write((tx) => finishJob(tx, job));
  const code = randomToken(CODE_DIGITS, "0123456789");
  const reason = registering ? reasonOf(user) : "sign_in";
  const queue = await prepareCodeLetter(app, user, { code, minutes: CODE_SECONDS / 60, reason });
  const sent = await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    // The account may have been deleted meanwhile.
    const living = await findUserByEmail(tx, email);
    if (living?.id !== user.id) return false;
    const row = {
      user_id: user.id,
      code_hmac: hmacOfCode(app, user, code),
      attempts: 0,
      created: app.after(0),
    };
    const insert = tx.insertInto("login_codes").values(row);
    await insert.onConflict((conflict) => conflict.column("user_id").doUpdateSet(row)).execute();
    await renewTries(app, tx, email);
    await queue(tx);
    return true;
  });
  if (sent && app.config.outbound.mode === "capture")
    app.log.info({ email, code }, "login code (mail is kept in the capture box)");
}

/** Whether strangers can make an account themselves. */
export function mayRegister(app: App): boolean {
  return app.config.auth.registration === "open";
}

export interface Verification {
  email: string;
  code: string;
  proof: RegistrationProof;
  /** The token from the browser's request for the code, or none. */
  asker_token: string | undefined;
  client: string;
  user_agent: string;
}

/** Returns the six digits; throws `validation_error` for anything else. */
export function checkedCode(given: string): string {
  const code = given.trim();
  if (/^[0-9]{6}$/.test(code)) return code;
  throw invalid("body.code", "invalid_format", "The code has six digits.");
}

/** Signs in with a code, which is spent by it. `value` is what the session's cookie holds. */
export async function verifyCode(app: App, input: Verification): Promise<{ user: User; value: string }> {
  const email = normalizeEmail(input.email);
  // A try counts before anything is compared: however many guesses come at once, no more than those are judged.
  const tried = await app.write((tx) => takeTry(app, tx, { email, asker_token: input.asker_token }));
  if (!tried || !equalBytes(tried.code_hmac, hmacOfCode(app, tried.user, input.code))) throw wrongCode();
  // Passwords are compared only for the right code, or the time that it takes would tell who has an account.
  const settlement = await judgeRegistration(app, tried.user, { ...input.proof, client: input.client });
  if (!settlement.works) throw passwordWouldNotWork();
  const settled = { ...tried, ...settlement };
  const tellOwner = await passwordNotice(app, settled);
  const signedIn = await app.write(async (tx) => {
    const user = await findUserByEmail(tx, email);
    if (!user || !(await spendCode(app, tx, { user, settled }))) return undefined;
    const welcomed = await welcome(app, tx, user, { ...input, settlement });
    if (welcomed.user.password_hash !== user.password_hash) await tellOwner?.(tx);
    return welcomed;
  });
  if (signedIn) return signedIn;
  throw wrongCode();
}

/** An account, and what is stored of the code for which a try was taken. */
type Tried = Pick<LoginCodeRow, "code_hmac"> & { user: User };
type Settled = Settlement & Tried;

/** Takes a try at the valid code of an account; undefined where there is none, or no try is left. */
async function takeTry(
  app: App,
  tx: Db,
  { email, asker_token }: { email: string; asker_token: string | undefined },
): Promise<Tried | undefined> {
  const user = await findUserByEmail(tx, email);
  const open = user && (await openCode(app, tx, user, asker_token));
  if (!open) return undefined;
  const { row, asker } = open;
  if (asker) await countTry(tx, asker);
  else {
    const counted = tx.updateTable("login_codes").set({ attempts: row.attempts + 1 });
    await counted.where("user_id", "=", user.id).execute();
  }
  return { user, code_hmac: row.code_hmac };
}

/**
 * Prepares the mail about a password that becomes the account's with this code: an earlier owner of the account may not
 * have chosen it.
 */
async function passwordNotice(app: App, settled: Settled): Promise<QueueLetter | undefined> {
  const is_news = settled.pending !== undefined && settled.user.email_verified === 1;
  return is_news ? preparePasswordLetter(app, settled.user) : undefined;
}

async function welcome(
  app: App,
  tx: Db,
  user: User,
  { settlement, client, user_agent }: Verification & { settlement: Settlement },
): Promise<{ user: User; value: string }> {
  // An account that got a password in the meantime keeps it.
  const pending = user.password_hash === null ? settlement.pending : undefined;
  const registered = settledColumns(user, pending);
  // Deleted in both cases: else a password that somebody else chose could outlive the owner's sign-in.
  await dropPending(tx, user.id);
  const verified = user.email_verified === 1 ? {} : await verifiedColumns(app, tx, user.email);
  const change = { ...verified, ...registered };
  if (Object.keys(change).length > 0)
    await tx.updateTable("users").set(change).where("id", "=", user.id).execute();
  if (registered.password_hash !== undefined) {
    await endOtherSessions(tx, user.id, null);
    await noteSecurityEvent(app, tx, { user_id: user.id, kind: "password_set", client });
  }
  await noteSecurityEvent(app, tx, { user_id: user.id, kind: "code_sign_in", client });
  const value = await startSession(app, tx, { user_id: user.id, by_code: true, client, user_agent });
  return { user: { ...user, ...change }, value };
}

/** Takes the code out of use for which a try was taken; returns whether nobody did before, and the account is as it was. */
async function spendCode(
  app: App,
  tx: Db,
  { user, settled }: { user: User; settled: Settled },
): Promise<boolean> {
  // The comparison was with the account as it was: its password may have been set since.
  if (settled.user.id !== user.id || settled.user.password_hash !== user.password_hash) return false;
  const spent = tx.deleteFrom("login_codes").where("user_id", "=", user.id);
  const { numDeletedRows } = await spent.where("code_hmac", "=", settled.code_hmac).executeTakeFirst();
  if (numDeletedRows === 0n) return false;
  await forgetAskers(app, tx, user.email);
  return true;
}

/**
 * Returns the valid code of an account while attempts are left: five for a browser that asked for it, or five that all
 * others share.
 */
async function openCode(
  app: App,
  db: Db,
  user: User,
  asker_token: string | undefined,
): Promise<{ row: LoginCodeRow; asker: CodeAskerRow | undefined } | undefined> {
  const [row] = await validCodeOf(app, db, user.id);
  if (!row) return undefined;
  const token = asker_token ?? "";
  const asker = token === "" ? undefined : await findAsker(app, db, { email: user.email, token });
  return (asker ?? row).attempts < MAX_ATTEMPTS ? { row, asker } : undefined;
}

/** The code of an account that is valid at the moment, if there is one. */
export function validCodeOf(app: App, db: Db, user_id: string): Promise<LoginCodeRow[]> {
  return validCode(db, { user_id, after: app.now() - CODE_SECONDS });
}

const validCode = prepared((db, key: { user_id: string; after: number }) =>
  db
    .selectFrom("login_codes")
    .selectAll()
    .where("user_id", "=", key.user_id)
    .where("created", ">", key.after),
);

/**
 * Takes a code out of use that a tool has shown, whether to its owner or to somebody who has had it searched for: see
 * `withoutSignInCode`. Returns once that lasts.
 */
export async function voidCode(
  app: App,
  { user_id, code_hmac }: LoginCodeRow,
  key_id: string | null,
): Promise<void> {
  const is_void = await app.write(async (tx) => {
    const codes = tx.deleteFrom("login_codes").where("user_id", "=", user_id);
    // One that was used meanwhile is gone, and a newer one was not shown.
    const { numDeletedRows } = await codes.where("code_hmac", "=", code_hmac).executeTakeFirst();
    if (numDeletedRows === 0n) return false;
    const api_key = shownKey(await keyMarksOf(tx, key_id));
    await noteSecurityEvent(app, tx, { user_id, kind: "code_shown", client: "", api_key });
    return true;
  });
  if (is_void) app.log.warn({ user_id }, "a tool has shown a sign-in code, which does not count any more");
}

/** What is stored of a code. */
export function hmacOfCode(app: App, user: Pick<UserRow, "id">, code: string): string {
  return app.secrets.hmac("login-code", `${user.id} ${code}`).toString("hex");
}

function wrongCode(): AppError {
  return new AppError("invalid_code", "The code is wrong, has been used, or is too old.", {
    fix: "Ask for a new one with “Send again” (`POST /auth/request-code`). One that a tool of the account has shown, as by a look into its mailbox, does not count either.",
  });
}

function passwordWouldNotWork(): AppError {
  return new AppError(
    "invalid_credentials",
    "The code is right, but this is not the password of the account, nor the one chosen last for it in the past 15 minutes. Nobody was signed in.",
    {
      fix: "Enter the code again without a password (`password`): it signs you in, and for ten minutes you may set one (`POST /auth/set-password`).",
    },
  );
}

function reasonOf(user: User): CodeReason {
  return user.password_hash === null ? "password_chosen" : "password_exists";
}
