import { randomUUID } from "node:crypto";
import { link, open, readFile, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a private file with `text`, all of it or none even when the power goes, and gives what the file says once
 * it is on disk: that of another process, when that one was faster.
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
  await using folder = await open(dirname(path), "r");
  await folder.sync();
  return readFile(path, "utf8");
}

async function writeSynced(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx", 0o600);
  await file.writeFile(text);
  await file.sync();
}
