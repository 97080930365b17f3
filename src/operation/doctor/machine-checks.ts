import { existsSync } from "node:fs";
import { open, readdir, stat, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Damage } from "../../db/examine.ts";
import { databasePath } from "../../db/database-path.ts";
import { listBackups } from "../../backup/kept.ts";
import { waitingJob } from "../../backup/schedule.ts";
import { findDamage, findFaults, findOrphans } from "../../db/integrity.ts";
import { dataDisks, freeOn, MIN_FREE_BYTES, MIN_FREE_FILES } from "../../db/reserve.ts";
import { olderDatabaseWarning } from "../../db/kept-position.ts";
import { uncheckedRows } from "../../db/segment-rows.ts";
import { SLOW_SYNC_MEND, SLOW_SYNC_MS } from "../../db/sync-speed.ts";
import { clockWarning } from "../../jobs/clock.ts";
import { heldKinds } from "../../jobs/holds.ts";
import { suspectsWarning } from "../../jobs/suspects.ts";
import { measureMail, currentMissingBytesWarning } from "../../db/missing-bytes.ts";
import { searchWarning } from "../../resources/messages/search/keep-indexed.ts";
import { type Bench, type Check, fail, type Finding, ok, type Outcome, skip, warn } from "./check.ts";
import { dayAt, DAY_SECONDS } from "../../lib/durations.ts";
import { MB } from "../../lib/sizes.ts";

/** Limits below which the operator is warned. */
const LOW_FREE_BYTES = 1_024 * MB;
const LOW_FREE_FILES = 10_000;
const PROBE_BYTES = 65_536;
/** Mode bits that let group or others access a file. */
const WIDE_MODE = 0o077;
const OLD_BACKUP_SECONDS = 8 * DAY_SECONDS;

export const MACHINE_CHECKS: Check[] = [
  { name: "disk space", run: checkSpace },
  { name: "disk speed", run: checkSync },
  { name: "data folder", run: checkFolder },
  { name: "database", run: checkDatabase },
  { name: "mail files", run: checkMailFiles },
  { name: "backup", run: checkBackup },
  { name: "leaps of the clock", run: checkLeaps },
  { name: "jobs in question", run: checkSuspects },
  { name: "held work", run: checkHeld },
];

async function checkSuspects({ app }: Bench): Promise<Outcome> {
  const suspects = await suspectsWarning(app);
  return suspects === undefined
    ? ok("No job waits because the server ended in the middle of it again and again.")
    : warn(
        `${suspects}.`,
        "See in the log, and in what the system says (dmesg, journalctl), why the server ended. One that ends it each time is given up by itself.",
      );
}

async function checkHeld({ app }: Bench): Promise<Outcome> {
  const kinds = (await heldKinds(app.db)).map(({ kind }) => kind);
  if (kinds.length === 0) return ok("No kind of work is held.");
  return warn(
    `Held by the operator: ${kinds.join(", ")}. Mail still comes in and waits; none of these is begun.`,
    "Let them go on: mailwright queue release",
  );
}

/** Checks for leaps of the clock, by what the running server stored a minute ago. */
async function checkLeaps({ app, running }: Bench): Promise<Outcome> {
  if (!running) return skip("Only beside a running server can it be seen.");
  const leapt = clockWarning(app);
  return leapt === undefined
    ? ok("The clock goes on from where it was.")
    : warn(leapt, "Let it be set by NTP: timedatectl set-ntp true");
}

async function checkSpace({ app }: Bench): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const dir of await dataDisks(app.config)) {
    const name = dir === app.config.data.dir ? "disk space" : `disk space of ${basename(dir)}`;
    findings.push({ name, ...judgeSpace(await freeOn(dir), dir) });
  }
  return findings;
}

