import { Command, Option } from "commander";
import { createApiKey, listApiKeys } from "../resources/accounts/api-keys.ts";
import {
  lacksAdministrator,
  NAME_ADMINISTRATOR,
  NO_ADMINISTRATOR,
} from "../resources/accounts/administrator.ts";
import {
  createVerifiedUser,
  listUsers,
  normalizeEmail,
  setPlan,
  type User,
  userOfEmail,
} from "../resources/accounts/accounts.ts";
import { removeAccount } from "../resources/accounts/deletion.ts";
import { resetPassword } from "../resources/accounts/passwords.ts";
import { AppError } from "../errors.ts";
import { PLANS } from "../resources/billing/plans.ts";
import type { Plan } from "../db/schema.ts";
import { ADDRESS_TOKEN_ALPHABET, randomToken } from "../lib/secrets.ts";
import { mayGoOn } from "./ask.ts";
import { CONFIG_OPTION, type CommonOptions, JSON_OPTION, print } from "./options.ts";
import { withApp } from "./with-app.ts";

/** About 99 bits in characters that are easy to read out. */
const PASSWORD_CHARS = 20;

export function userCommand(): Command {
  return new Command("user")
    .description("accounts of this server")
    .addCommand(createCommand())
    .addCommand(listCommand())
    .addCommand(setPlanCommand())
    .addCommand(resetPasswordCommand())
    .addCommand(deleteCommand());
}

function createCommand(): Command {
  return new Command("create")
    .description("make a verified account")
    .argument("<email>")
    .addOption(new Option("--plan <plan>", "plan of the account").choices(PLANS))
    .option("--api-key", "also make an API key and print it")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(async (written: string, options: CommonOptions & { plan?: Plan; apiKey?: boolean }) => {
      // Before a data folder is made: one that a refusal leaves behind passes for a server's later.
      const email = normalizeEmail(written);
      await withApp({ ...options, create: true }, async (app) => {
        const user = await createVerifiedUser(app, {
          email,
          ...(options.plan ? { plan: options.plan } : {}),
        });
        const key = options.apiKey ? await createApiKey(app, { email: user.email }) : undefined;
        const lines = [
          `Account ${user.email} made (plan ${user.plan}${user.is_admin ? ", administrator" : ""}) in ${app.config.data.dir}.`,
        ];
        if (key) lines.push(`API key, shown this once: ${key.key}`);
        // `key` is its name everywhere else.
        print(options, { ...viewUser(user), ...(key ? { api_key: key.key, key: key.key } : {}) }, lines);
      });
    });
}

function listCommand(): Command {
  return new Command("list")
    .description("list all accounts")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((options: CommonOptions) =>
      withApp(options, async (app) => {
        const users = await listUsers(app.db);
        const lines = users.map(
          (user) =>
            `${user.email}  ${user.plan}${user.is_admin ? "  administrator" : ""}${user.email_verified ? "" : "  not verified"}`,
        );
        if (lines.length === 0) lines.push("There are no accounts yet.");
        if (await lacksAdministrator(app.db)) lines.push(`${NO_ADMINISTRATOR}. ${NAME_ADMINISTRATOR}`);
        print(options, users.map(viewUser), lines);
      }),
    );
}

function setPlanCommand(): Command {
  return new Command("set-plan")
    .description("move an account to another plan")
    .argument("<email>")
    .addArgument(new Command().createArgument("<plan>").choices(PLANS))
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, plan: Plan, options: CommonOptions) =>
      withApp(options, async (app) => {
        const user = await setPlan(app, { email, plan });
        print(options, viewUser(user), [`${user.email} is on plan ${user.plan} now.`]);
      }),
    );
}

function resetPasswordCommand(): Command {
  return new Command("reset-password")
    .description(
      "give an account a new password, print it, and sign out every browser; its API keys go on (`mailwright api-key revoke`)",
    )
    .argument("<email>")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, options: CommonOptions) =>
      withApp(options, async (app) => {
        const password = randomToken(PASSWORD_CHARS, ADDRESS_TOKEN_ALPHABET);
        const user = await resetPassword(app, { email, password });
        print(options, { ...viewUser(user), password }, [
          `New password of ${user.email}, shown this once: ${password}`,
          ...keyLines(user, await listApiKeys(app.db, user)),
        ]);
      }),
    );
}

function deleteCommand(): Command {
  return new Command("delete")
    .description(
      "delete an account with all that is its own, as its owner can under Settings; its owner is told by mail",
    )
    .argument("<email>")
    .option("--yes", "do not ask before it is deleted")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action((email: string, options: CommonOptions & { yes?: boolean }) =>
      withApp(options, async (app, alone) => {
        const user = await userOfEmail(app.db, normalizeEmail(email));
        const words = `This deletes the account ${user.email} with all of its inboxes, messages and settings. Only a backup brings them back.`;
        if (options.yes !== true && !(await mayGoOn(words)))
          throw new AppError("unavailable", "Nothing was changed.");
        await removeAccount(app, user, "operator");
        print(options, viewUser(user), [
          `${user.email} is deleted: nobody can sign in, write to its inboxes or use its keys any more.`,
          alone
            ? "What it had is erased when the server runs next."
            : "What it had is being erased by the server.",
        ]);
      }),
    );
}

/**
 * Returns lines about the account's API keys: whoever resets a password because of an intruder has to know what else
 * the intruder may have.
 */
function keyLines({ email }: User, keys: { id: string; prefix: string; last4: string }[]): string[] {
  return [
    "Every browser is signed out.",
    ...keys.map(
      ({ id, prefix, last4 }) =>
        `The API key ${prefix}…${last4} goes on; to end it: mailwright api-key revoke ${email} ${id}`,
    ),
  ];
}

function viewUser(user: User) {
  const { id, email, plan, created } = user;
  return {
    id,
    email,
    email_verified: user.email_verified === 1,
    plan,
    is_admin: user.is_admin === 1,
    created,
  };
}
