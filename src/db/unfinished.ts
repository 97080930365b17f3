import { sql } from "kysely";

/** The conditions of the partial indexes, word for word: only a query that repeats one may use its index. */
export const DONE = sql<boolean>`state = 'done'`;
export const NOT_DONE = sql<boolean>`state <> 'done'`;
export const DEFERRED = sql<boolean>`status = 'deferred'`;
