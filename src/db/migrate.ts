import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { AppError } from "../errors.ts";
import type { Db } from "./group-commit.ts";
import { isStorageFault } from "./storage-faults.ts";
import { ensureTextIndex } from "./text-index.ts";
import { ensureTriggers } from "./triggers.ts";

export interface MigrationStatus {
  name: string;
  executed: boolean;
}

/**
 * Migrates the schema to this binary's version, completely or not at all. Returns the names of the migrations that it
 * ran. Throws an AppError at a database of a newer version. `beforeUpgrade` is awaited with the name of the first
 * migration where the database holds data.
 */
export async function migrateToLatest(
  db: Db,
  may_migrate = true,
  beforeUpgrade: (first: string) => Promise<void> = async () => {},
): Promise<string[]> {
  const applied = await appliedTo(db);
  refuseNewer(applied);
  const next = Object.keys(migrations).find((name) => !applied.includes(name));
  if (next !== undefined && !may_migrate) throw serverIsOlder();
  const migrated = next === undefined ? [] : await migrate(db, { applied, next, beforeUpgrade });
  if (may_migrate) {
    await makeIndexIfPossible(db);
    await ensureTriggers(db);
  }
  return migrated;
}

/** Makes the index of words where that is possible now: nothing else waits for it. */
async function makeIndexIfPossible(db: Db): Promise<void> {
  try {
    await ensureTextIndex(db);
  } catch (error) {
    if (!isStorageFault(error)) throw error;
  }
}

async function migrate(
  db: Db,
  {
    applied,
    next,
    beforeUpgrade,
  }: { applied: string[]; next: string; beforeUpgrade: (first: string) => Promise<void> },
): Promise<string[]> {
  if (applied.length > 0) await beforeUpgrade(next);
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error, results } = await migrator.migrateToLatest();
  if (error) throw new Error("The database could not be migrated; nothing was changed.", { cause: error });
  return (results ?? []).map((result) => result.migrationName);
}

export async function migrationStatus(db: Db): Promise<MigrationStatus[]> {
  const applied = await appliedTo(db);
  return Object.keys(migrations).map((name) => ({ name, executed: applied.includes(name) }));
}

/**
 * Returns the names of the migrations that were run. Does not use Kysely's introspection, which reads every table,
 * because each start calls this.
 */
async function appliedTo(db: Db): Promise<string[]> {
  const known = db.withTables<{ sqlite_master: { name: string }; kysely_migration: { name: string } }>();
  const table = known.selectFrom("sqlite_master").select("name").where("name", "=", "kysely_migration");
  if (!(await table.executeTakeFirst())) return [];
  const rows = await known.selectFrom("kysely_migration").select("name").execute();
  return rows.map(({ name }) => name);
}

function serverIsOlder(): AppError {
  return new AppError(
    "unavailable",
    "The running server is older than this program, and it is using the database.",
    {
      fix: "Restart the server with this version first.",
    },
  );
}

/** Returns the migrations that this binary does not know, which only a newer version can have run. */
export function unknownAmong(applied: string[]): string[] {
  return applied.filter((name) => !Object.hasOwn(migrations, name));
}

function refuseNewer(applied: string[]): void {
  const unknown = unknownAmong(applied);
  if (unknown.length === 0) return;
  throw new AppError(
    "unavailable",
    `This database was written by a newer Mailwright (it has the migration ${unknown.join(", ")}). ` +
      "Start that version or a later one, or restore a backup made before the upgrade.",
  );
}
