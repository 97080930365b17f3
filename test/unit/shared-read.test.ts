import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { openDatabase } from "../../src/db/database.ts";

test("reads of one tick see the same, and the next tick sees what another process wrote", async () => {
  await using t = await shared();
  expect(await t.texts()).toEqual([]);
  t.other.exec("insert into notes (text) values ('theirs')");
  expect(await t.texts()).toEqual([]);
  await nextTick();
  expect(await t.texts()).toEqual(["theirs"]);
});

test("a read sees what was written before it in the same tick, in a transaction or without one", async () => {
  await using t = await shared();
  expect(await t.texts()).toEqual([]);
  await sql`insert into notes (text) values ('plain')`.execute(t.db);
  expect(await t.texts()).toEqual(["plain"]);
  await t.write((tx) => sql`insert into notes (text) values ('committed')`.execute(tx));
  expect(await t.texts()).toEqual(["plain", "committed"]);
});

test("a write without a transaction is there for others at once, also behind a read", async () => {
  await using t = await shared();
  await t.texts();
  await sql`insert into notes (text) values ('plain')`.execute(t.db);
  expect(t.other.prepare("select text from notes").pluck().all()).toEqual(["plain"]);
});

test("a read stands neither in the way of another process that writes nor of the log that is emptied", async () => {
  await using t = await shared();
  const reading = t.texts();
  t.other.exec("insert into notes (text) values ('theirs')");
  await reading;
  await t.upkeep.emptyLog();
  expect(Bun.file(`${t.path}-wal`).size).toBe(0);
});

test("a database that is closed in the tick of a read ends without a fault", async () => {
  const t = await shared();
  await t.texts();
  await t[Symbol.asyncDispose]();
  await nextTick();
});

function nextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A database of two processes, as it were: ours, and `other`. */
async function shared() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-read-"));
  const path = join(dir, "mailwright.db");
  const database = openDatabase(`sqlite:${path}`);
  await sql`create table notes (id integer primary key, text text)`.execute(database.db);
  const other = new Sqlite(path);
  return {
    ...database,
    path,
    other,
    async texts() {
      const { rows } = await sql<{ text: string }>`select text from notes order by id`.execute(database.db);
      return rows.map(({ text }) => text);
    },
    async [Symbol.asyncDispose]() {
      other.close();
      await database[Symbol.asyncDispose]();
      await rm(dir, { recursive: true });
    },
  };
}
