import { describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest, migrationStatus } from "../../src/db/migrate.ts";
import { messageOf } from "../../src/errors.ts";

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
