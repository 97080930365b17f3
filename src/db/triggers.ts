import { type RawBuilder, sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { JOB_TRIGGERS } from "./job-triggers.ts";
import { STORAGE_TRIGGERS } from "./storage-triggers.ts";
import { hasTextIndex } from "./text-search.ts";
import { TEXT_TRIGGERS } from "./text-triggers.ts";

/** Name, event and body of a trigger. */
export type Trigger = [name: string, event: string, work: RawBuilder<unknown>];

/** Creates missing triggers. Called at each start, since a migration that rebuilds a table drops its triggers. */
export function ensureTriggers(db: Db): Promise<void> {
  return db.transaction().execute(createMissing);
}

/** As `ensureTriggers`, in the open transaction. */
async function createMissing(db: Db): Promise<void> {
  const of_index = (await hasTextIndex(db)) ? TEXT_TRIGGERS : [];
  await createThose(db, [...STORAGE_TRIGGERS, ...JOB_TRIGGERS, ...of_index]);
}

/** Creates those of some triggers that are missing, in the open transaction. */
export async function createThose(db: Db, all: Trigger[]): Promise<void> {
  const known = db.withTables<{ sqlite_master: { name: string; type: string } }>();
  const found = await known
    .selectFrom("sqlite_master")
    .select("name")
    .where("type", "=", "trigger")
    .execute();
  const missing = all.filter(([trigger]) => !found.some(({ name }) => name === trigger));
  for (const [name, event, work] of missing)
    await sql`create trigger ${sql.raw(name)} ${sql.raw(event)} begin ${work}; end`.execute(db);
}
