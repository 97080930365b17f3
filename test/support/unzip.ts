import { buffer } from "node:stream/consumers";
import yauzl from "yauzl";

/** Returns the files of an archive by name. yauzl checks names and sizes; the checksums are compared here. */
export async function unzip(archive: Uint8Array): Promise<Map<string, Buffer>> {
  const zip = await open(archive);
  const files = new Map<string, Buffer>();
  for await (const entry of zip.eachEntry()) {
    const { fileName: name, crc32 } = entry;
    const bytes = await buffer(await zip.openReadStreamPromise(entry));
    if (Bun.hash.crc32(bytes) !== crc32) throw new Error(`${name} is damaged`);
    if (files.has(name)) throw new Error(`${name} is there twice`);
    files.set(name, bytes);
  }
  return files;
}

/** Returns the names in the index of an archive, which is quick. */
export async function namesIn(archive: Uint8Array): Promise<string[]> {
  const names: string[] = [];
  for await (const { fileName } of (await open(archive)).eachEntry()) names.push(fileName);
  return names;
}

function open(archive: Uint8Array): Promise<yauzl.ZipFile> {
  return yauzl.fromBufferPromise(Buffer.from(archive), { lazyEntries: true, strictFileNames: true });
}
