import { closeSync, openSync, readFileSync, statSync } from "node:fs";

/** Returns about how many file handles this process has open; Infinity when it can open no more. */
export function handlesInUse(): number {
  // proc(5): the size of this folder is their count, since Linux 6.2.
  const counted = statSync("/proc/self/fd", { throwIfNoEntry: false })?.size ?? 0;
  return counted > 0 ? counted : lowestFree();
}

/** A new handle has the lowest number that is free, so there are as many as that at least. */
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
