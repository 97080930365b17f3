import { sql } from "kysely";

/** A member of the JSON object in a column, as SQL has it: text, number, or null where it has none, or is damaged. */
export function jsonMember(column: string, member: string) {
  const text = sql.ref(column);
  return sql<string | null>`iif(json_valid(${text}), json_extract(${text}, ${sql.lit(`$.${member}`)}), null)`;
}

/** The texts of a JSON array as a table of one column, `value`; for `.as(name)`. */
export function jsonTexts(json: string) {
  return sql<{ value: string }>`json_each(${json})`;
}
