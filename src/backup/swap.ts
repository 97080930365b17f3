import { existsSync } from "node:fs";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { databasePath } from "../db/database-path.ts";
import { AppError } from "../errors.ts";
import { replaceFile } from "../lib/durable-file.ts";
import { POINTS } from "./restore-points.ts";

/** The folder in which the new content is assembled, and the plan of the exchange in it; deleted when it is done. */
const WORK = ".mailwright-restore";
const PLAN = "plan.json";

/** Paths are relative to the data folder. */
interface Move {
  from: string;
  to: string;
}

/** The plan of an exchange. Once it is on disk, the exchange will be completed, even by another process. */
interface Plan {
  /** Moves of the existing content to the restore point; all of it existed. */
  out: Move[];
  /** Remaining files of the former content to delete. */
  remove: string[];
  in: Move[];
}

interface Item {
  current: string;
  fresh: string | null;
  kept: string;
}

export function workFolder(dir: string): string {
  return join(dir, WORK);
}

/**
 * Replaces what is at each `current` by what is at its `fresh` path (null: by nothing), and keeps the former as `kept`.
 * All are on the same disk. If interrupted before the plan is written, nothing has changed; after that `finishExchange`
 * completes it. Returns whether there was anything before.
 */
export async function exchange(dir: string, items: Item[], remove: string[]): Promise<boolean> {
  const path = (one: string): string => relative(resolve(dir), resolve(one));
  const plan: Plan = {
    out: items
      .filter(({ current }) => existsSync(current))
      .map(({ current, kept }) => ({ from: path(current), to: path(kept) })),
    remove: remove.map(path),
    in: items.flatMap(({ current, fresh }) =>
      fresh === null ? [] : [{ from: path(fresh), to: path(current) }],
    ),
  };
  await syncPath(dir);
  await replaceFile(join(dir, WORK, PLAN), JSON.stringify(plan));
  await finishExchange(dir);
  return plan.out.length > 0;
}

/** Returns whether a restore has begun to exchange things and was interrupted. */
function isHalfRestored(dir: string): boolean {
  return existsSync(join(dir, WORK, PLAN));
}

/** Returns whether a data folder has no database, and none is about to be put there. */
export function hasNoServer({ data, database }: Pick<Config, "data" | "database">): boolean {
  return !existsSync(databasePath(database.url)) && !isHalfRestored(data.dir);
}

/**
 * Completes an interrupted restore before the data folder is opened, if the caller holds the folder's lock; otherwise
 * throws.
 */
export async function endRestore(dir: string, holds_folder: boolean): Promise<void> {
  if (holds_folder) return finishExchange(dir);
  if (isHalfRestored(dir))
    throw new AppError("unavailable", `A backup is just being restored into ${dir}, or that was cut off.`, {
      fix: "Wait for it to end, or start the server to bring it to its end.",
    });
}

/**
 * Completes an interrupted restore, or discards it if nothing was changed. The caller must hold the lock of the data
 * folder.
 */
export async function finishExchange(dir: string): Promise<void> {
  const work = workFolder(dir);
  if (!existsSync(work)) return;
  if (isHalfRestored(dir)) {
    const plan = await readPlan(dir);
    for (const one of plan.out) await move(dir, one);
    await syncFolders(dir, plan.out);
    for (const path of plan.remove) await rm(join(dir, path), { force: true });
    for (const one of plan.in) await move(dir, one);
    await syncFolders(dir, plan.in);
    await rm(join(work, PLAN));
    await syncPath(work);
  }
  await rm(work, { recursive: true, force: true });
}

async function readPlan(dir: string): Promise<Plan> {
  const path = join(dir, WORK, PLAN);
  try {
    const plan = JSON.parse(await readFile(path, "utf8")) as Partial<Plan> | null;
    if (plan?.out && plan.remove && plan.in) return plan as Plan;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new AppError(
    "unavailable",
    `The plan of a restore that was cut off, ${path}, is damaged: how far it had come is not known.`,
    {
      fix: `Move ${workFolder(dir)} away, and restore the backup again: mailwright restore FILE. What was there before that restore is in the newest folder of ${join(dir, POINTS)}, as far as it had been moved, and else still in its place.`,
    },
  );
}

/** Moves a file unless that was done already; never replaces one. */
async function move(dir: string, { from, to }: Move): Promise<void> {
  const [source, target] = [join(dir, from), join(dir, to)];
  if (existsSync(target) || !existsSync(source)) return;
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  await rename(source, target);
}

async function syncFolders(dir: string, moves: Move[]): Promise<void> {
  const folders = moves.flatMap(({ from, to }) => [dirname(join(dir, from)), dirname(join(dir, to))]);
  // A new folder's name has to be synced in its parent as well.
  for (const folder of new Set(folders.flatMap((one) => [one, dirname(one)]))) await syncPath(folder);
}

async function syncPath(folder: string): Promise<void> {
  await using file = await open(folder, "r");
  await file.sync();
}
