import { sql } from "kysely";

/** A member of the JSON object in a column, as SQL has it: text, number, or null where it has none. */
export function jsonMember(column: string, member: string) {
  return sql<string | null>`json_extract(${sql.ref(column)}, ${sql.lit(`$.${member}`)})`;
}

/** The texts of a JSON array as a table of one column, `value`; for `.as(name)`. */
export function jsonTexts(json: string) {
  return sql<{ value: string }>`json_each(${json})`;
}
