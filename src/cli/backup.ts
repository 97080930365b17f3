import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Command } from "commander";
import { countsInWords, type Manifest } from "../backup/manifest.ts";
import { AppError } from "../errors.ts";
import { sizeInWords } from "../lib/sizes.ts";
import { refuseAsRoot } from "../lib/start-faults.ts";
import {
  CONFIG_OPTION,
  type CommonOptions,
  configOf,
  JSON_OPTION,
  print,
  standardOutput,
} from "./options.ts";
import { lookForLoss, refuseMissing } from "./with-app.ts";

const ZIP_START = "PK\u0003\u0004";

export function backupCommand(): Command {
  return new Command("backup")
    .description("write everything into one archive, beside a running server or without one")
    .argument("<file>", 'where to, such as mailwright.zip; "-" for the standard output')
    .option("--overwrite", "replace an archive that is there")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(async (file: string, options: CommonOptions & { overwrite?: boolean }) => {
      const config = configOf(options);
      refuseMissing(options, config);
      refuseAsRoot(config.data.dir);
      await lookForLoss(config);
      const { backupToFile, backupToStream, sourceOf } = await import("../backup/write-backup.ts");
      const source = sourceOf(config, Math.floor(Date.now() / 1_000));
      const signal = untilStopped();
      if (file === "-") {
        refuseTerminal();
        const manifest = await backupToStream(source, standardOutput(), signal);
        console.error([`Backup written.`, ...contentLines(manifest)].join("\n"));
        return;
      }
      refuseTaken(file, options.overwrite === true);
      const { manifest, bytes } = await backupToFile(source, resolve(file), signal);
      print(options, { file: resolve(file), bytes, ...manifest }, [
        `Backup written to ${file} (${sizeInWords(bytes)}).`,
        ...contentLines(manifest),
      ]);
    });
}

/**
 * Returns a signal that aborts on SIGINT and SIGTERM, so that a stopped backup leaves no copy of the database behind.
 */
function untilStopped(): AbortSignal {
  const told = new AbortController();
  const stop = (): void => told.abort(new AppError("unavailable", "Stopped: no backup was made."));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  return told.signal;
}

function contentLines(manifest: Manifest): string[] {
  const { counts, entries, master_key, missing_bytes } = manifest;
  const segments = entries.filter(({ name }) => name.startsWith("mail/")).length;
  const size = entries.reduce((sum, entry) => sum + entry.size, 0);
  const key =
    master_key === "included"
      ? "It holds all mail and the keys to every stored credential: keep it where nobody else can read it."
      : "It holds all mail; security.master_key is not in it, and it is of no use without: keep that too, elsewhere.";
  return [
    `In it: ${countsInWords(counts)}; the database, ${segments} ${segments === 1 ? "file" : "files"} of mails, keys and certificates (${sizeInWords(size)} unpacked).`,
    key,
    "Not in it: the configuration file, and certificates that it names.",
    ...(missing_bytes > 0
      ? [`Warning: ${missing_bytes} bytes of mails are gone from the data folder, and so from the backup.`]
      : []),
  ];
}

function refuseTaken(file: string, may_replace: boolean): void {
  if (!existsSync(file)) return;
  if (statSync(file).isDirectory())
    throw new AppError("unavailable", `${file} is a folder.`, {
      fix: `Name a file in it, such as ${join(file, "mailwright.zip")}.`,
    });
  if (!may_replace)
    throw new AppError("unavailable", `${file} is there already in ${dirname(resolve(file))}.`, {
      fix: "Choose another name, or replace it with --overwrite.",
    });
  if (isArchive(file)) return;
  throw new AppError("unavailable", `${file} is no backup, so it is not replaced.`, {
    fix: "Choose another name, or delete it first.",
  });
}

/** Returns whether a file is an archive, or empty, so that replacing it loses nothing. */
function isArchive(file: string): boolean {
  const about = statSync(file);
  if (!about.isFile()) return false;
  if (about.size === 0) return true;
  const start = Buffer.alloc(ZIP_START.length);
  const opened = openSync(file, "r");
  readSync(opened, start);
  closeSync(opened);
  return start.toString("latin1") === ZIP_START;
}

function refuseTerminal(): void {
  if (!process.stdout.isTTY) return;
  throw new AppError("unavailable", "An archive is nothing for a terminal.", {
    fix: "Send it on, such as: mailwright backup - | ssh host 'umask 077; cat > mailwright.zip'",
  });
}
