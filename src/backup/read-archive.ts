import { createHash } from "node:crypto";
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Entry, ZipFile } from "yauzl";
import { AppError, codeOf, messageOf } from "../errors.ts";
import { syncFolder } from "../lib/durable-file.ts";
import {
  type ArchiveEntry,
  DATABASE,
  isAllowed,
  MANIFEST,
  type Manifest,
  notABackup,
  parseManifest,
} from "./manifest.ts";
import { MB } from "../lib/sizes.ts";

const MAX_ENTRIES = 1_000_000;
const MAX_MANIFEST_BYTES = 256 * MB;
/**
 * Bits for the file type in the mode, which is the upper half of the external attributes; the value for a regular file.
 */
const KIND_OF_FILE = 0o170000;
const REGULAR_FILE = 0o100000;
const UNIX = 3;

export interface Archive extends Disposable {
  manifest: Manifest;
  /**
   * Extracts all entries of the manifest below `dir`, and syncs them. Throws an AppError when one is not as the
   * manifest says.
   */
  extract: (dir: string) => Promise<void>;
}

/** Opens a backup, which may come from anybody: reads only known names, and no more bytes than they declare. */
export async function openArchive(path: string): Promise<Archive> {
  const { openPromise } = await import("yauzl");
  const zip = await openPromise(path, { autoClose: false }).catch((error: unknown) => {
    const why = messageOf(error);
    if (codeOf(error) === "ENOENT") throw new AppError("unavailable", `There is no file ${path}.`);
    throw codeOf(error) !== ""
      ? new AppError("unavailable", `${path} cannot be read: ${why}.`)
      : notABackup(`it is no zip archive, or was cut off (${why.replace(/\.$/, "")})`);
  });
  try {
    const entries = await entriesOf(zip);
    const found = entries.get(MANIFEST);
    if (!found) throw notABackup("it has no manifest");
    if (found.uncompressedSize > MAX_MANIFEST_BYTES) throw notABackup("its manifest is too large");
    const manifest = parseManifest(await textOf(zip, found));
    refuseOthers(manifest, entries);
    return {
      manifest,
      async extract(dir) {
        for (const entry of manifest.entries)
          await extractOne(zip, { entry, found: entries.get(entry.name) as Entry, dir });
      },
      [Symbol.dispose]: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

async function entriesOf(zip: ZipFile): Promise<Map<string, Entry>> {
  if (zip.entryCount > MAX_ENTRIES) throw notABackup("it has too many entries");
  const entries = new Map<string, Entry>();
  const inWords = (error: unknown): never => {
    throw notABackup(`its table of contents is damaged (${messageOf(error)})`);
  };
  const list = zip.eachEntry();
  for (;;) {
    const next = await list.next().catch(inWords);
    if (next.done === true) return entries;
    const entry: Entry = next.value;
    const { fileName } = entry;
    if (fileName !== MANIFEST && !isAllowed(fileName))
      throw notABackup(`${JSON.stringify(fileName.slice(0, 100))} has no place in one`);
    if (entries.has(fileName)) throw notABackup(`${fileName} is in it twice`);
    if (!isRegular(entry)) throw notABackup(`${fileName} is no ordinary file`);
    if (entry.isEncrypted()) throw notABackup(`${fileName} is encrypted`);
    entries.set(fileName, entry);
  }
}

function isRegular({ versionMadeBy, externalFileAttributes }: Entry): boolean {
  const kind = (externalFileAttributes >>> 16) & KIND_OF_FILE;
  return versionMadeBy >>> 8 !== UNIX || kind === 0 || kind === REGULAR_FILE;
}

function refuseOthers(manifest: Manifest, entries: Map<string, Entry>): void {
  const named = new Set<string>();
  for (const { name, size } of manifest.entries) {
    const found = entries.get(name);
    if (name === MANIFEST || !found || named.has(name)) throw notABackup(`${name.slice(0, 100)} is missing`);
    if (found.uncompressedSize !== size) throw notABackup(`${name} is not as long as it should be`);
    named.add(name);
  }
  if (!named.has(DATABASE)) throw notABackup("it has no database");
  const extra = [...entries.keys()].find((name) => name !== MANIFEST && !named.has(name));
  if (extra !== undefined) throw notABackup(`its manifest does not know ${extra}`);
}

async function extractOne(
  zip: ZipFile,
  { entry, found, dir }: { entry: ArchiveEntry; found: Entry; dir: string },
): Promise<void> {
  const path = join(dir, entry.name);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const hash = createHash("sha256");
  await using file = await open(path, "wx", 0o600);
  for await (const chunk of contentOf(zip, found)) {
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  if (hash.digest("hex") !== entry.sha256)
    throw notABackup(`${entry.name} is damaged (its checksum is another)`);
  await file.sync();
  await syncFolder(path);
}

async function textOf(zip: ZipFile, entry: Entry): Promise<string> {
  return Buffer.concat(await Array.fromAsync(contentOf(zip, entry))).toString("utf8");
}

/** Yields the content of an entry, never more than it declares. */
async function* contentOf(zip: ZipFile, entry: Entry): AsyncGenerator<Buffer> {
  try {
    yield* (await zip.openReadStreamPromise(entry)) as AsyncIterable<Buffer>;
  } catch (error) {
    throw notABackup(`${entry.fileName} cannot be unpacked (${messageOf(error)})`);
  }
}
