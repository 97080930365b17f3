import { randomUUID } from "node:crypto";
import { link, open, readFile, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a file with mode 0600 and `text`, completely or not at all even in a power cut. Returns the text on disk,
 * which is another process's if that one was faster.
 */
export async function writeOnce(path: string, text: string): Promise<string> {
  const draft = `${path}.${randomUUID()}.tmp`;
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
  const draft = `${path}.${randomUUID()}.tmp`;
  await writeSynced(draft, text);
  await rename(draft, path);
  await syncFolder(path);
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
