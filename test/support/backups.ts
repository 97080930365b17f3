import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import Sqlite from "better-sqlite3";
import { openPromise } from "yauzl";
import { createVerifiedUser } from "../../src/resources/accounts/accounts.ts";
import { type App, createApp } from "../../src/app.ts";
import type { Manifest } from "../../src/backup/manifest.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { type Config, type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { messageOf } from "../../src/errors.ts";
import { createLog } from "../../src/lib/log.ts";
import { layKeys } from "./keys.ts";
import { keepAll } from "./kept-bytes.ts";

export const NOW = Date.UTC(2026, 0, 15, 12) / 1_000;
/** Larger than what the database takes. */
const LARGE = Buffer.from("A large mail. ".repeat(5_000));

export interface Lab extends AsyncDisposable {
  base: string;
  /** An archive of a folder with one account and one large mail. */
  archive: string;
  /** The folder that it was made of. */
  source: Config;
  /** The configuration for an empty folder of that name, or for what a test has put there. */
  config: (name: string, overrides?: ConfigOverrides) => Config;
  /** A folder of that name with another account, that has been closed. */
  other: (name: string) => Promise<Config>;
}

export async function backupLab(): Promise<Lab> {
  const base = await mkdtemp(join(tmpdir(), "mailwright-backups-"));
  const config: Lab["config"] = (name, overrides = {}) =>
    defaultConfig({
      ...overrides,
      data: { dir: join(base, name) },
      smtp: { hostname: "mx.mw.test", ...overrides.smtp },
    });
  const source = config("source");
  await fill(source, "ada@example.com");
  const archive = join(base, "backup.zip");
  await backupToFile(sourceOf(source, NOW), archive, new AbortController().signal);
  return {
    base,
    archive,
    source,
    config,
    async other(name) {
      const made = config(name);
      await fill(made, "bob@example.com");
      return made;
    },
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
}

/** What a restore gives, or says. */
export async function restored(config: Config, archive: string, hold = false) {
  return restoreBackup(config, archive, { now: NOW, hold, confirm: async () => true }).catch(messageOf);
}

/** What a server does on such a folder, without its listeners. */
export function openApp(config: Config): Promise<App> {
  return createApp(config, { log: createLog({ level: "silent", format: "text" }) });
}

/** The addresses of the accounts in a data folder, and the sizes of the mails that can be read in full. */
export async function contentOf(config: Config): Promise<{ accounts: string[]; mails: number[] }> {
  await using app = await openApp(config);
  const users = await app.db.selectFrom("users").select("email").execute();
  const rows = await app.db.selectFrom("raw_mails").selectAll().execute();
  const mails = rows.map(async ({ segment, segment_offset, size }) => {
    const bytes = await app.segments.read({ segment: segment ?? 0, offset: segment_offset ?? 0, size });
    return bytes?.equals(LARGE) ? size : 0;
  });
  return { accounts: users.map(({ email }) => email), mails: await Promise.all(mails) };
}

/** Every file below a folder with what it holds; locks left out. */
export async function filesOf(dir: string): Promise<Record<string, string>> {
  const names = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = names.filter((entry) => entry.isFile() && !entry.name.endsWith(".lock"));
  const read = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    return [
      path.slice(dir.length + 1),
      createHash("sha256")
        .update(await readFile(path))
        .digest("hex"),
    ] as const;
  });
  return Object.fromEntries((await Promise.all(read)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The entries of an archive, in its order. */
export async function entriesOf(archive: string): Promise<{ name: string; content: Buffer }[]> {
  const zip = await openPromise(archive);
  const found: { name: string; content: Buffer }[] = [];
  for await (const entry of zip.eachEntry())
    found.push({ name: entry.fileName, content: await buffer(await zip.openReadStreamPromise(entry)) });
  return found;
}

/** The manifest as it should be for these entries. */
export function withManifest(entries: { name: string; content: Buffer }[], change: Partial<Manifest> = {}) {
  const files = entries.filter(({ name }) => name !== "manifest.json");
  const old = JSON.parse(String(entries.find(({ name }) => name === "manifest.json")?.content)) as Manifest;
  const named = files.map(({ name, content }) => ({
    name,
    size: content.byteLength,
    sha256: createHash("sha256").update(content).digest("hex"),
  }));
  const manifest = { ...old, entries: named, ...change };
  return [...files, { name: "manifest.json", content: Buffer.from(JSON.stringify(manifest)) }];
}

/** The bytes of a database that was changed by some SQL. */
export async function changedDatabase(base: string, bytes: Buffer, text: string): Promise<Buffer> {
  const path = join(base, `changed-${Bun.randomUUIDv7()}.db`);
  await writeFile(path, bytes);
  const database = new Sqlite(path);
  database.pragma("foreign_keys = off");
  database.unsafeMode();
  database.exec(text);
  database.close();
  return readFile(path);
}

async function fill(config: Config, email: string): Promise<void> {
  await mkdir(config.data.dir, { mode: 0o700 });
  await layKeys(config.data.dir);
  await using app = await openApp(config);
  await createVerifiedUser(app, { email });
  await storeLarge(app);
}

/** Stores one more large mail. */
export async function storeLarge(app: App): Promise<void> {
  const [{ segment, offset, size } = { segment: 0, offset: 0, size: 0 }] = await keepAll(app.segments, [
    LARGE,
  ]);
  await app.write(async (tx) => {
    await tx
      .insertInto("raw_mails")
      .values({
        id: Bun.randomUUIDv7(),
        bytes: null,
        segment,
        segment_offset: offset,
        size,
        created: NOW,
        purged_at: null,
      })
      .execute();
  });
}
