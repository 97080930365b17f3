import { exists } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import { readIfThere, replaceFile } from "../lib/durable-file.ts";
import { noAnswer, onMailFiles } from "../lib/own-faults.ts";
import { patientFiles } from "../lib/patient-files.ts";
import { isBefore } from "../lib/segment-files.ts";
import type { Position, SegmentStore } from "../lib/segments.ts";
import { storedJson } from "../lib/stored-json.ts";
import type { Log } from "../lib/log.ts";
import { databasePath } from "./database-path.ts";
import { saveEachMinute } from "./each-minute.ts";
import type { Db, Write } from "./group-commit.ts";
import { keepNote, readNote } from "./installation.ts";
import { DAY_SECONDS, dayAt } from "../lib/durations.ts";

const ROW = "mail_position";
/**
 * How long a database that is older than the mail files is reported as such; after that it is taken as the intended
 * one.
 */
const PATIENCE_SECONDS = 14 * DAY_SECONDS;

/** The content of `position.json`: the furthest end of the mail files that any database used with them has stored. */
interface Kept extends Position {
  /** Since when a database with an earlier end is in use, in unix seconds. */
  older_since?: number;
}

interface Reading {
  db: Db;
  config: { data: { dir: string } };
  calmNow: () => number;
}

interface Keeping extends Reading {
  config: { data: { dir: string }; database: { url: string } };
  write: Write;
  segments: SegmentStore;
  log: Log;
}

/**
 * Returns a warning that the mail files were in use with a newer database, which references mails that this one does
 * not; undefined if this is the newest, or has been taken as the intended one.
 */
export async function olderDatabaseWarning(app: Reading): Promise<string | undefined> {
  const kept = await readKept(app);
  if (kept === undefined || !(await isOlder(app, kept))) return undefined;
  const until = (kept.older_since ?? app.calmNow()) + PATIENCE_SECONDS;
  return (
    `The files in ${mailOf(app)} were in use with a newer database than this one. What only that names in them is kept ` +
    `until ${dayAt(until)}. Put it back, or, if this one is to stay, delete ${fileOf(app)}.`
  );
}

/**
 * Stores where the mail files end, first in the database and then beside the files: once a minute if that has changed,
 * and on disposal. Leaves a database that is older than the files as it is, so that it is still recognized as older.
 */
export async function keepPosition(app: Keeping): Promise<AsyncDisposable> {
  if (databasePath(app.config.database.url) === ":memory:") return { [Symbol.asyncDispose]: async () => {} };
  let reported: string | null = null;
  // A disk that cannot be written must not keep a server from starting or stopping.
  const trySaving = async (): Promise<void> => {
    const problem = await save(app).then(() => null, messageOf);
    if (problem !== null && problem !== reported)
      app.log.warn({ problem }, "where the files of mails end was not written down");
    reported = problem;
  };
  await trySaving();
  return saveEachMinute(trySaving);
}

async function save(app: Keeping): Promise<void> {
  const kept = await readKept(app);
  const next = kept && (await isOlder(app, kept)) ? stillOlder(app, kept) : await noteEnd(app);
  // The next stored mail creates a deleted folder again.
  if (JSON.stringify(next) === JSON.stringify(kept)) return;
  await folder.run(async () => {
    if (await exists(mailOf(app))) await replaceFile(fileOf(app), JSON.stringify(next));
  });
}

function stillOlder({ segments, calmNow }: Keeping, kept: Kept): Kept {
  const end = segments.position();
  const { segment, offset } = isBefore(kept, end) ? end : kept;
  return { segment, offset, older_since: kept.older_since ?? calmNow() };
}

/** Stores the end of the files in the database, and returns it. */
async function noteEnd({ db, write, segments }: Keeping): Promise<Kept> {
  const noted = await readNote<Position>(db, ROW);
  const { segment, offset } = segments.position();
  if (noted?.segment === segment && noted.offset === offset) return { segment, offset };
  return write(async (tx) => {
    const end = segments.position();
    const note = { segment: end.segment, offset: end.offset };
    await keepNote(tx, ROW, note);
    return note;
  });
}

async function isOlder({ db, calmNow }: Reading, kept: Kept): Promise<boolean> {
  if (calmNow() - (kept.older_since ?? calmNow()) > PATIENCE_SECONDS) return false;
  const noted = await readNote<Position>(db, ROW);
  return noted === undefined || isBefore(noted, kept);
}

/** The disk may be a share that is away, and hang. */
const ANSWER_MS = 3_000;
const folder = patientFiles(ANSWER_MS, () => noAnswer("the mail files"));

/**
 * Reads `position.json`; undefined if there is none, or if it is damaged. Throws MailFilesError if the folder of
 * mails cannot be used.
 */
async function readKept(app: Reading): Promise<Kept | undefined> {
  const text = await onMailFiles(() => folder.run(() => readIfThere(fileOf(app))));
  const kept = text === undefined ? undefined : storedJson<Partial<Kept> | null>(text, null);
  return typeof kept?.segment === "number" && typeof kept.offset === "number" ? (kept as Kept) : undefined;
}

function mailOf({ config }: Reading): string {
  return join(config.data.dir, "mail");
}

function fileOf(app: Reading): string {
  return join(mailOf(app), "position.json");
}
