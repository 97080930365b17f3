import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";

let made: Promise<Buffer> | undefined;

/** The bytes of an empty database that has been migrated, which costs half as much as all else that a server is made of. */
export function migratedImage(): Promise<Buffer> {
  return (made ??= make());
}

async function make(): Promise<Buffer> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-image-"));
  const path = join(dir, "image.db");
  {
    await using database = openDatabase(`sqlite:${path}`);
    await migrateToLatest(database.db);
  }
  const sqlite = new Sqlite(path);
  sqlite.pragma("journal_mode = DELETE");
  const image = sqlite.serialize();
  sqlite.close();
  await rm(dir, { recursive: true, force: true });
  return image;
}
