import { Command } from "commander";
import { AppError } from "../errors.ts";
import { listSuppressions, removeSuppression } from "../mail/sending/suppressions.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { shown } from "./shown.ts";
import { withApp } from "./with-app.ts";

export function suppressionCommand(): Command {
  return new Command("suppression")
    .description("addresses that get no answers, because mail to them came back")
    .addCommand(listCommand())
    .addCommand(removeCommand());
}

function listCommand(): Command {
  return new Command("list")
    .description("list them, the newest first")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((options: CommonOptions) =>
      withApp(options, async (app) => {
        const rows = await listSuppressions(app.db);
        const lines = rows.map(
          ({ address, account, since, reason }) =>
            `${shown(address)}  (account ${account}, since ${new Date(since * 1_000).toISOString()})\n  ${shown(reason)}`,
        );
        print(options, rows, lines.length > 0 ? lines : ["Every address gets answers."]);
      }),
    );
}

function removeCommand(): Command {
  return new Command("remove")
    .description("let an address get answers again")
    .argument("<address>")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((address: string, options: CommonOptions) =>
      withApp(options, async (app) => {
        const accounts = await removeSuppression(app, address);
        if (accounts === 0)
          throw new AppError("not_found", `${shown(address)} is not suppressed.`, {
            fix: "`mailwright suppression list` shows the addresses that are.",
          });
        print(options, { address, accounts }, [`${shown(address)} gets answers again.`]);
      }),
    );
}
