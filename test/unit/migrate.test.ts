import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest, migrationStatus } from "../../src/db/migrate.ts";
import { messageOf } from "../../src/errors.ts";
import { testApp } from "../support/app.ts";
import { fillFirstVersion, idOf, KEY, type Row } from "../support/first-version.ts";

describe("migrations", () => {
  test("make a fresh database in the order of their names", async () => {
    await using database = openDatabase("sqlite::memory:");
    expect(await migrationStatus(database.db)).toEqual(
      Object.keys(migrations).map((name) => ({ name, executed: false })),
    );
    expect(await migrateToLatest(database.db)).toEqual(Object.keys(migrations));
    expect((await migrationStatus(database.db)).every(({ executed }) => executed)).toBe(true);
    expect(await database.db.selectFrom("messages").selectAll().execute()).toEqual([]);
  });

  test("do nothing the second time", async () => {
    await using database = openDatabase("sqlite::memory:");
    await migrateToLatest(database.db);
    expect(await migrateToLatest(database.db)).toEqual([]);
  });

  test("are listed in the order in which they run", () => {
    expect(Object.keys(migrations)).toEqual(Object.keys(migrations).toSorted());
  });

  test("refuse a database that a newer version has written, and leave it alone", async () => {
    await using database = openDatabase("sqlite::memory:");
    await migrateToLatest(database.db);
    await sql`insert into kysely_migration values ('9999-of-tomorrow', '2030-01-01')`.execute(database.db);
    expect(await migrateToLatest(database.db).catch(messageOf)).toBe(
      "This database was written by a newer Mailwright (it has the migration 9999-of-tomorrow). " +
        "Start that version or a later one, or restore a backup made before the upgrade.",
    );
    const { rows } = await sql`select name from kysely_migration order by name`.execute(database.db);
    expect(rows).toEqual([...Object.keys(migrations), "9999-of-tomorrow"].map((name) => ({ name })));
  });

  test("leave nothing behind when one is cut off half-way", async () => {
    await using database = openDatabase("sqlite::memory:");
    const { db } = database;
    const cutOff = new Migrator({
      db,
      provider: {
        getMigrations: async () => ({
          "0001-half": {
            async up(tx) {
              await sql`create table half (id integer)`.execute(tx);
              throw new Error("cut off");
            },
          },
        }),
      },
    });
    const { error } = await cutOff.migrateToLatest();
    expect(error).toMatchObject({ message: "cut off" });
    const tables = await db.introspection.getTables();
    expect(tables.map(({ name }) => name)).not.toContain("half");
    expect(await migrateToLatest(db)).toEqual(Object.keys(migrations));
  });
});

describe("a database of the first version", () => {
  test("keeps every row, and what is new has its initial value", async () => {
    await using database = openDatabase("sqlite::memory:");
    const { db } = database;
    const filled = await fillFirstVersion(db);
    expect(await migrateToLatest(db)).toEqual(Object.keys(migrations).slice(1));
    for (const [table, rows] of Object.entries(filled)) {
      const kept = await sql<Row>`select * from ${sql.table(table)} order by rowid`.execute(db);
      expect([table, kept.rows]).toMatchObject([table, rows]);
      expect([table, kept.rows.length]).toEqual([table, rows.length]);
    }
    const added = { password_hash: null, timezone: "UTC", reply_footer: 1 };
    expect(await db.selectFrom("users").selectAll().execute()).toMatchObject([added, added]);
    expect(await db.selectFrom("inboxes").selectAll().execute()).toMatchObject([
      { context_ids: null, retention_days: null, domain_id: null },
    ]);
    expect((await sql`pragma foreign_key_check`.execute(db)).rows).toEqual([]);
    expect((await sql`pragma integrity_check`.execute(db)).rows).toEqual([{ integrity_check: "ok" }]);
  });

  test("goes on to serve its account: key, connection, inbox, messages, threads, credits and waiting work", async () => {
    const dir = mkdtempSync(join(tmpdir(), "mailwright-migrate-"));
    using _ = { [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
    const url = `sqlite:${join(dir, "old.db")}`;
    {
      await using old = openDatabase(url);
      await fillFirstVersion(old.db);
    }
    await using t = await testApp({ database: { url } });
    const get = async (path: string) => (await t.request(path, { headers: { "x-api-key": KEY.key } })).body;
    expect(await get("/auth/me")).toMatchObject({ email: "ada@example.com", credits: { used: 2 } });
    expect(await get("/connections")).toMatchObject([
      { kind: "demo", has_credential: true, auth: "key", used_by_inboxes: 1 },
    ]);
    expect(await get("/inboxes")).toMatchObject([
      { address: "desk-abcdefghjkmn@mw.test", domain_id: null, context_ids: null, routed: true },
    ]);
    await t.drain();
    expect((await get("/messages")).items).toMatchObject([
      { message_id: idOf(12), source: "email", status: "done", tags: [], retry_of: null },
      { message_id: idOf(11), source: "api", status: "done", result: "It is fine." },
    ]);
    expect((await get("/messages?status=failed")).items).toEqual([]);
    expect((await get(`/messages?inbox_id=${idOf(5)}`)).items).toHaveLength(2);
    const thread = await get(`/conversations/${idOf(7)}`);
    expect(thread.turns).toMatchObject([{ instruction: "Look" }, { sender: "ada@example.com" }]);
    expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
    expect((await get("/auth/me")).credits.used).toBe(2);
  });
});
