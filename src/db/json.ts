import { sql } from "kysely";

/**
 * Selects a member of the JSON object in a column as text or number; null where it is absent or the JSON is damaged.
 */
export function jsonMember(column: string, member: string) {
  const text = sql.ref(column);
  return sql<string | null>`iif(json_valid(${text}), json_extract(${text}, ${sql.lit(`$.${member}`)}), null)`;
}

/** Selects the strings of a JSON array as a table with one column, `value`; use with `.as(name)`. */
export function jsonTexts(json: string) {
  return sql<{ value: string }>`json_each(${json})`;
}
