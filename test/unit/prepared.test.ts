import { expect, test } from "bun:test";
import { sql } from "kysely";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { insertRow } from "../../src/db/prepared.ts";

test("no column that may be null has anything else by default, so that an insert may leave it out", async () => {
  await using database = openDatabase("sqlite::memory:");
  await migrateToLatest(database.db);
  const columns = await sql<{ table: string; column: string }>`
    select t.name as "table", c.name as "column" from sqlite_master t, pragma_table_info(t.name) c
    where t.type = 'table' and c."notnull" = 0 and c.dflt_value is not null`.execute(database.db);
  expect(columns.rows).toEqual([]);
});

test("rows that are filled in ever other ways are stored as they are", async () => {
  await using database = openDatabase("sqlite::memory:");
  await migrateToLatest(database.db);
  const columns = ["lane", "dedupe_key", "lease_until", "last_error", "account", "account_slots"];
  const blank = { kind: "route_message", payload: "{}", status: "dead", run_at: 1, created: 1 };
  for (let mask = 0; mask < 2 ** columns.length; mask++) {
    const filled = columns.map((column, bit) => [column, (mask >> bit) & 1 ? `${mask}` : null]);
    const row = { id: `${mask}`, ...blank, attempts: 0, failures: 0, ...Object.fromEntries(filled) };
    await insertRow(database.db, "jobs", row);
    const stored = await database.db.selectFrom("jobs").selectAll().where("id", "=", row.id).execute();
    const number = (value: unknown) =>
      typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value;
    for (const column of columns) expect(number(stored[0]?.[column as "lane"])).toEqual(number(row[column]));
  }
});
