import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MB } from "../../src/lib/sizes.ts";

const ROOT = "/sys/fs/cgroup";

interface MemoryGroup extends Disposable {
  /** Counts from now on what this process, and those that it starts, take. */
  add(pid: number): void;
  /** How many processes the system has ended because all together took too much. */
  outOfMemory(): number;
}

/**
 * A group whose processes are ended by the system when they take more in all, caches of files included; its reason, in
 * words, where this machine lets nobody make one. To be disposed of after the last of them has ended.
 */
export function memoryGroup(megabytes: number): MemoryGroup | string {
  const isFirst = existsSync(join(ROOT, "memory"));
  const dir = join(ROOT, isFirst ? "memory" : "", `mailwright-${crypto.randomUUID()}`);
  try {
    mkdirSync(dir);
    const limit = isFirst ? "memory.limit_in_bytes" : "memory.max";
    writeFileSync(join(dir, limit), String(megabytes * MB), { flag: "r+" });
  } catch (error) {
    if (existsSync(dir)) rmdirSync(dir);
    return `no limit of memory can be set here (${(error as Error).message}); it takes root and control groups`;
  }
  return {
    add: (pid) => writeFileSync(join(dir, "cgroup.procs"), String(pid)),
    outOfMemory: () => {
      const events = readFileSync(join(dir, isFirst ? "memory.oom_control" : "memory.events"), "latin1");
      return Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
    },
    [Symbol.dispose]: () => removeOnceEmpty(dir),
  };
}

/** What a process has started ends with it, a moment later. */
function removeOnceEmpty(dir: string): void {
  for (let tries = 0; readFileSync(join(dir, "cgroup.procs"), "latin1") !== "" && tries < 500; tries += 1)
    Bun.sleepSync(10);
  rmdirSync(dir);
}
