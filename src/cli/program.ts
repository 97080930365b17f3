import { Command, CommanderError } from "commander";
import { printText } from "./options.ts";
import { shown } from "./shown.ts";
import { ConfigError } from "../config/config.ts";
import { DAMAGED, isDamage, isStorageFault, storageWords } from "../db/storage-faults.ts";
import { AppError, messageOf } from "../errors.ts";
import { loadFault } from "../lib/start-faults.ts";
import { VERSION } from "../lib/version.ts";

/** In the order of the help. Each is loaded only where it is asked for: a health check every minute costs no more than itself. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  serve: async () => (await import("./serve.ts")).serveCommand(),
  demo: async () => (await import("./demo.ts")).demoCommand(),
  user: async () => (await import("./user.ts")).userCommand(),
  "api-key": async () => (await import("./api-key.ts")).apiKeyCommand(),
  suppression: async () => (await import("./suppression.ts")).suppressionCommand(),
  queue: async () => (await import("./queue.ts")).queueCommand(),
  config: async () => (await import("./config.ts")).configCommand(),
  migrate: async () => (await import("./migrate.ts")).migrateCommand(),
  backup: async () => (await import("./backup.ts")).backupCommand(),
  restore: async () => (await import("./restore.ts")).restoreCommand(),
  dns: async () => (await import("./dns.ts")).dnsCommand(),
  dkim: async () => (await import("./dkim.ts")).dkimCommand(),
  doctor: async () => (await import("./doctor.ts")).doctorCommand(),
  healthcheck: async () => (await import("./healthcheck.ts")).healthcheckCommand(),
};

const program = new Command("mailwright")
  .description("Turns mail into finished work: your model, your tools, your data folder.")
  .version(VERSION, "--version");
const named = COMMANDS[process.argv[2] ?? ""];
for (const load of named ? [named] : Object.values(COMMANDS)) program.addCommand(await load());
program.addCommand(
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
