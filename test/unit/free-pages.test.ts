import { expect, test } from "bun:test";
import Sqlite from "better-sqlite3";
import { giveBackPages, keepPagesMovable } from "../../src/db/free-pages.ts";

const numberOf = (sqlite: Sqlite.Database, pragma: string): number =>
  Number(sqlite.pragma(pragma, { simple: true }));

test("of a large database from which much was deleted, no more than a twentieth stays free", () => {
  const sqlite = new Sqlite(":memory:");
  // Many pages in little room.
  sqlite.pragma("page_size = 512");
  keepPagesMovable(sqlite);
  sqlite.exec("create table kept (id integer primary key, bytes blob)");
  const pages = 60_000;
  sqlite
    .prepare(
      "with recursive n(id) as (select 1 union all select id + 1 from n where id < ?) insert into kept select id, zeroblob(400) from n",
    )
    .run(pages);
  sqlite.prepare("delete from kept where id <= ?").run(pages / 5);
  expect(numberOf(sqlite, "freelist_count")).toBeGreaterThan(pages / 6);
  while (giveBackPages(sqlite));
  expect(numberOf(sqlite, "page_count")).toBeLessThan(pages);
  expect(numberOf(sqlite, "freelist_count")).toBeLessThanOrEqual(numberOf(sqlite, "page_count") / 20);
  sqlite.close();
});
