import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { lockDataFolder } from "../../src/db/locks.ts";

const ROOT = join(import.meta.dir, "../..");
const KEPT = join(ROOT, "node_modules/.cache/mailwright");
/** All that the binary is made of. */
const SOURCES = ["package.json", "bun.lock", "scripts/build.ts", "src/**", "migrations/**", "patches/**"];
const BUILD_MS = 120_000;
/** Another run may still start an older one. */
const KEEP_MS = 15 * 60_000;

/** The binary of the sources as they are now. It starts in a fifth of their time, and is kept until they change. */
export function builtBinary(): Promise<string> {
  return (current ??= kept());
}

let current: Promise<string> | undefined;

async function kept(): Promise<string> {
  const path = join(KEPT, `mailwright-${await digestOfSources()}`);
  await mkdir(KEPT, { recursive: true });
  // Test files run in several processes: one of them builds.
  using lock = lockDataFolder(KEPT, BUILD_MS);
  if (!lock) throw new Error(`Another process has been building into ${KEPT} for too long`);
  if (!existsSync(path)) await build(path);
  await utimes(path, new Date(), new Date());
  return path;
}

async function build(path: string): Promise<void> {
  for (const name of await readdir(KEPT)) {
    const { mtimeMs } = await stat(join(KEPT, name));
    if (name.startsWith("mailwright-") && mtimeMs < Date.now() - KEEP_MS) await rm(join(KEPT, name));
  }
  const draft = join(KEPT, "draft");
  const built = Bun.spawn([process.execPath, join(ROOT, "scripts/build.ts"), "--outfile", draft], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(built.stderr).text();
  if ((await built.exited) !== 0 || said !== "") throw new Error(said);
  await rename(draft, path);
}

async function digestOfSources(): Promise<string> {
  const hash = createHash("sha256").update(Bun.version);
  for (const pattern of SOURCES) {
    const files = await Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: ROOT }));
    if (files.length === 0) throw new Error(`There is no ${pattern}`);
    for (const file of files.sort())
      hash.update(`${file}\0`).update(await Bun.file(join(ROOT, file)).bytes());
  }
  return hash.digest("hex").slice(0, 16);
}
