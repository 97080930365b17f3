import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { migrations } from "../../migrations/index.ts";
import { createApp } from "../../src/app.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { AppError, messageOf } from "../../src/errors.ts";
import { createLog } from "../../src/lib/log.ts";
import { domainKeys } from "../../src/mail/writing/dkim-keys.ts";
import { memoryDisk, whyNoMounts } from "../faults/disks.ts";
import { testApp } from "../support/app.ts";
import { entriesOf, restored } from "../support/backups.ts";

const SCHEMAS = join(import.meta.dir, "../fixtures/schemas");
const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");
const releases = (await readdir(SCHEMAS)).filter((name) => name.endsWith(".sql")).sort();
/** Columns that went, and where what they held is now. */
const MOVED = /^custom_domains\.dkim_|^connections\.fallback_connection_id$/;
/** What a migration fills for rows that were there. */
const KYSELY = /^kysely_/;

const reason = await whyNoMounts("tmpfs");
if (reason !== undefined) console.log(`A full disk is not tried: ${reason}`);

type Row = Record<string, unknown>;

let base: string;
beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "mailwright-upgrade-"));
});
afterAll(() => rm(base, { recursive: true, force: true }));

test("there is a database of every released schema", () => {
  expect(releases.map((name) => name.replace(".sql", ""))).toEqual(
    Object.keys(migrations).slice(0, releases.length),
  );
  expect(releases.length).toBeGreaterThanOrEqual(4);
});

describe.each(releases)("a database of %s", (name) => {
  test("keeps every row through the upgrade, and is sound after it", async () => {
    const path = await oldDatabase(name);
    const before = rowsOf(path);
    {
      await using database = openDatabase(`sqlite:${path}`);
      expect(await migrateToLatest(database.db)).toEqual(
        Object.keys(migrations).slice(releases.indexOf(name) + 1),
      );
    }
    expectKept(before, rowsOf(path));
    const db = new Sqlite(path);
    expect(db.pragma("integrity_check", { simple: true })).toBe("ok");
    expect(db.pragma("foreign_key_check")).toEqual([]);
    const count = (query: string) => db.prepare(`select count(*) from ${query}`).pluck().get() as number;
    // What a search finds is made of them in the background.
    expect(count("unindexed_messages")).toBe(count("messages where state <> 'received'"));
    db.close();
  });

  test("is served: key, account, inboxes, messages, threads, waiting work, domains, webhooks", async () => {
    const path = await oldDatabase(name);
    const number = releases.indexOf(name) + 1;
    await using t = await testApp({
      database: { url: `sqlite:${path}` },
      security: { master_key: MASTER_KEY },
    });
    const headers = {
      "x-api-key": /mw_live_\w+/.exec(await readFile(join(SCHEMAS, name), "utf8"))?.[0] ?? "",
    };
    const get = async (at: string) => (await t.request(at, { headers })).body;
    expect(await get("/auth/me")).toMatchObject({
      email: "ada@example.com",
      credits: { used: number < 4 ? 2 : 0 },
    });
    expect(await get("/connections")).toMatchObject([{ kind: "demo", has_credential: true }]);
    await t.drain();
    expect((await get("/messages")).items).toMatchObject([
      { source: "email", status: "done" },
      { source: "api", status: "done", result: "It is fine." },
    ]);
    const inboxes: Row[] = await get("/inboxes");
    expect(inboxes.map(({ address }) => address)).toContain("desk-abcdefghjkmn@mw.test");
    if (number >= 2) {
      expect(inboxes.map(({ address }) => address)).toContain("hello@ada.example");
      expect(await get("/contexts")).toMatchObject([{ slug: "tone" }]);
      const [domain] = await get("/custom-domains");
      expect(domain).toMatchObject({ domain: "ada.example", status: "active" });
      expect(await domainKeys(t.app, domain.id)).toMatchObject([{ selector: "s1" }]);
    }
    if (number >= 4) {
      const [endpoint] = await get("/v1/webhooks");
      expect(endpoint).toMatchObject({ url: "https://hooks.example/in", enabled: true });
    }
    expect(await readdir(t.app.config.backup.dir)).toEqual(
      number === Object.keys(migrations).length ? [] : [`before-${Object.keys(migrations)[number]}.zip`],
    );
  });
});

