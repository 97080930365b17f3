import { sql } from "kysely";

/**
 * The conditions of partial indexes, word for word: SQLite uses such an index only for a query that repeats its
 * condition.
 */
export const DONE = sql<boolean>`state = 'done'`;
export const NOT_DONE = sql<boolean>`state <> 'done'`;
export const DEFERRED = sql<boolean>`status = 'deferred'`;
export const UNENDED = sql<boolean>`status in ('pending', 'running')`;
