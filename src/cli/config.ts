import { Command } from "commander";
import { stringify } from "smol-toml";
import example from "../../config.example.toml" with { type: "text" };
import { checkConfig, ConfigError, findConfigFile, loadConfig, maskedConfig } from "../config/config.ts";
import { misfits } from "./misfits.ts";
import { printText } from "./options.ts";

interface Options {
  config?: string;
  json?: true;
}

/** `mailwright config check|example|dump`. */
export function configCommand(): Command {
  const command = new Command("config").description(
    "check the configuration, or print an example of it or all that counts",
  );
  withOptions(command.command("check"))
    .description("say whether the configuration is valid, or everything that is wrong with it")
    .action(check);
  command
    .command("example")
    .description("print a configuration file with every key, its default and its meaning")
    .action(() => printText(example));
  withOptions(command.command("dump"))
    .description("print the configuration in effect, with secrets hidden")
    .action(dump);
  return command;
}

function withOptions(command: Command): Command {
  return command
    .option("--config <file>", "configuration file (config.toml in this folder if left out)")
    .option("--json", "print JSON");
}

/** Checks the configuration. With `--json` the problems are printed as data too; main still shows them and fails. */
async function check({ config: file, json }: Options): Promise<void> {
  const name = findConfigFile({ file }) ?? null;
  try {
    await checkConfig({ file }, misfits);
  } catch (error) {
    if (json && error instanceof ConfigError) print({ valid: false, file: name, problems: error.problems });
    throw error;
  }
  const from = name === null ? "No file was found: defaults and environment are in use." : `File: ${name}`;
  if (json) print({ valid: true, file: name, problems: [] });
  else printText(`Configuration is valid. ${from}\n`);
}

function dump({ config: file, json }: Options): void {
  const shown = maskedConfig(loadConfig({ file }));
  if (json) print(shown);
  else printText(stringify(shown));
}

function print(data: unknown): void {
  printText(`${JSON.stringify(data, null, 2)}\n`);
}
