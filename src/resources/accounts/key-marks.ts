import type { Db } from "../../db/database.ts";

/** What people know an API key by. */
export interface KeyMarks {
  name: string | null;
  prefix: string;
  last4: string;
}

/** The marks of a key; null for none. */
export async function keyMarksOf(db: Db, id: string | null): Promise<KeyMarks | null> {
  if (id === null) return null;
  const marks = db.selectFrom("api_keys").select(["name", "prefix", "last4"]).where("id", "=", id);
  return (await marks.executeTakeFirst()) ?? null;
}

/** A key on one line, as the security events show it. */
export function shownKey(key: KeyMarks | null): string | null {
  if (key === null) return null;
  const marks = `${key.prefix}…${key.last4}`;
  return key.name === null ? marks : `${key.name} (${marks})`;
}
