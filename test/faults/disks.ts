import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { closeSync, openSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CHUNK = Buffer.alloc(64 * 1024, 1);

interface Disk extends AsyncDisposable {
  path: string;
}

/** Why this machine lets nobody mount anything, or undefined. */
export async function whyNoMounts(kind: "tmpfs" | "loop"): Promise<string | undefined> {
  try {
    if (kind === "tmpfs") {
      await using _disk = await memoryDisk(1);
    } else {
      await using image = await imageFile(16);
      await using _disk = await image.mount();
    }
    return undefined;
  } catch (error) {
    return `${kind} cannot be mounted here (${(error as Error).message}); it takes root and Debian's mount and e2fsprogs`;
  }
}

/** A file system of so many megabytes, and of so many files, that can be filled to the brim. */
export async function memoryDisk(megabytes: number, files = 10_000): Promise<Disk> {
  return mounted(["-t", "tmpfs", "-o", `size=${megabytes}m,nr_inodes=${files}`, "tmpfs"]);
}

/** Has a folder seen as one of a disk that is mounted read-only, until this is disposed. */
export async function readOnly(dir: string): Promise<AsyncDisposable> {
  await run("mount", "--bind", dir, dir);
  await run("mount", "-o", "remount,ro,bind", dir);
  return { [Symbol.asyncDispose]: () => run("umount", "--lazy", dir) };
}

export interface Image extends AsyncDisposable {
  mount(): Promise<Disk>;
  /** The image as it is this moment: what a power cut now would leave. */
  copy(): Promise<Image>;
}

/** An ext4 file system in a file. What was not synced stays outside of the file for some seconds. */
export async function imageFile(megabytes: number): Promise<Image> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-image-"));
  const path = join(dir, "disk.img");
  await run("truncate", "-s", `${megabytes}M`, path);
  await run("mkfs.ext4", "-q", "-F", path);
  return image(dir, path);
}

function image(dir: string, path: string): Image {
  return {
    mount: () => mounted(["-o", "loop", path]),
    async copy() {
      const copy = await mkdtemp(join(tmpdir(), "mailwright-image-"));
      await run("cp", "--sparse=always", path, join(copy, "disk.img"));
      return image(copy, join(copy, "disk.img"));
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Fills a disk to its last byte; the file it takes is to be deleted to free it. */
export function fill(path: string): void {
  const file = openSync(path, "a");
  try {
    for (let size = CHUNK.length; size >= 1;) {
      try {
        writeSync(file, CHUNK.subarray(0, size));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
        size = Math.floor(size / 2);
      }
    }
  } finally {
    closeSync(file);
  }
}

async function mounted(words: string[]): Promise<Disk> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-disk-"));
  const path = join(dir, "mounted");
  await mkdir(path);
  await run("mount", ...words, path);
  return {
    path,
    async [Symbol.asyncDispose]() {
      await run("umount", "--lazy", path);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function run(...words: string[]): Promise<void> {
  const child = Bun.spawn(words, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [err, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(err.trim() || `${words[0]} ended with ${code}`);
}
