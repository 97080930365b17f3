/** Why this machine sets no limit of file handles for a process that runs, or undefined. */
export const whyNoLimit =
  Bun.which("prlimit") === null ? "no handles can be taken: apt-get install util-linux" : undefined;
if (whyNoLimit !== undefined) console.log(`Handles are not taken: ${whyNoLimit}`);

/** Sets the soft limit of a process, which is the one that holds. */
export function limitHandles(pid: number, files: number): void {
  const set = Bun.spawnSync(["prlimit", "--pid", String(pid), `--nofile=${files}:`]);
  if (!set.success) throw new Error(set.stderr.toString());
}
