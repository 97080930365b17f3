import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { type Db, openDatabase } from "../../src/db/database.ts";
import { messageOf } from "../../src/errors.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { remembered } from "../../src/db/prepared.ts";
import { effectOf } from "../../src/db/row-memory.ts";

const retired = remembered((db, key: { address: string }) =>
  db.selectFrom("retired_addresses").selectAll().where("address", "=", key.address),
);
const DESK = { address: "desk@mw.test" };

test("the same rows are read once, frozen, and each question has its own", async () => {
  await using at = await database();
  await retire(at.db, 1);
  const rows = await retired(at.db, DESK);
  expect(rows).toEqual([{ address: "desk@mw.test", retired_at: 1 }]);
  await nextTick();
  expect(await retired(at.db, DESK)).toBe(rows);
  expect(await retired(at.db, { address: "other@mw.test" })).toEqual([]);
  for (const change of [
    () => Object.assign(rows[0] ?? {}, { retired_at: 9 }),
    () => (rows as unknown[]).push("another"),
  ])
    expect(change).toThrow(TypeError);
});

test("what is written all the time leaves them, in a transaction and outside of one", async () => {
  await using at = await database();
  const rows = await retired(at.db, DESK);
  await at.db.deleteFrom("jobs").execute();
  await at.write((tx) => tx.updateTable("messages").set({ hop: 1 }).execute());
  await Promise.all([
    at.write((tx) => tx.selectFrom("users").selectAll().execute()),
    at.write(() => Promise.resolve()),
  ]);
  expect(await retired(at.db, DESK)).toBe(rows);
});

test("an insert, an update and a delete are seen at once, also by the transaction that they are part of", async () => {
  await using at = await database();
  const seen = async (db: Db) => (await retired(db, DESK)).map(({ retired_at }) => retired_at);
  expect(await seen(at.db)).toEqual([]);
  await at.write(async (tx) => {
    await retire(tx, 1);
    expect(await seen(tx)).toEqual([1]);
    await tx.updateTable("retired_addresses").set({ retired_at: 2 }).execute();
    expect(await seen(tx)).toEqual([2]);
  });
  expect(await seen(at.db)).toEqual([2]);
  await sql`update retired_addresses set retired_at = 3`.execute(at.db);
  expect(await seen(at.db)).toEqual([3]);
  await at.db.deleteFrom("retired_addresses").execute();
  expect(await seen(at.db)).toEqual([]);
});

test("what goes with a deleted row is forgotten with it", async () => {
  await using at = await database();
  const user = {
    id: "u",
    email: "ada@example.org",
    email_verified: 1,
    plan: "free",
    is_admin: 0,
    created: 1,
  };
  await at.db
    .insertInto("users")
    .values(user as never)
    .execute();
  await sql`insert into api_keys (id, user_id, hash, prefix, last4, created) values ('k', 'u', 'h', 'p', 'l', 1)`.execute(
    at.db,
  );
  const keys = remembered((db, key: { user_id: string }) =>
    db.selectFrom("api_keys").select("id").where("user_id", "=", key.user_id),
  );
  expect(await keys(at.db, { user_id: "u" })).toEqual([{ id: "k" }]);
  await at.db.deleteFrom("users").execute();
  expect(await keys(at.db, { user_id: "u" })).toEqual([]);
});

test("what an operation read of its own is forgotten when it is undone, alone or with all of its commit", async () => {
  await using at = await database();
  const failing = async (tx: Db) => {
    await retire(tx, 1);
    expect(await retired(tx, DESK)).toHaveLength(1);
    throw new Error("undone");
  };
  await at.write(failing).catch(() => undefined);
  expect(await retired(at.db, DESK)).toEqual([]);
  const [undone, kept] = await Promise.allSettled([at.write(failing), at.write((tx) => retired(tx, DESK))]);
  expect([undone.status, kept]).toEqual(["rejected", { status: "fulfilled", value: [] }]);
  expect(await retired(at.db, DESK)).toEqual([]);
});

test("what is undone because the disk is full is forgotten", async () => {
  await using at = await database();
  expect(await retired(at.db, DESK)).toEqual([]);
  await sql`pragma max_page_count = 200`.execute(at.db);
  const operation = at.write(async (tx) => {
    await retire(tx, 1);
    expect(await retired(tx, DESK)).toHaveLength(1);
    await sql`insert into installation values ('fills', zeroblob(4000000))`.execute(tx);
  });
  expect(await operation.catch(messageOf)).toContain("full");
  expect(await retired(at.db, DESK)).toEqual([]);
});

