import type { App } from "../../app.ts";
import type { UserRow } from "../../db/schema.ts";
import type { Keeper } from "../../db/segment-rows.ts";
import { isLost, type Kept, KEPT, readBytes } from "../../resources/messages/stored-bytes.ts";
import { safeFileName } from "./file-names.ts";
import { isShown, type MessageCard, messagePages } from "./lines.ts";
import { pagesOf } from "./pages.ts";
import type { ZipEntry } from "../../lib/zip.ts";

/**
 * Yields the files of messages, and the content of API calls. Adds the names of files missing on the disk to `missing`.
 */
export async function* filesOf(app: App, user: UserRow, missing: string[]): AsyncGenerator<ZipEntry> {
  for await (const messages of messagePages(app.db, user))
    for (const message of messages) {
      yield* attachmentsOf(app, message, missing);
      yield* contentOf(app, message);
    }
}

/** Yields mails as received; one that was retried occurs once for each run. `missing` is as for files. */
export async function* mailsOf(app: App, user: UserRow, missing: string[]): AsyncGenerator<ZipEntry> {
  for await (const messages of messagePages(app.db, user))
    for (const { id, raw_mail_id, created } of messages) {
      if (raw_mail_id === null) continue;
      const name = `raw/${id}.eml`;
      const bytes = await unerased(app, { keeper: "raw_mails", id: raw_mail_id });
      if (bytes === "missing") missing.push(name);
      else if (bytes) yield { name, modified: created, content: [bytes] };
    }
}

/**
 * Yields answers as sent. Mails to the account itself are left out: with an API key nobody must get at a login code.
 */
export async function* sentMailsOf({ db }: App, user: UserRow): AsyncGenerator<ZipEntry> {
  const own = db.selectFrom("outgoing_mails").select("id").where("user_id", "=", user.id);
  const all = own.where("message_id", "is not", null).where(isShown);
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

async function* attachmentsOf(
  app: App,
  { id: message_id }: MessageCard,
  missing: string[],
): AsyncGenerator<ZipEntry> {
  const files = await app.db
    .selectFrom("attachments")
    .select(["id", "filename", "created"])
    .where("message_id", "=", message_id)
    .where("purged_at", "is", null)
    .orderBy("id")
    .execute();
  const taken = new Set<string>();
  for (const { id, filename, created } of files) {
    const bytes = await unerased(app, { keeper: "attachments", id });
    const name = `attachments/${message_id}/${safeFileName(filename, taken)}`;
    if (bytes === "missing") missing.push(name);
    else if (bytes) yield { name, modified: created, content: [bytes] };
  }
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

/** Returns bytes; undefined if they were purged, even during the read, which may then have returned zeros. */
async function unerased(
  app: App,
  { keeper, id }: { keeper: Keeper; id: string },
): Promise<Uint8Array | "missing" | undefined> {
  const find = () => app.db.selectFrom(keeper).select(KEPT).where("id", "=", id).executeTakeFirst();
  const stored = await find();
  const bytes = stored && (await bytesOrMissing(app, keeper, stored));
  if (!bytes || bytes === "missing") return bytes ?? undefined;
  const after = await find();
  return after !== undefined && (after.bytes !== null || after.segment !== null) ? bytes : undefined;
}

async function bytesOrMissing(
  app: App,
  keeper: Keeper,
  stored: Kept,
): Promise<Uint8Array | "missing" | null> {
  try {
    return await readBytes(app, keeper, stored);
  } catch (error) {
    if (isLost(error)) return "missing";
    throw error;
  }
}
