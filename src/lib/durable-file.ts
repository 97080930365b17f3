import { randomUUID } from "node:crypto";
import { link, open, readdir, readFile, rename, rm, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The end of a draft's name. */
const DRAFT = /\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}\.tmp$/;

/**
 * Creates a file with mode 0600 and `text`, completely or not at all even in a power cut. Returns the text on disk,
 * which is another process's if that one was faster.
 */
export async function writeOnce(path: string, text: string): Promise<string> {
  const draft = draftOf(path);
  await writeSynced(draft, text);
  try {
    // Unlike rename, link never replaces what another process has just made.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    await unlink(draft);
  }
  await syncFolder(path);
  return readFile(path, "utf8");
}

/** Creates or replaces a file with mode 0600: readers find the old text or the new one, even after a power cut. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const draft = draftOf(path);
  await writeSynced(draft, text);
  await rename(draft, path);
  await syncFolder(path);
}

/**
 * Removes the drafts that killed processes have left in a folder: they may hold a key. Those of the last `recent_ms` are
 * left to whoever may be writing them.
 */
export async function removeDrafts(dir: string, recent_ms: number): Promise<void> {
  const names = await readdir(dir).catch(() => []);
  for (const path of names.filter((name) => DRAFT.test(name)).map((name) => join(dir, name))) {
    const written = (await stat(path).catch(() => undefined))?.mtimeMs ?? Infinity;
    if (written <= Date.now() - recent_ms) await rm(path, { force: true });
  }
}

function draftOf(path: string): string {
  return `${path}.${randomUUID()}.tmp`;
}

/** Returns the text of a file; undefined where there is none. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Syncs the folder of a file, so that its name survives a power cut. */
export async function syncFolder(path: string): Promise<void> {
  await using folder = await open(dirname(path), "r");
  await folder.sync();
}

async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}
