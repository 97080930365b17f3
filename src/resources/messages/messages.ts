import type { App } from "../../app.ts";
import { remainingCredits } from "../billing/ledger.ts";
import { historySince } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { areForgotten } from "./forgotten.ts";
import { bodyOf, KEPT } from "./stored-bytes.ts";
import { type AttachmentMeta, type RunView, viewRun } from "./view.ts";

export interface Download {
  filename: string;
  content_type: string;
  body: Uint8Array | Blob;
}

/** A message of the user's own in the shape of the answer to a call; unknown and foreign ids are both `not_found`. */
export async function readRun(app: App, user: UserRow, id: string): Promise<RunView> {
  const [row] = await ownMessage(app.db, { user_id: user.id, id, since: historySince(app, user) });
  if (!row) throw new AppError("not_found", "There is no such message.");
  return runView(app, user, row);
}

/** A message of the user's own in the shape of the answer to a call. */
export async function runView(app: App, user: UserRow, row: MessageRow): Promise<RunView> {
  const files = await attachmentsOfOne(app.db, { message_id: row.id });
  return viewRun(withProgress(app, row), files, await remainingCredits(app, app.db, user));
}

/** A message that is being worked on, with the steps that its run has taken so far. */
export function withProgress(app: App, row: MessageRow): MessageRow {
  const steps = row.state === "received" ? app.progress.get(row.id) : undefined;
  return steps ? { ...row, steps: JSON.stringify(steps()) } : row;
}

/** An attachment whose message is the user's own, to be sent. */
export async function readAttachment(
  app: App,
  user: UserRow,
  wanted: { message_id: string; attachment_id: string },
): Promise<Download> {
  const row = await app.db
    .selectFrom("attachments")
    .innerJoin("messages", "messages.id", "attachments.message_id")
    .selectAll("attachments")
    .where("attachments.id", "=", wanted.attachment_id)
    .where("messages.id", "=", wanted.message_id)
    .where("messages.user_id", "=", user.id)
    .where("messages.created", ">=", historySince(app, user))
    .where("messages.deleted_at", "is", null)
    .executeTakeFirst();
  const body = row && (await bodyOf(app, "attachments", { row, who: user.id }));
  if (!row || !body)
    throw new AppError("not_found", "There is no such attachment, or its content has been deleted.");
  return { filename: row.filename, content_type: row.content_type, body };
}

/** The mail as it came in, to be sent, of a message that is the user's own and has not given it up. */
export async function readRawMail(app: App, user: UserRow, message_id: string): Promise<Download> {
  const row = await app.db
    .selectFrom("messages")
    .innerJoin("raw_mails", "raw_mails.id", "messages.raw_mail_id")
    .select(KEPT.map((column) => `raw_mails.${column}` as const))
    .where("messages.id", "=", message_id)
    .where("messages.user_id", "=", user.id)
    .where("messages.created", ">=", historySince(app, user))
    .where("messages.deleted_at", "is", null)
    .where((eb) => eb.not(areForgotten(eb)))
    .executeTakeFirst();
  const body = row && (await bodyOf(app, "raw_mails", { row, who: user.id }));
  if (!body) throw new AppError("not_found", "There is no raw mail of this message, or it has been deleted.");
  return { filename: `message-${message_id}.eml`, content_type: "message/rfc822", body };
}

/** The files of some messages without their bytes, by message, in the order in which they were stored. */
export async function attachmentsOf(db: Db, message_ids: string[]): Promise<Map<string, AttachmentMeta[]>> {
  if (message_ids.length === 0) return new Map();
  const rows = await db
    .selectFrom("attachments")
    .select(META)
    .where("message_id", "in", message_ids)
    .execute();
  const sorted = rows.sort((one, other) => (one.id < other.id ? -1 : 1));
  return Map.groupBy(sorted, (file) => file.message_id);
}

/** Any message by its id, whosever it is. */
export const messageById = prepared((db, key: { id: string }) =>
  db.selectFrom("messages").selectAll().where("id", "=", key.id),
);

/** A message of the user's own within the history that the plan shows. */
export const ownMessage = prepared((db, key: { user_id: string; id: string; since: number }) =>
  db
    .selectFrom("messages")
    .selectAll()
    .where("id", "=", key.id)
    .where("user_id", "=", key.user_id)
    .where("created", ">=", key.since)
    .where("deleted_at", "is", null),
);

/** The messages of the user's that were accepted next after one, and next before it. */
export async function neighboursOf(
  db: Db,
  { since, ...of }: { user_id: string; id: string; since: number },
): Promise<{ newer: string | null; older: string | null }> {
  // Only ids are compared, so that one entry of an index is read.
  const place = { ...of, from: firstIdAt(since) };
  const [newer] = await nextAfter(db, place);
  const [older] = await nextBefore(db, place);
  return { newer: newer?.id ?? null, older: older?.id ?? null };
}

type Place = { user_id: string; id: string; from: string };

const nextAfter = prepared((db, key: Place) => shownOf(db, key).where("id", ">", key.id).orderBy("id"));

const nextBefore = prepared((db, key: Place) =>
  shownOf(db, key).where("id", "<", key.id).orderBy("id", "desc"),
);

function shownOf(db: Db, { user_id, from }: Place) {
  return db
    .selectFrom("messages")
    .select("id")
    .where("user_id", "=", user_id)
    .where("id", ">=", from)
    .where("deleted_at", "is", null)
    .limit(1);
}

const META = [
  "id",
  "message_id",
  "direction",
  "filename",
  "content_type",
  "size",
  "created",
  "purged_at",
  "lost_at",
] as const satisfies (keyof AttachmentMeta)[];

const attachmentsOfOne = prepared((db, key: { message_id: string }) =>
  db.selectFrom("attachments").select(META).where("message_id", "=", key.message_id).orderBy("id"),
);
