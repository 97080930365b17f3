import type { Compilable, CompiledQuery, Insertable } from "kysely";
import type { Db } from "./group-commit.ts";
import type { Schema } from "./schema.ts";

/**
 * A query for the paths that every mail takes: Kysely builds and compiles it once instead of at every call, which
 * costs as much as running it. `build` gets stand-ins for the values, so it may only pass them on, never look at them.
 */
export function prepared<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<Row[]> {
  let query: CompiledQuery<Row> | undefined;
  return async (db, values) => {
    query ??= build(db, STAND_INS as Values).compile();
    const parameters = query.parameters.map((value) =>
      typeof value === "symbol" ? values[value.description as keyof Values] : value,
    );
    const { rows } = await db.executeQuery<Row>({ ...query, parameters });
    return rows;
  };
}

const STAND_INS = new Proxy({}, { get: (_, name) => Symbol(String(name)) });

const inserts = new Map<string, CompiledQuery>();

/** Inserts a whole row; compiled once for each table and choice of columns, as `prepared` is. */
export async function insertRow<Table extends keyof Schema>(
  db: Db,
  table: Table,
  row: Insertable<Schema[Table]>,
): Promise<void> {
  const key = [table, ...Object.keys(row)].join();
  const query = inserts.get(key) ?? db.insertInto(table).values(row).compile();
  inserts.set(key, query);
  await db.executeQuery({ ...query, parameters: Object.values(row) });
}
