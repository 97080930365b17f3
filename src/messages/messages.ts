import type { App } from "../app.ts";
import { remainingCredits } from "../billing/ledger.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { AttachmentRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { decodeCursor, type Page, pageOf } from "../lib/pagination.ts";
import { readBytes } from "./stored-bytes.ts";
import { type AttachmentMeta, type RoutingView, viewActivity, viewRouting } from "./view.ts";

export type ActivityView = ReturnType<typeof viewActivity>;

/** The user's messages, newest first. */
export async function listMessages(
  app: App,
  user: UserRow,
  wanted: { limit: number; cursor?: string },
): Promise<Page<ActivityView>> {
  let query = app.db.selectFrom("messages").selectAll().where("user_id", "=", user.id);
  if (wanted.cursor !== undefined) query = query.where("id", "<", decodeCursor(wanted.cursor, 1)[0] ?? "");
  const rows = await query
    .orderBy("id", "desc")
    .limit(wanted.limit + 1)
    .execute();
  const files = Map.groupBy(
    await attachmentsOf(
      app.db,
      rows.map((row) => row.id),
    ),
    (file) => file.message_id,
  );
  return pageOf(rows, wanted.limit, {
    view: (row) => viewActivity(row, files.get(row.id) ?? []),
    key: (row) => [row.id],
  });
}

/** A message of the user's own in the shape of the routing API; unknown and foreign ids are both `not_found`. */
export async function readRouting(app: App, user: UserRow, id: string): Promise<RoutingView> {
  const [row] = await ownMessage(app.db, { user_id: user.id, id });
  if (!row) throw new AppError("not_found", "There is no such message.");
  const files = await attachmentsOfOne(app.db, { message_id: row.id });
  return viewRouting(row, files, await remainingCredits(app, app.db, user));
}

/** The bytes of an attachment whose message is the user's own. */
export async function readAttachment(
  app: App,
  user: UserRow,
  wanted: { message_id: string; attachment_id: string },
): Promise<AttachmentRow & { bytes: Uint8Array }> {
  const row = await app.db
    .selectFrom("attachments")
    .innerJoin("messages", "messages.id", "attachments.message_id")
    .selectAll("attachments")
    .where("attachments.id", "=", wanted.attachment_id)
    .where("messages.id", "=", wanted.message_id)
    .where("messages.user_id", "=", user.id)
    .executeTakeFirst();
  const bytes = row && (await readBytes(app, row));
  if (!row || !bytes)
    throw new AppError("not_found", "There is no such attachment, or its content has been deleted.");
  return { ...row, bytes };
}

const ownMessage = prepared((db, key: { user_id: string; id: string }) =>
  db.selectFrom("messages").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

const META = [
  "id",
  "message_id",
  "direction",
  "filename",
  "content_type",
  "size",
  "created",
  "purged_at",
] as const satisfies (keyof AttachmentMeta)[];

const attachmentsOfOne = prepared((db, key: { message_id: string }) =>
  db.selectFrom("attachments").select(META).where("message_id", "=", key.message_id).orderBy("id"),
);

async function attachmentsOf(db: Db, message_ids: string[]): Promise<AttachmentMeta[]> {
  if (message_ids.length === 0) return [];
  return db
    .selectFrom("attachments")
    .select(META)
    .where("message_id", "in", message_ids)
    .orderBy("id")
    .execute();
}
