import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Command } from "commander";
import { countsInWords, type Manifest } from "../backup/manifest.ts";
import { AppError, messageOf } from "../errors.ts";
import type { Config } from "../config/config.ts";
import { refuseAsRoot } from "../lib/start-faults.ts";
import { mayGoOn } from "./ask.ts";
import { CONFIG_OPTION, type CommonOptions, configOf, JSON_OPTION, print } from "./options.ts";
import { shown } from "./shown.ts";

export function restoreCommand(): Command {
  return new Command("restore")
    .description("put a backup in the place of what is in the data folder; the server must not be running")
    .argument(
      "<file>",
      'an archive that `mailwright backup` or the server has made; "-" for the standard input',
    )
    .option(
      "--hold-queue",
      "send nothing until `mailwright queue release`: what waited back then may have been sent since",
    )
    .option("--yes", "do not ask before what is there is replaced")
    .option(...CONFIG_OPTION)
    .option(...JSON_OPTION)
    .action(async (file: string, options: CommonOptions & { yes?: boolean; holdQueue?: boolean }) => {
      const config = configOf(options);
      refuseAsRoot(config.data.dir);
      const { restoreBackup } = await import("../backup/restore.ts");
      await using archive = await archiveAt(file);
      const restored = await restoreBackup(config, archive.path, {
        now: Math.floor(Date.now() / 1_000),
        hold: options.holdQueue === true,
        confirm: async (manifest, replaces) =>
          !replaces || options.yes === true || (await ask(manifest, config.data.dir)),
      });
      if (!restored) throw new AppError("unavailable", "Nothing was changed.");
      const { manifest, restore_point, oddities } = restored;
      print(options, { restored: summaryOf(manifest), restore_point, oddities }, [
        `Restored into ${config.data.dir}: ${inWords(manifest)}.`,
        ...oddities.map((words) => `In the backup, and so here as before: ${words}.`),
        ...(restore_point === null ? [] : pointLines(config, restore_point)),
        ...cautionLines(manifest, options.holdQueue === true),
      ]);
    });
}

/** Returns the path of the archive. Standard input is stored first, because an archive is read from its end. */
async function archiveAt(file: string): Promise<AsyncDisposable & { path: string }> {
  if (file !== "-") return { path: file, [Symbol.asyncDispose]: () => Promise.resolve() };
  if (process.stdin.isTTY)
    throw new AppError("unavailable", "No archive comes in by the standard input.", {
      fix: "Name its file, or send it in, such as: ssh host 'cat mailwright.zip' | mailwright restore - --yes",
    });
  const folder = await mkdtemp(join(tmpdir(), "mailwright-restore-"));
  const path = join(folder, "archive.zip");
  const forget = () => rm(folder, { recursive: true, force: true });
  try {
    await pipeline(process.stdin, createWriteStream(path, { mode: 0o600 }));
    return { path, [Symbol.asyncDispose]: forget };
  } catch (error) {
    await forget();
    throw new AppError("unavailable", `The archive could not be kept in ${tmpdir()}: ${messageOf(error)}.`, {
      fix: "See that it has room for all of it, or name another folder with TMPDIR. Nothing was changed.",
    });
  }
}

function ask(manifest: Manifest, dir: string): Promise<boolean> {
  return mayGoOn(
    `This replaces what is in ${dir} by ${inWords(manifest)}.`,
    "What is there now is kept aside. ",
  );
}

function pointLines({ data }: Config, restore_point: string): string[] {
  return [
    `What was there before is in ${restore_point}.`,
    `Delete it once all is well; to go back, stop the server and put its content in the place of what is in ${data.dir} by then.`,
  ];
}

function cautionLines({ mail, created }: Manifest, held: boolean): string[] {
  return [
    "Everybody has to sign in again. API keys that were revoked since the backup are good again: look through them.",
    held
      ? "Mails are taken, but nothing is answered, mailed or told to webhooks: look with `mailwright queue list`, drop what was done since the backup, then `mailwright queue release`."
      : `What waited on ${timeOf(created)} is worked on and sent when the server starts, even if it had been since then.`,
    ...(mail
      ? []
      : ["This backup was made before an upgrade: the mails beside the database stay as they are."]),
    "Start the server: mailwright serve",
  ];
}

function summaryOf({ version, created, hostname, migrations, counts, mail }: Manifest) {
  return { version, created, hostname, migrations, counts, mail };
}

/** Returns a description of an archive; its values are cleaned, because anybody may have written it. */
function inWords({ hostname, version, created, counts }: Manifest): string {
  return `the backup of ${shown(hostname)} from ${timeOf(created)} (Mailwright ${shown(version)}; ${countsInWords(counts)})`;
}

function timeOf(seconds: number): string {
  const date = new Date(seconds * 1_000);
  return Number.isNaN(date.getTime())
    ? "an unknown time"
    : date
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z/, " UTC");
}
