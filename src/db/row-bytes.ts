import { sql } from "kysely";

/** The length of the texts in a row, in bytes. SQLite knows it without reading the texts. */
export const MESSAGE_BYTES = sql<number>`
  coalesce(octet_length(instruction), 0) + coalesce(octet_length(command), 0)
    + octet_length(result) + octet_length(steps) + octet_length(metadata)`;
export const BODY_BYTES = sql<number>`octet_length(body)`;
