/** Why this machine sets no limit for a process that runs, or undefined. */
export const whyNoLimit =
  Bun.which("prlimit") === null ? "no handles can be taken: apt-get install util-linux" : undefined;
if (whyNoLimit !== undefined) console.log(`Handles are not taken: ${whyNoLimit}`);

/** Sets the soft limit of a process, which is the one that holds. */
export function limitHandles(pid: number, files: number): void {
  const set = Bun.spawnSync(["prlimit", "--pid", String(pid), `--nofile=${files}:`]);
  if (!set.success) throw new Error(set.stderr.toString());
}

/** Sets how large a file may become that the process writes: bytes, or "unlimited". */
export function limitFileSize(pid: number, bytes: string): void {
  const set = Bun.spawnSync(["prlimit", "--pid", String(pid), `--fsize=${bytes}:`]);
  if (!set.success) throw new Error(set.stderr.toString());
}
