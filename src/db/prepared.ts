import type { Compilable, CompiledQuery, Insertable, QueryResult } from "kysely";
import type { Db } from "./group-commit.ts";
import type { RememberedQuery } from "./dialect.ts";
import { checkMemorable } from "./row-memory.ts";
import type { Schema } from "./schema.ts";

/**
 * Returns a function that runs a query compiled once instead of at every call, which costs as much as running it: for
 * the paths that every mail takes. `build` gets placeholders in place of the values, so it may only pass them on, never
 * look at them.
 */
export function prepared<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<Row[]> {
  return compiledOnce(build, false);
}

/**
 * Like `prepared`, for rows that seldom change: they are cached until they may have changed. All callers get the same
 * frozen rows. Throws for a table that changes with every mail.
 */
export function remembered<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
): (db: Db, values: Values) => Promise<readonly Readonly<Row>[]> {
  return compiledOnce(build, true);
}

function compiledOnce<Values extends object, Row>(
  build: (db: Db, values: Values) => Compilable<Row>,
  remember: boolean,
): (db: Db, values: Values) => Promise<Row[]> {
  let plan: Plan<Row> | undefined;
  return async (db, values) => {
    plan ??= planOf(build(db, STAND_INS as Values).compile(), remember);
    const { query, names } = plan;
    const parameters = names.map((name, index) =>
      name === undefined ? query.parameters[index] : values[name as keyof Values],
    );
    const { rows } = await run(db, query, parameters);
    return rows;
  };
}

interface Plan<Row> {
  query: RememberedQuery<Row>;
  /** The name of the value for each parameter; undefined where the query itself has the value. */
  names: (string | undefined)[];
}

function planOf<Row>(compiled: CompiledQuery<Row>, remembered: boolean): Plan<Row> {
  if (remembered) checkMemorable(compiled.sql);
  const names = compiled.parameters.map((value) =>
    typeof value === "symbol" ? value.description : undefined,
  );
  return { query: { ...compiled, remembered }, names };
}

/**
 * Runs a compiled query without `db.executeQuery`, which only adds a promise. Copies the members one by one, because a
 * spread costs as much as a small query.
 */
function run<Row>(
  db: Db,
  { query, queryId, sql, remembered = false }: RememberedQuery<Row>,
  parameters: unknown[],
): Promise<QueryResult<Row>> {
  const filled: RememberedQuery<Row> = { query, queryId, sql, parameters, remembered };
  return db.getExecutor().executeQuery<Row>(filled);
}

const STAND_INS = new Proxy({}, { get: (_, name) => Symbol(String(name)) });

interface Insert {
  names: string[];
  query: CompiledQuery;
}

/**
 * How many different column lists a table has a prepared insert for; rows with any other list use one with all columns.
 */
const MAX_CHOICES = 24;

const inserts = new Map<keyof Schema, Insert[]>();

/**
 * Inserts a row with a statement compiled once for each table and column list. Leaves null values out, which no column
 * turns into anything else: a mail has twenty of them, and binding one costs as much as storing it.
 */
export async function insertRow<Table extends keyof Schema>(
  db: Db,
  table: Table,
  row: Insertable<Schema[Table]>,
): Promise<void> {
  const values = row as Record<string, unknown>;
  const { names, query } = insertOf(db, table, values);
  const parameters = names.map((name) => values[name]);
  await run(db, query, parameters);
}

function insertOf(db: Db, table: keyof Schema, values: Record<string, unknown>): Insert {
  const known = inserts.get(table) ?? [];
  const fitting = known.find(({ names }) => hasExactlyColumns(names, values));
  if (fitting) return fitting;
  const of = (names: string[]) => known.find((one) => areSame(one.names, names));
  const all = Object.keys(values);
  const filled = all.filter((name) => values[name] !== null);
  const names = known.length < MAX_CHOICES ? filled : all;
  const same = of(names);
  if (same) return same;
  const row = Object.fromEntries(names.map((name) => [name, values[name]]));
  const insert = { names, query: db.insertInto(table).values(row).compile() };
  inserts.set(table, [...known, insert]);
  return insert;
}

/** Returns whether `names` are exactly the columns that are not null. */
function hasExactlyColumns(names: string[], values: Record<string, unknown>): boolean {
  let filled = 0;
  for (const name in values) if (values[name] !== null) filled += 1;
  return filled === names.length && names.every((name) => (values[name] ?? null) !== null);
}

function areSame(one: string[], other: string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}
