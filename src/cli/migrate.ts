import { Command } from "commander";
import { backupBeforeUpgrade } from "../backup/before-upgrade.ts";
import { endRestore } from "../backup/swap.ts";
import { refuseLost } from "../db/bring-back.ts";
import { openDatabase } from "../db/database.ts";
import { lockStores } from "../db/locks.ts";
import { migrateToLatest, migrationStatus } from "../db/migrate.ts";
import { AppError } from "../errors.ts";
import { refuseAsRoot } from "../lib/start-faults.ts";
import { CONFIG_OPTION, type CommonOptions, configOf, JSON_OPTION, print } from "./options.ts";
import { lookForLoss, refuseMissing } from "./with-app.ts";

export function migrateCommand(): Command {
  const status = new Command("status")
    .description("show which migrations the database has")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(async (_own: CommonOptions, command: Command) => {
      // Both commands have these options, and commander assigns them to the outer one.
      const options = command.optsWithGlobals<CommonOptions>();
      const config = configOf(options);
      refuseMissing(options, config);
      await lookForLoss(config);
      await using database = openDatabase(config.database.url);
      const migrations = await migrationStatus(database.db);
      const lines = migrations.map(({ name, executed }) => `${executed ? "done   " : "pending"}  ${name}`);
      print(options, migrations, lines);
    });
  return new Command("migrate")
    .description("bring the database up to this version (`serve` does it by itself)")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(async (options: CommonOptions) => {
      const config = configOf(options);
      refuseMissing(options, config);
      refuseAsRoot(config.data.dir);
      using lock = lockStores(config);
      if (!lock)
        throw new AppError(
          "unavailable",
          `A server is running on ${config.data.dir}; it has migrated already.`,
        );
      await endRestore(config.data.dir, true);
      refuseLost(config);
      await using database = openDatabase(config.database.url, { bring_back: true });
      const beforeUpgrade = backupBeforeUpgrade(config, (path) =>
        console.error(`Making a backup of the database first: ${path}`),
      );
      const done = await migrateToLatest(database.db, true, beforeUpgrade);
      print(options, done, done.length > 0 ? done.map((name) => `migrated  ${name}`) : ["Nothing to do."]);
    })
    .addCommand(status);
}
