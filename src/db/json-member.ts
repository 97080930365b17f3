import { sql } from "kysely";

/** A text member of the JSON object in a column; null where it has none. */
export function jsonMember(column: string, member: string) {
  return sql<string | null>`json_extract(${sql.ref(column)}, ${`$.${member}`})`;
}
