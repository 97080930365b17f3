import { sql } from "kysely";

/** A text member of the JSON object in a column; null where it has none. */
export function jsonMember(column: string, member: string) {
  return sql<string | null>`json_extract(${sql.ref(column)}, ${`$.${member}`})`;
}

/** The objects of a JSON array as a table of one column, `value`, which `memberOf` reads; for `.as(name)`. */
export function jsonRows(json: string) {
  return sql<{ value: string }>`json_each(${json})`;
}

/** A member of the object in a row of `jsonRows`, as SQL has it: text, number or null. */
export function memberOf<Member>(rows: string, member: string) {
  return sql<Member>`${sql.ref(`${rows}.value`)} ->> ${sql.lit(`$.${member}`)}`;
}
