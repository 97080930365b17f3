import { Command } from "commander";
import { createApiKey } from "../accounts/accounts.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { withApp } from "./with-app.ts";

export function apiKeyCommand(): Command {
  const create = new Command("create")
    .description("make an API key for an account and print it")
    .argument("<email>")
    .option("--name <name>", "a name to recognise it by")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, options: CommonOptions & { name?: string }) =>
      withApp(options, async (app) => {
        const key = await createApiKey(app, {
          email,
          ...(options.name === undefined ? {} : { name: options.name }),
        });
        print(options, key, [`API key, shown this once: ${key.key}`]);
      }),
    );
  return new Command("api-key").description("API keys of accounts").addCommand(create);
}
