import { sql } from "kysely";

/** How long the texts of a row are, which SQLite knows without reading them. */
export const MESSAGE_BYTES = sql<number>`
  coalesce(octet_length(instruction), 0) + coalesce(octet_length(command), 0)
    + octet_length(result) + octet_length(steps) + octet_length(metadata)`;
export const BODY_BYTES = sql<number>`octet_length(body)`;
