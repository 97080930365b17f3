import { CompiledQuery } from "kysely";
import type { TestApp } from "./app.ts";

/** Every query that the server makes meanwhile. */
export async function queriesOf(t: TestApp, act: () => Promise<unknown>): Promise<CompiledQuery[]> {
  const executor = t.app.db.getExecutor();
  const queries: CompiledQuery[] = [];
  const execute = executor.executeQuery;
  executor.executeQuery = (query) => {
    queries.push(query);
    return execute.call(executor, query) as never;
  };
  try {
    await act();
  } finally {
    executor.executeQuery = execute;
  }
  return queries;
}

/** What SQLite says about each of them. */
export async function plansOf(
  t: TestApp,
  act: () => Promise<unknown>,
): Promise<{ sql: string; lines: string[] }[]> {
  const plans: { sql: string; lines: string[] }[] = [];
  for (const { sql, parameters } of await queriesOf(t, act)) {
    const explained = CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]);
    const { rows } = await t.app.db.executeQuery<{ detail: string }>(explained);
    plans.push({ sql, lines: rows.map(({ detail }) => detail) });
  }
  return plans;
}
