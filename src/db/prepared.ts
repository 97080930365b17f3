import type { Compilable, CompiledQuery, Insertable, QueryResult } from "kysely";
import type { Db } from "./group-commit.ts";
import type { Schema } from "./schema.ts";

/**
 * A query for the paths that every mail takes: Kysely builds and compiles it once instead of at every call, which
 * costs as much as running it. `build` gets stand-ins for the values, so it may only pass them on, never look at them.
 */
export function prepared<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<Row[]> {
  let plan: { query: CompiledQuery<Row>; names: (string | undefined)[] } | undefined;
  return async (db, values) => {
    plan ??= planOf(build(db, STAND_INS as Values).compile());
    const { query, names } = plan;
    const parameters = names.map((name, index) =>
      name === undefined ? query.parameters[index] : values[name as keyof Values],
    );
    const { rows } = await run(db, query, parameters);
    return rows;
  };
}

/** `names` says which value belongs at a place; none where the query has a value of its own. */
function planOf<Row>(query: CompiledQuery<Row>) {
  const names = query.parameters.map((value) => (typeof value === "symbol" ? value.description : undefined));
  return { query, names };
}

/** Past `db.executeQuery`, which only adds a promise; member by member, because a spread costs as much as a small query. */
function run<Row>(
  db: Db,
  { query, queryId, sql }: CompiledQuery<Row>,
  parameters: unknown[],
): Promise<QueryResult<Row>> {
  return db.getExecutor().executeQuery<Row>({ query, queryId, sql, parameters });
}

const STAND_INS = new Proxy({}, { get: (_, name) => Symbol(String(name)) });

interface Insert {
  names: string[];
  query: CompiledQuery;
}

const inserts = new Map<keyof Schema, Insert[]>();

/** Inserts a whole row; compiled once for each table and choice of columns, as `prepared` is. */
export async function insertRow<Table extends keyof Schema>(
  db: Db,
  table: Table,
  row: Insertable<Schema[Table]>,
): Promise<void> {
  const names = Object.keys(row);
  const known = inserts.get(table) ?? [];
  const same = known.find((one) => areSame(one.names, names));
  const query = same?.query ?? db.insertInto(table).values(row).compile();
  if (!same) inserts.set(table, [...known, { names, query }]);
  await run(db, query, Object.values(row));
}

function areSame(one: string[], other: string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}
