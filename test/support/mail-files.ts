import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "../../src/app.ts";
import type { Db } from "../../src/db/database.ts";
import { afterLongBytes } from "../../src/db/long-bytes.ts";
import { namedIn } from "../../src/db/segment-rows.ts";
import { openSegments } from "../../src/lib/segments.ts";
import { subtractSpans } from "../../src/lib/spans.ts";
import { KEPT, readBytes, storeBytes } from "../../src/resources/messages/stored-bytes.ts";

/** Bytes of each mail here. */
export const SIZE = 100_000;

/** Has an app begin a new file of mails after so many bytes, so that a few mails fill several. */
export async function withSmallFiles(app: App, segment_bytes: number): Promise<AsyncDisposable> {
  const small = await openSegments(join(app.config.data.dir, "mail"), { segment_bytes });
  app.segments = small;
  const { write } = app;
  // The writes of the app know the store that it was made with.
  app.write = afterLongBytes(
    (operation, { promises = true } = {}) => write(operation, { promises }),
    small.keep,
  );
  return small;
}

/** Stores a mail of `letter`s. */
export async function storeMail(app: App, letter: string, id = letter): Promise<void> {
  const bytes = Buffer.alloc(SIZE, letter);
  const store = async (tx: Db): Promise<void> => {
    const row = { id, size: SIZE, created: app.now(), purged_at: null };
    await tx
      .insertInto("raw_mails")
      .values({ ...row, ...storeBytes(app, id, bytes) })
      .execute();
  };
  await app.write(store, { stores: [bytes] });
}

/** What each row gives: its letter, or a question mark for what is missing. */
export async function lettersOf(app: App): Promise<Record<string, string>> {
  const rows = await app.db.selectFrom("raw_mails").select(KEPT).orderBy("id").execute();
  const read = rows.map(async (row) => {
    const bytes = await readBytes(app, "raw_mails", row).catch(() => null);
    return [row.id, bytes ? String.fromCharCode(...new Set(bytes)) : "?"] as const;
  });
  return Object.fromEntries(await Promise.all(read));
}

/** Bytes that are none of any row, and no zeros, by file. */
export async function leftOver(app: App): Promise<Record<string, number>> {
  const dir = join(app.config.data.dir, "mail");
  const left: Record<string, number> = {};
  for (const name of await readdir(dir)) {
    const bytes = await readFile(join(dir, name));
    const named = await namedIn(app.db, Number.parseInt(name, 10));
    for (const { offset, size } of subtractSpans([{ offset: 0, size: bytes.length }], named)) {
      const found = bytes.subarray(offset, offset + size).filter((byte) => byte !== 0).length;
      if (found > 0) left[name] = (left[name] ?? 0) + found;
    }
  }
  return left;
}
