import { Command, CommanderError } from "commander";
import { apiKeyCommand } from "./api-key.ts";
import { backupCommand } from "./backup.ts";
import { configCommand } from "./config.ts";
import { demoCommand } from "./demo.ts";
import { dkimCommand } from "./dkim.ts";
import { dnsCommand } from "./dns.ts";
import { doctorCommand } from "./doctor.ts";
import { healthcheckCommand } from "./healthcheck.ts";
import { migrateCommand } from "./migrate.ts";
import { restoreCommand } from "./restore.ts";
import { queueCommand } from "./queue.ts";
import { serveCommand } from "./serve.ts";
import { printText } from "./options.ts";
import { shown } from "./shown.ts";
import { suppressionCommand } from "./suppression.ts";
import { userCommand } from "./user.ts";
import { ConfigError } from "../config/config.ts";
import { DAMAGED, isDamage, isStorageFault, storageWords } from "../db/storage-faults.ts";
import { AppError, messageOf } from "../errors.ts";
import { loadFault } from "../lib/start-faults.ts";
import { VERSION } from "../lib/version.ts";

const program = new Command("mailwright")
  .description("Turns mail into finished work: your model, your tools, your data folder.")
  .version(VERSION, "--version")
  .addCommand(serveCommand())
  .addCommand(demoCommand())
  .addCommand(userCommand())
  .addCommand(apiKeyCommand())
  .addCommand(suppressionCommand())
  .addCommand(queueCommand())
  .addCommand(configCommand())
  .addCommand(migrateCommand())
  .addCommand(backupCommand())
  .addCommand(restoreCommand())
  .addCommand(dnsCommand())
  .addCommand(dkimCommand())
  .addCommand(doctorCommand())
  .addCommand(healthcheckCommand())
  .addCommand(
    new Command("version").description("print the version").action(() => printText(`${VERSION}\n`)),
  );

// New files are private to this user, even in a data folder that existed before.
process.umask(0o077);

try {
  await program.parseAsync();
  process.exit(0);
} catch (error) {
  console.error(explain(error));
  process.exit(1);
}

/** Returns the message of an error: a sentence for mistakes of the caller, the stack for bugs. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof CommanderError) return error.message;
  // The message may contain text of an archive or of another server.
  if (error instanceof AppError)
    return [error.message, error.extras.fix ?? ""].map(shown).join(" ").trimEnd();
  const unloadable = loadFault(error);
  if (unloadable !== undefined) return unloadable;
  if (isStorageFault(error)) {
    const { message, fix } = isDamage(error) ? DAMAGED : storageWords(error);
    return `${message} (${messageOf(error)}). ${fix}`;
  }
  return error instanceof Error && "syscall" in error ? error.message : Bun.inspect(error);
}
