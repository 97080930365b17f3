import { Command } from "commander";
import { apiKeysOf, createApiKey, revokeApiKeyOf } from "../resources/accounts/api-keys.ts";
import { dayAt } from "../lib/durations.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { shown } from "./shown.ts";
import { withApp } from "./with-app.ts";

type ShownKey = Awaited<ReturnType<typeof apiKeysOf>>[number];

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
  const revoke = new Command("revoke")
    .description("revoke an API key of an account")
    .argument("<email>")
    .argument("<key>", "its id, or its last four characters")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, key: string, options: CommonOptions) =>
      withApp(options, async (app) => {
        const id = await revokeApiKeyOf(app, { email, key });
        print(options, { id }, [`API key ${id} is revoked.`]);
      }),
    );
  const list = new Command("list")
    .description("list the API keys of an account")
    .argument("<email>")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, options: CommonOptions) =>
      withApp(options, async (app) => {
        const keys = await apiKeysOf(app, email);
        print(
          options,
          { keys },
          keys.length === 0 ? [`${shown(email)} has no API keys.`] : keys.map(keyLine),
        );
      }),
    );
  return new Command("api-key")
    .description("API keys of accounts")
    .addCommand(create)
    .addCommand(list)
    .addCommand(revoke);
}

function keyLine({ id, name, prefix, last4, created, last_used_at }: ShownKey): string {
  const used = last_used_at === null ? "never used" : `last used ${dayAt(last_used_at)}`;
  return `${id}  ${prefix}…${last4}  made ${dayAt(created)}, ${used}${name === null ? "" : `  ${shown(name)}`}`;
}
