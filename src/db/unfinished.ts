import { sql } from "kysely";

/** The condition of the partial index of messages, word for word: only a query that repeats it may use that index. */
export const NOT_DONE = sql<boolean>`state <> 'done'`;
