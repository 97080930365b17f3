import { closeSync, openSync, readFileSync, statSync } from "node:fs";

/** Returns about how many file handles this process has open; Infinity when it can open no more. */
export function handlesInUse(): number {
  // Since Linux 6.2 the size of this folder is the number of open handles (proc(5)).
  const counted = statSync("/proc/self/fd", { throwIfNoEntry: false })?.size ?? 0;
  return counted > 0 ? counted : lowestFree();
}

/** Returns the lowest free handle number. All lower ones are open, so there are at least that many. */
function lowestFree(): number {
  try {
    const handle = openSync("/dev/null", "r");
    closeSync(handle);
    return handle;
  } catch {
    return Infinity;
  }
}

/** Returns how many handles this process may have open (the soft limit); undefined where that cannot be read. */
export function handleLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1")) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
