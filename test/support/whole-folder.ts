import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestApp } from "./app.ts";

/** A folder for a database of a test that looks at its file. */
export async function databaseFolder(): Promise<AsyncDisposable & { dir: string; url: string }> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-database-"));
  return {
    dir,
    url: `sqlite:${join(dir, "mailwright.db")}`,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Every byte of every file of the server: its data folder, and the database with its log. */
export async function everyByte({ app }: TestApp, { dir }: { dir: string }): Promise<string> {
  const parts: string[] = [];
  for (const folder of [app.config.data.dir, dir])
    for (const file of await readdir(folder, { recursive: true, withFileTypes: true }))
      if (file.isFile())
        parts.push(Buffer.from(await Bun.file(join(file.parentPath, file.name)).bytes()).toString("latin1"));
  return parts.join("\n");
}
