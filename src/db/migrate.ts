import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import { AppError } from "../errors.ts";
import type { Db } from "./group-commit.ts";

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
  await refuseNewerSchema(db);
  const status = await migrationStatus(db);
  const next = status.find(({ executed }) => !executed);
  if (!next) return [];
  if (!may_migrate) throw serverIsOlder();
  if (status.some(({ executed }) => executed)) await beforeUpgrade(next.name);
  const { error, results } = await migrator(db).migrateToLatest();
  if (error) throw new Error("The database could not be migrated; nothing was changed.", { cause: error });
  return (results ?? []).map((result) => result.migrationName);
}

export async function migrationStatus(db: Db): Promise<MigrationStatus[]> {
  const known = await migrator(db).getMigrations();
  return known.map(({ name, executedAt }) => ({ name, executed: executedAt !== undefined }));
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

function migrator(db: Db): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => migrations } });
}

async function refuseNewerSchema(db: Db): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some((table) => table.name === "kysely_migration")) return;
  const applied = await db
    .withTables<{ kysely_migration: { name: string } }>()
    .selectFrom("kysely_migration")
    .select("name")
    .execute();
  const unknown = applied.map((row) => row.name).filter((name) => !(name in migrations));
  if (unknown.length === 0) return;
  throw new AppError(
    "unavailable",
    `This database was written by a newer Mailwright (it has the migration ${unknown.join(", ")}). ` +
      "Start that version or a later one, or restore a backup made before the upgrade.",
  );
}
