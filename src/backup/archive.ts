import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { join } from "node:path";
import type { Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Snapshot } from "../db/snapshot.ts";
import { type ZipEntry, zipOf } from "../lib/zip.ts";
import { keyFiles, segmentCopies } from "./contents.ts";
import { type ArchiveEntry, DATABASE, MANIFEST, type Manifest, manifestOf } from "./manifest.ts";
import { MB } from "../lib/sizes.ts";

const READ_BYTES = MB;

interface Content {
  name: string;
  read: () => AsyncIterable<Buffer>;
}

interface Packing {
  /** The data folder. */
  dir: string;
  /** The file of `snapshot`. */
  path: string;
  snapshot: Snapshot;
  about: Pick<Manifest, "version" | "created" | "hostname" | "mail" | "master_key">;
  /** Called before each part is written; throws where no more is to be. */
  refuseMore: () => Promise<void>;
}

/** Writes the archive to `out`, entry by entry, without holding it in memory. Returns its manifest. */
export async function writeArchive(packing: Packing, out: Writable, signal: AbortSignal): Promise<Manifest> {
  const { snapshot, about, refuseMore } = packing;
  const entries: ArchiveEntry[] = [];
  let missing_bytes = about.mail ? snapshot.lost_bytes : 0;
  const contents = await contentsOf(packing, (bytes) => (missing_bytes += bytes));
  const { migrations, counts } = snapshot;
  const manifest = (): Manifest => manifestOf({ ...about, migrations, counts, missing_bytes, entries });
  const entry = (name: string, content: ZipEntry["content"]): ZipEntry => ({
    name,
    modified: about.created,
    large: true,
    content,
  });
  async function* parts(): AsyncGenerator<ZipEntry> {
    for (const { name, read } of contents)
      yield entry(
        name,
        hashed(watched(read(), refuseMore), (sums) => entries.push({ name, ...sums })),
      );
    yield entry(MANIFEST, [Buffer.from(JSON.stringify(manifest(), null, 2))]);
  }
  await pipeline(zipOf(parts()), out, { signal });
  return manifest();
}

async function contentsOf(
  { dir, path, snapshot, about }: Packing,
  onMissing: (bytes: number) => void,
): Promise<Content[]> {
  const segments = about.mail ? await segmentCopies(dir, snapshot) : [];
  const keys = await keyFiles(dir);
  return [
    fileContent(DATABASE, path),
    ...keys.map((name) => fileContent(name, join(dir, name))),
    ...segments.map(({ name, read }) => ({ name, read: () => read(onMissing) })),
  ];
}

function fileContent(name: string, path: string): Content {
  return { name, read: () => createReadStream(path, { highWaterMark: READ_BYTES }) };
}

async function* watched(
  chunks: AsyncIterable<Buffer>,
  refuseMore: () => Promise<void>,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    await refuseMore();
    yield chunk;
  }
}

async function* hashed(
  chunks: AsyncIterable<Buffer>,
  done: (sums: Pick<ArchiveEntry, "size" | "sha256">) => void,
): AsyncGenerator<Buffer> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    size += chunk.byteLength;
    yield chunk;
  }
  done({ size, sha256: hash.digest("hex") });
}