export function judgeSpace(free: { bytes: number; files: number | null }, dir: string): Outcome {
  const few = free.files !== null && free.files < LOW_FREE_FILES;
  const files = few ? ` Only ${free.files} more files can be made there (inodes).` : "";
  const found = `${Math.floor(free.bytes / MB).toLocaleString("en")} MB are free in ${dir}.${files}`;
  const mend = few
    ? "Delete files on that disk, or give the data folder one of its own."
    : "Make room, or give the data folder a larger disk.";
  if (free.bytes < MIN_FREE_BYTES || (free.files ?? MIN_FREE_FILES) < MIN_FREE_FILES)
    return fail(found, mend);
  return few || free.bytes < LOW_FREE_BYTES ? warn(found, mend) : ok(found);
}

/** Writes, syncs and removes a small file. */
async function checkSync({ app }: Bench): Promise<Outcome> {
  const path = join(app.config.data.dir, `doctor-${crypto.randomUUID()}.tmp`);
  const started = performance.now();
  try {
    await using file = await open(path, "wx", 0o600);
    await file.writeFile(Buffer.alloc(PROBE_BYTES));
    await file.sync();
  } finally {
    await unlink(path).catch(() => undefined);
  }
  return judgeSync(Math.round(performance.now() - started));
}

export function judgeSync(ms: number): Outcome {
  if (ms <= SLOW_SYNC_MS) return ok(`64 KB are safely on the disk in ${ms} ms.`);
  return warn(`64 KB need ${ms} ms to be safely on the disk, and every mail waits for that.`, SLOW_SYNC_MEND);
}

async function checkFolder({ app }: Bench): Promise<Outcome> {
  const { dir } = app.config.data;
  const folder = await stat(dir);
  const wide = (folder.mode & WIDE_MODE) !== 0;
  if (app.secrets.warning !== null)
    return fail(app.secrets.warning, "Change it now: whoever has it reads every stored credential.");
  const foreign = await strangers(dir, folder.uid);
  if (foreign !== undefined)
    return fail(
      `${foreign} belongs to another user than its folder, so the server may not be able to write it.`,
      `Give all of it to the user that runs the server: chown -R --reference=${dir} ${dir}`,
    );
  if (wide) return warn(`Other users of this machine can look into ${dir}.`, `Close it: chmod 700 ${dir}`);
  return ok(`${dir} is closed to other users, and so is the master key.`);
}

async function strangers(dir: string, uid: number): Promise<string | undefined> {
  const paths = (await readdir(dir)).map((name) => join(dir, name));
  for (const path of paths) {
    const found = await stat(path).catch(() => undefined);
    if (found && found.uid !== uid) return path;
  }
  return undefined;
}

async function checkDatabase({ app }: Bench): Promise<Outcome> {
  const path = databasePath(app.config.database.url);
  if (path === ":memory:") return skip("The database is in memory.");
  const lost = app.upkeep.lostCommits();
  const faults = await findFaults(path);
  if (lost !== undefined && !faults?.length) return warn("Commits were lost.", lost);
  if (faults === null)
    return warn(
      "The database is too large to be looked through here.",
      "Run it with more time: sqlite3 FILE 'pragma quick_check'",
    );
  if (faults.length === 0)
    return (await checkRows(path)) ?? (await checkSearch(app)) ?? ok("The database is sound.");
  return damageOutcome(faults, await findDamage(path));
}

/** Warns of what keeps messages from being found by their words; nothing else depends on that. */
async function checkSearch(app: Bench["app"]): Promise<Outcome | undefined> {
  const trouble = await searchWarning(app);
  return trouble === undefined ? undefined : warn("The database is sound; not so the search.", trouble);
}

function damageOutcome(faults: string[], damage: Damage | null): Outcome {
  if (damage?.text_index === true && damage.faults.length === 0)
    return warn(
      "The index of words is damaged, by which messages are found.",
      "Restart the server, which makes it anew; nothing is lost. See what your disk says as well.",
    );
  if (damage !== null && damage.lost.length === 0 && damage.indexes.length > 0)
    return fail(
      `Indexes of the database may not lead to all rows of their tables: ${damage.indexes.join(", ")}.`,
      "Restart the server, which makes them anew; nothing has to be restored. See what your disk says as well.",
    );
  if (damage?.is_worn === true)
    return warn(
      "What the database notes of its free room is damaged; all rows are there.",
      "Stop the server, and have it made anew: mailwright backup FILE, then mailwright restore FILE. See what your disk says as well.",
    );
  return fail(
    `The database is damaged: ${faults.join("; ")}`,
    "Stop the server and restore a backup: mailwright restore FILE. See what your disk says as well.",
  );
}

