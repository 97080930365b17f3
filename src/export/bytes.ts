import type { App } from "../app.ts";
import type { AttachmentRow, UserRow } from "../db/schema.ts";
import { readBytes, type StoredBytes } from "../messages/stored-bytes.ts";
import { safeFileName } from "./file-names.ts";
import { type MessageCard, messagePages } from "./lines.ts";
import { pagesOf } from "./pages.ts";
import type { ZipEntry } from "../lib/zip.ts";

/** The files of messages, and what calls sent along. */
export async function* filesOf(app: App, user: UserRow): AsyncGenerator<ZipEntry> {
  for await (const messages of messagePages(app.db, user))
    for (const message of messages) {
      yield* attachmentsOf(app, message);
      yield* contentOf(app, message);
    }
}

/** Mails as they came in; one that is tried again is there once for each try. */
export async function* mailsOf(app: App, user: UserRow): AsyncGenerator<ZipEntry> {
  for await (const messages of messagePages(app.db, user))
    for (const { id, raw_mail_id, created } of messages) {
      if (raw_mail_id === null) continue;
      const bytes = await unerased(app, () =>
        app.db
          .selectFrom("raw_mails")
          .select(["bytes", "segment", "segment_offset", "size"])
          .where("id", "=", raw_mail_id)
          .executeTakeFirst(),
      );
      if (bytes) yield { name: `raw/${id}.eml`, modified: created, content: [bytes] };
    }
}

/** Answers as they were sent. Letters to the account are left out: a key must not lead to a login code. */
export async function* sentMailsOf({ db }: App, user: UserRow): AsyncGenerator<ZipEntry> {
  const own = db.selectFrom("outgoing_mails").select("id").where("user_id", "=", user.id);
  const all = own.where("message_id", "is not", null);
  const pages = pagesOf<{ id: string }>((last, limit) =>
    all
      .where("id", ">", last?.id ?? "")
      .orderBy("id")
      .limit(limit)
      .execute(),
  );
  for await (const mails of pages)
    for (const { id } of mails) {
      const mail = await db
        .selectFrom("outgoing_mails")
        .select(["raw", "created"])
        .where("id", "=", id)
        .executeTakeFirst();
      if (mail?.raw) yield { name: `sent/${id}.eml`, modified: mail.created, content: [mail.raw] };
    }
}

async function* attachmentsOf(app: App, { id: message_id }: MessageCard): AsyncGenerator<ZipEntry> {
  const files = await app.db
    .selectFrom("attachments")
    .select(["id", "filename", "created"])
    .where("message_id", "=", message_id)
    .where("purged_at", "is", null)
    .orderBy("id")
    .execute();
  const taken = new Set<string>();
  for (const { id, filename, created } of files) {
    const bytes = await unerased(app, () => attachment(app, id));
    const name = `attachments/${message_id}/${safeFileName(filename, taken)}`;
    if (bytes) yield { name, modified: created, content: [bytes] };
  }
}

function attachment({ db }: App, id: string): Promise<Stored | undefined> {
  return db
    .selectFrom("attachments")
    .select(["bytes", "segment", "segment_offset", "size"])
    .where("id", "=", id)
    .executeTakeFirst();
}

async function* contentOf({ db }: App, { id, created }: MessageCard): AsyncGenerator<ZipEntry> {
  const row = await db
    .selectFrom("message_contents")
    .select("content")
    .where("message_id", "=", id)
    .executeTakeFirst();
  const content = row?.content ?? null;
  if (content !== null)
    yield { name: `content/${id}.txt`, modified: created, content: [Buffer.from(content)] };
}

type Stored = StoredBytes & Pick<AttachmentRow, "size">;

/** Undefined for what was purged, also while it was read: zeros are in place of it then. */
async function unerased(app: App, find: () => Promise<Stored | undefined>): Promise<Uint8Array | undefined> {
  const stored = await find();
  const bytes = stored && (await readBytes(app, stored));
  if (!bytes) return undefined;
  const after = await find();
  return after !== undefined && (after.bytes !== null || after.segment !== null) ? bytes : undefined;
}
