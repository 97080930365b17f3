import { sql } from "kysely";
import type { TestApp } from "./app.ts";

/** Without leave, every write is refused as on a disk that was mounted anew to be read only. */
export async function mayWrite({ app }: TestApp, may: boolean): Promise<void> {
  await sql.raw(`pragma query_only = ${may ? "off" : "on"}`).execute(app.db);
}
