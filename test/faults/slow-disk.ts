import { mkdtemp, rm, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SOURCE = join(import.meta.dir, "slow-sync.c");

/** Why no disk can be made slow here, or undefined. */
export function whyNoSlowDisk(): string | undefined {
  return Bun.which("cc") === null
    ? "no slow syncs without a compiler: apt-get install gcc libc6-dev"
    : undefined;
}

interface SlowDisk extends AsyncDisposable {
  /** For the server whose syncs are to be slow. */
  env: Record<string, string>;
  slow(): Promise<void>;
  heal(): Promise<void>;
  /** Syncs since it became slow. */
  syncs(): Promise<number>;
}

/** A disk that takes so much longer for each sync, of files whose path holds `only`, from `slow` on. */
export async function slowDisk(ms: number, only = ""): Promise<SlowDisk> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-slow-"));
  const library = join(dir, "slow-sync.so");
  const made = Bun.spawnSync(["cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]);
  if (!made.success) throw new Error(made.stderr.toString());
  const path = join(dir, "slow");
  return {
    env: { LD_PRELOAD: library, SLOW_SYNC_PATH: path, SLOW_SYNC_MS: String(ms), SLOW_SYNC_ONLY: only },
    async slow() {
      await rm(`${path}.count`, { force: true });
      await writeFile(path, "");
    },
    heal: () => unlink(path),
    syncs: async () => Bun.file(`${path}.count`).size,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  };
}
