import { sql } from "kysely";

/** A member of the JSON object in a column, as SQL has it: text, number, or null where it has none. */
export function jsonMember<Member = string | null>(column: string, member: string) {
  return sql<Member>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${member}`)})`;
}

/** The objects of a JSON array as a table of one column, `value`; for `.as(name)`. */
export function jsonRows(json: string) {
  return sql<{ value: string }>`json_each(${json})`;
}
