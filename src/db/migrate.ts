import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { AppError } from "../errors.ts";
import type { Db } from "./group-commit.ts";
import { ensureTriggers } from "./triggers.ts";

export interface MigrationStatus {
  name: string;
  executed: boolean;
}

/**
 * Brings the schema up to this binary's, all of it or nothing. Throws, with a sentence for the operator, on a newer
 * database. `beforeUpgrade` is waited for where there is something to lose; it hears of the first migration.
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
  if (may_migrate) await ensureTriggers(db);
  return migrated;
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

/** Names of the migrations that a database has had. Not by Kysely's introspection, which reads every table: each start asks. */
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
    "The running server is older than this program, and the database is its.",
    {
      fix: "Restart the server with this version first.",
    },
  );
}

/** Those of a newer version. */
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
