import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "bun:test";
import type Sqlite from "better-sqlite3";
import { copyUnsynced, openSqlite } from "../../src/db/open-sqlite.ts";
import { closing } from "../faults/load.ts";

const FULL = 2;

let dir = "";
let path = "";

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "mailwright-open-"));
  path = join(dir, "mailwright.db");
  using made = closing(openSqlite(path, {}));
  made.db.pragma("journal_mode = WAL");
  made.db.exec("create table notes (id integer primary key)");
});

afterAll(() => rm(dir, { recursive: true, force: true }));

const synchronous = (sqlite: Sqlite.Database): unknown => sqlite.pragma("synchronous", { simple: true });

test.each([{}, { readonly: true }, { timeout: 0 }, { fileMustExist: true }])(
  "a connection to a database in WAL mode is FULL from its beginning: %p",
  (options) => {
    using opened = closing(openSqlite(path, options));
    expect(synchronous(opened.db)).toBe(FULL);
  },
);

test("one that makes a copy is FULL again behind it, also when the copy fails", () => {
  using opened = closing(openSqlite(path, {}));
  const copy = join(dir, "copy.db");
  copyUnsynced(opened.db, copy);
  expect(synchronous(opened.db)).toBe(FULL);
  expect(() => copyUnsynced(opened.db, copy)).toThrow("already exists");
  expect(synchronous(opened.db)).toBe(FULL);
});