describe("before an upgrade", () => {
  const first = releases[0] as string;

  test("a backup is made of the database as it was, and it can be restored", async () => {
    const config = await oldFolder(first, "backed-up");
    const before = rowsOf(join(config.data.dir, "mailwright.db"));
    await opened(config);
    const archive = join(config.data.dir, "backups", `before-${Object.keys(migrations)[1]}.zip`);
    expect((await entriesOf(archive)).map((entry) => entry.name)).toContain("mailwright.db");
    expect(await restored(config, archive)).toMatchObject({
      manifest: { migrations: ["0001-foundation"], mail: false },
    });
    expect(rowsOf(join(config.data.dir, "mailwright.db"))).toEqual(before);
    await opened(config);
  });

  test("three such backups are kept", async () => {
    const config = await oldFolder(first, "kept");
    await opened(config);
    const { dir } = config.backup;
    for (const name of ["before-0097-a.zip", "before-0098-b.zip", "before-0099-c.zip"]) {
      await writeFile(join(dir, name), "");
      await Bun.write(join(dir, "other.zip"), "");
    }
    await rm(join(config.data.dir, "mailwright.db"));
    await loadInto(first, join(config.data.dir, "mailwright.db"));
    await opened(config);
    const names = await readdir(dir);
    expect(names.filter((name) => name.startsWith("before-"))).toHaveLength(3);
    expect(names).toContain("other.zip");
    expect(names).toContain(`before-${Object.keys(migrations)[1]}.zip`);
  });

  test("a new or an up-to-date database needs none", async () => {
    const config = defaultConfig({ data: { dir: join(base, "new") } });
    await opened(config);
    await opened(config);
    expect(existsSync(config.backup.dir)).toBe(false);
  });

  test("a backup that cannot be made stops it, in words, and the database stays as it is", async () => {
    const config = await oldFolder(first, "refused");
    await writeFile(join(config.data.dir, "backups"), "in its way");
    const before = rowsOf(join(config.data.dir, "mailwright.db"));
    expect(await opened(config).catch(messageOf)).toMatch(
      /^The backup cannot be written to .*backups: ENOTDIR/,
    );
    expect(rowsOf(join(config.data.dir, "mailwright.db"))).toEqual(before);
  });

  test.skipIf(reason !== undefined)("no room for it stops it, in words", async () => {
    await using disk = await memoryDisk(1);
    const config = await oldFolder(first, "no-room", join(disk.path, "backups"));
    const db = new Sqlite(join(config.data.dir, "mailwright.db"));
    db.exec("insert into raw_mails (id, size, created, bytes) values ('x', 4000000, 0, randomblob(4000000))");
    db.close();
    const error = await opened(config).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(AppError);
    expect(messageOf(error)).toBe(`There is no room for a backup in ${config.backup.dir}.`);
    expect((error as AppError).extras.fix).toContain("backup.dir");
    expect(rowsOf(join(config.data.dir, "mailwright.db"))["kysely_migration"]).toHaveLength(1);
    expect(await readdir(config.backup.dir)).toEqual([]);
  });
});

describe("an upgrade that does not get to its end leaves the old database:", () => {
  const last = releases.at(-1) as string;

  test("one that fails in the middle", async () => {
    const path = await oldDatabase(last);
    const db = new Sqlite(path);
    db.exec("create table dkim_keys (in_the_way)");
    db.close();
    const before = rowsOf(path);
    {
      await using database = openDatabase(`sqlite:${path}`);
      expect(await migrateToLatest(database.db).catch(messageOf)).toBe(
        "The database could not be migrated; nothing was changed.",
      );
    }
    expect(rowsOf(path)).toEqual(before);
    await using database = openDatabase(`sqlite:${path}`);
    await database.write((tx) => tx.schema.dropTable("dkim_keys").execute());
    await migrateToLatest(database.db);
  });

  test("one that is killed in the middle", async () => {
    const path = await oldDatabase(last);
    const before = rowsOf(path);
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "../fixtures/killed-migration.ts"), path],
      { stdout: "pipe" },
    );
    for await (const chunk of child.stdout) if (String(Buffer.from(chunk)).includes("in the middle")) break;
    child.kill("SIGKILL");
    await child.exited;
    expect(rowsOf(path)).toEqual(before);
    await using database = openDatabase(`sqlite:${path}`);
    await migrateToLatest(database.db);
    expectKept(before, rowsOf(path));
  });
});

async function oldDatabase(name: string): Promise<string> {
  const path = join(base, `${Bun.randomUUIDv7()}.db`);
  await loadInto(name, path);
  return path;
}

async function loadInto(name: string, path: string): Promise<void> {
  const db = new Sqlite(path);
  db.pragma("journal_mode = WAL");
  db.exec(await readFile(join(SCHEMAS, name), "utf8"));
  db.close();
}

/** A data folder with an old database in it. */
async function oldFolder(name: string, folder: string, backups?: string) {
  const dir = join(base, folder);
  const config = defaultConfig({
    data: { dir },
    smtp: { hostname: "mx.mw.test" },
    security: { master_key: MASTER_KEY },
    ...(backups === undefined ? {} : { backup: { dir: backups } }),
  });
  await Bun.write(join(dir, "note"), "");
  await loadInto(name, join(dir, "mailwright.db"));
  return config;
}

async function opened(config: Parameters<typeof createApp>[0]): Promise<void> {
  await using _app = await createApp(config, { log: createLog({ level: "silent", format: "text" }) });
}

function rowsOf(path: string): Record<string, Row[]> {
  const db = new Sqlite(path);
  const tables = db
    .prepare(
      "select name from pragma_table_list where type = 'table' and wr = 0 and name not like 'sqlite_%' order by name",
    )
    .pluck()
    .all() as string[];
  const rows = Object.fromEntries(
    tables.map((table) => [table, db.prepare(`select * from "${table}" order by rowid`).all() as Row[]]),
  );
  db.close();
  return rows;
}

/** New columns and tables may come; what was there stays, and where it was. */
function expectKept(before: Record<string, Row[]>, after: Record<string, Row[]>): void {
  for (const [table, rows] of Object.entries(before)) {
    if (KYSELY.test(table)) continue;
    const same = rows.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([column]) => !MOVED.test(`${table}.${column}`))),
    );
    expect([table, after[table]]).toMatchObject([table, same]);
    expect([table, after[table]?.length]).toEqual([table, rows.length]);
  }
}
