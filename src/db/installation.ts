import { storedJson } from "../lib/stored-json.ts";
import type { Db } from "./database.ts";
import type { Schema } from "./schema.ts";

type Name = Schema["installation"]["name"];

/** Returns the JSON value that the server stored under a name; undefined where there is none, or it is damaged. */
export async function readNote<T>(db: Db, name: Name): Promise<T | undefined> {
  const row = await db.selectFrom("installation").select("value").where("name", "=", name).executeTakeFirst();
  return row && storedJson<T | undefined>(Buffer.from(row.value).toString(), undefined);
}

/** Stores a JSON value under a name, in place of the one before. */
export async function keepNote(tx: Db, name: Name, note: object): Promise<void> {
  const value = Buffer.from(JSON.stringify(note));
  await tx
    .insertInto("installation")
    .values({ name, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}