/** Warns of rows that reference others which do not exist; a server runs with them all the same. */
async function checkRows(path: string): Promise<Outcome | undefined> {
  const orphans = (await findOrphans(path)) ?? [];
  if (orphans.length === 0) return undefined;
  return warn(
    `The database can be read, and ${orphans.join("; ")}.`,
    "What they belong to is shown as deleted. Nothing else depends on it; if that is much, restore an older backup.",
  );
}

async function checkMailFiles({ app }: Bench): Promise<Outcome> {
  const missing = await currentMissingBytesWarning(app);
  if (missing !== undefined)
    return fail(
      `${missing}.`,
      "Put the files back from a copy, and restart the server. Otherwise nothing is to be done: what is missing is never confused with anything else.",
    );
  const newer = await olderDatabaseWarning(app);
  if (newer !== undefined) return warn("The database is older than the files of mails.", newer);
  const { live_bytes, free_bytes } = await measureMail(app);
  const unchecked = await uncheckedRows(app.db);
  const older =
    unchecked === 0 ? "" : ` ${unchecked} of them are of an earlier version, and have no checksum to tell.`;
  return ok(
    `All large mails and files are there: ${megabytes(live_bytes)}, and ${megabytes(free_bytes)} of deleted ones.${older}`,
  );
}

function backupMend(has_schedule: boolean, planned: { run_at: number } | undefined, now: string): string {
  if (!has_schedule) return `Let the server make them: [backup] schedule. Or ${now}`;
  return planned
    ? `The next one is made at ${minuteOf(planned.run_at)}. To have one sooner, ${now}`
    : `[backup] schedule is set, and a server that runs keeps it. Until then, ${now}`;
}

/** Returns a time to the minute, in UTC as schedules are. */
function minuteOf(seconds: number): string {
  return `${new Date(seconds * 1_000).toISOString().slice(0, "YYYY-MM-DDTHH:MM".length).replace("T", " ")} UTC`;
}

function megabytes(bytes: number): string {
  return `${Math.ceil(bytes / MB).toLocaleString("en")} MB`;
}

async function checkBackup({ app }: Bench): Promise<Outcome> {
  const { backup, data } = app.config;
  // A restore point from before an upgrade is no backup of today's mail.
  const dir = backup.dir || join(data.dir, "backups");
  const kept = await listBackups(dir);
  const newest = kept.find(({ before_upgrade }) => !before_upgrade)?.created;
  const day = dayAt(app.now());
  const make = `${existsSync(dir) ? "" : `mkdir ${dir} && `}mailwright backup ${join(dir, `mailwright-${day}.zip`)}`;
  const now = `make one now where they are looked for, since none elsewhere is seen: ${make}`;
  const planned = backup.schedule === "" ? undefined : await waitingJob(app.db);
  const mend = backupMend(backup.schedule !== "", planned, now);
  if (planned && planned.failures > 0)
    return fail(
      `The last backup failed: ${planned.last_error}`,
      `It is tried again at ${minuteOf(planned.run_at)}. Mend what it says.`,
    );
  if (newest === undefined && planned)
    return skip(`There is no backup yet; the first one is made at ${minuteOf(planned.run_at)}.`);
  if (newest === undefined) return warn("There is no backup.", mend);
  const days = Math.floor((app.now() - newest) / DAY_SECONDS);
  const found = `The newest backup is ${days} ${days === 1 ? "day" : "days"} old.`;
  return app.now() - newest > OLD_BACKUP_SECONDS ? warn(found, mend) : ok(found);
}
