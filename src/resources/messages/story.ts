import type { App } from "../../app.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import type { MessageRow, RawMailRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { isHeld } from "../../jobs/holds.ts";
import { createTurns } from "../../lib/turns.ts";
import { mailboxes, type MailHeaders } from "../../mail/reading/headers.ts";
import { isHeldHere, isKeptHere } from "../../mail/sending/send.ts";
import type { UsedContext } from "../contexts/shapes.ts";
import { waitingAmong } from "../../jobs/paused.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { WAITS } from "./list.ts";
import { isForgotten } from "./forgotten.ts";
import { attachmentsOf, neighboursOf, ownMessage, withProgress } from "./messages.ts";
import { lookAtTries } from "./may-retry.ts";
import { isLost, readBytes } from "./stored-bytes.ts";
import { storedAuth } from "./stored-auth.ts";
import { viewActivity } from "./view.ts";
import { expectedOf, starOf } from "../test-runs/stars.ts";
import { deliveriesAbout } from "../webhooks/deliveries.ts";
import { headersAs } from "../../mail/reading/headers-as.ts";
import { materialOf } from "./material.ts";

const MAX_CONTENT_CHARS = 100_000;
/** The most recipients that a story names, of To and of Cc. */
const MAX_NAMED = 100;

/** One mail of an account at a time is read again, since mails that come in wait for the same thread. */
const turns = createTurns();

/** All that is known of a message of the user's own; unknown and foreign ids are both `not_found`. */
export async function readStory(app: App, user: UserRow, id: string) {
  const since = historySince(app, user);
  const [row] = await ownMessage(app.db, { user_id: user.id, id, since });
  if (!row) throw new AppError("not_found", "There is no such message.");
  const files = (await attachmentsOf(app.db, [row.id])).get(row.id) ?? [];
  const raw = await rawMailOf(app.db, row);
  const { content, to, cc } = await shownMail(app, row, { raw, user });
  return {
    ...viewActivity(withProgress(app, row), files),
    ...((await waitingAmong(app.db, [row])).has(row.id) ? WAITS : {}),
    ...(await lookAtTries(app, [row]))(row),
    running: row.state === "received" && app.progress.has(row.id),
    held: row.state === "received" && (await isHeld(app.db, "route_message")),
    to,
    cc,
    ...(await neighboursOf(app.db, { user_id: user.id, id: row.id, since })),
    authority: row.authority,
    instruction: row.instruction ?? "",
    contexts: storedJson<UsedContext[]>(row.contexts, []),
    content: content?.slice(0, MAX_CONTENT_CHARS).toWellFormed() ?? null,
    content_truncated: (content?.length ?? 0) > MAX_CONTENT_CHARS,
    no_reply_reason: row.no_reply_reason,
    reply: await replyTo(app, row),
    deliveries: await deliveriesAbout(app, row),
    raw_available: raw !== undefined,
    retries: await retriesOf(app.db, row),
    expected: expectedOf((await starOf(app.db, { message_id: row.id }))[0]?.expected),
  };
}

/**
 * Returns the raw mail of a message; undefined once its bytes are purged, while they are missing, if they were never
 * kept, or if this message gave them up although another inbox still has them.
 */
async function rawMailOf(db: Db, message: MessageRow): Promise<RawMailRow | undefined> {
  const { raw_mail_id } = message;
  if (raw_mail_id === null || isForgotten(message)) return undefined;
  const mails = db.selectFrom("raw_mails").selectAll().where("id", "=", raw_mail_id);
  return mails.where("purged_at", "is", null).where("lost_at", "is", null).executeTakeFirst();
}

/** Parses the mail again; null when its bytes turn out to be missing, since the rest of the story can be shown. */
async function readKept(app: App, raw: RawMailRow): Promise<Uint8Array | null> {
  try {
    return await readBytes(app, "raw_mails", raw);
  } catch (error) {
    if (isLost(error)) return null;
    throw error;
  }
}

interface Words {
  /** The material that the model was given, without the texts of files; null where it is not kept. */
  content: string | null;
  /** The recipients in the header of a mail, while that is kept. */
  to: string[];
  cc: string[];
}

const NOT_KEPT: Words = { content: null, to: [], cc: [] };

async function shownMail(
  app: App,
  row: MessageRow,
  { raw, user: { timezone } }: { raw: RawMailRow | undefined; user: UserRow },
): Promise<Words> {
  if (isForgotten(row)) return NOT_KEPT;
  if (row.source === "api") return { ...NOT_KEPT, content: await contentOfCall(app.db, row) };
  return turns(row.user_id, async () => {
    const bytes = raw && (await readKept(app, raw));
    if (!bytes) return NOT_KEPT;
    const form = storedAuth(row).signed_form;
    const headers = headersAs(bytes, form);
    const outcome = await app.parser.parse(bytes, { form, account: row.user_id });
    const content = materialOf(row, outcome, { headers, timezone });
    return { content, to: namedIn(headers, "to"), cc: namedIn(headers, "cc") };
  });
}

function namedIn(headers: MailHeaders, field: "to" | "cc"): string[] {
  const list = mailboxes(headers.get(field) ?? "");
  return list.ok ? list.mailboxes.slice(0, MAX_NAMED).map(({ address }) => address) : [];
}

async function contentOfCall(db: Db, { id }: MessageRow): Promise<string | null> {
  const contents = db.selectFrom("message_contents").select("content").where("message_id", "=", id);
  const stored = await contents.executeTakeFirst();
  return stored === undefined ? "" : stored.content;
}

/** The mail that answers it or tells of its failure, if there is one. */
async function replyTo({ db, config }: App, { id }: MessageRow) {
  const reply = await db
    .selectFrom("outgoing_mails")
    .select(["envelope_to as to", "status", "attempts", "response", "created", "completed"])
    .where("message_id", "=", id)
    .where("kind", "!=", "forward")
    .orderBy("id", "desc")
    .executeTakeFirst();
  return reply ? { ...reply, kept_here: isKeptHere(reply), held: isHeldHere(config.outbound, reply) } : null;
}

async function retriesOf(db: Db, { id }: MessageRow): Promise<string[]> {
  const rows = await db
    .selectFrom("messages")
    .select("id")
    .where("retry_of", "=", id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  return rows.map((retry) => retry.id);
}