test("nothing is believed any more once a statement has failed, as SQLite may have undone a transaction by itself", async () => {
  await using at = await database();
  const rows = await retired(at.db, DESK);
  const failing = at.db.insertInto("jobs").values({ id: "j" } as never);
  expect(await failing.execute().catch(messageOf)).toContain("NOT NULL");
  expect(await retired(at.db, DESK)).not.toBe(rows);
});

test("what another process wrote is seen in the next tick, and by every transaction that begins after it", async () => {
  await using at = await database();
  using other = at.another();
  expect(await retired(at.db, DESK)).toEqual([]);
  other.exec("insert into retired_addresses values ('desk@mw.test', 1)");
  expect(await at.db.transaction().execute((tx) => retired(tx, DESK))).toHaveLength(1);
  other.exec("update retired_addresses set retired_at = 2");
  await nextTick();
  expect(await retired(at.db, DESK)).toEqual([{ ...DESK, retired_at: 2 }]);
});

test("the values of a question are told apart, also those that read alike in a row", async () => {
  await using at = await database();
  const between = remembered((db, key: { one: string; other: string }) =>
    db
      .selectFrom("retired_addresses")
      .selectAll()
      .where("address", "=", key.one)
      .where("address", "!=", key.other),
  );
  await retire(at.db, 1, "a,b");
  expect(await between(at.db, { one: "a", other: "b,c" })).toEqual([]);
  expect(await between(at.db, { one: "a,b", other: "c" })).toHaveLength(1);
});

test("more than ten thousand rows are not kept", async () => {
  await using at = await database();
  for (let number = 0; number < 99; number++) await retire(at.db, number, `${number}@mw.test`);
  const all = remembered((db, key: { above: string }) =>
    db.selectFrom("retired_addresses").selectAll().where("address", ">", key.above),
  );
  const rows = await retired(at.db, DESK);
  for (let number = 0; number < 100; number++) await all(at.db, { above: "-".repeat(number) });
  expect(await retired(at.db, DESK)).toBe(rows);
  await all(at.db, { above: "!" });
  expect(await retired(at.db, DESK)).toBe(rows);
  await all(at.db, { above: "#" });
  expect(await retired(at.db, DESK)).not.toBe(rows);
});

test("a table that every mail writes is not remembered", async () => {
  await using at = await database();
  const wrong = remembered((db, key: { id: string }) =>
    db.selectFrom("jobs").selectAll().where("id", "=", key.id),
  );
  await expect(wrong(at.db, { id: "x" })).rejects.toThrow('"jobs" changes too often to be remembered');
});

test("no row of a remembered table goes or changes with one of a table that is written all the time", async () => {
  await using at = await database();
  const tables = await sql<{ name: string }>`select name from sqlite_master where type = 'table'`.execute(
    at.db,
  );
  const isBusy = (name: string) => effectOf(`delete from "${name}"`, false) === "keeps";
  expect(tables.rows.filter(({ name }) => isBusy(name)).length).toBeGreaterThan(10);
  for (const { name } of tables.rows.filter((table) => !isBusy(table.name))) {
    const keys = await sql<{ table: string }>`select "table" from pragma_foreign_key_list(${name})`.execute(
      at.db,
    );
    expect([name, keys.rows.filter(({ table }) => isBusy(table))]).toEqual([name, []]);
  }
  const triggers = await sql<{
    name: string;
    sql: string;
  }>`select name, sql from sqlite_master where type = 'trigger'`.execute(at.db);
  for (const trigger of triggers.rows) {
    const [, work = ""] = /\bbegin\b(.*)/s.exec(trigger.sql) ?? [];
    const written = [...work.matchAll(/\b(?:update|insert into|delete from|replace into) (\w+)/g)];
    expect([trigger.name, written.length]).toEqual([trigger.name, work.split(/;\s*(?!end$)\b/).length]);
    expect([trigger.name, written.filter(([, table = ""]) => !isBusy(table))]).toEqual([trigger.name, []]);
  }
});

async function retire(db: Db, retired_at: number, address = DESK.address): Promise<void> {
  await db.insertInto("retired_addresses").values({ address, retired_at }).execute();
}

async function database() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-rows-"));
  const path = join(dir, "test.db");
  const stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const { db, write } = stack.use(openDatabase(`sqlite:${path}`));
  await migrateToLatest(db);
  return {
    db,
    write,
    another: () => {
      const sqlite = new Sqlite(path);
      return Object.assign(sqlite, { [Symbol.dispose]: () => void sqlite.close() });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
