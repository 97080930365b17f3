import { readFileSync } from "node:fs";

/** Returns how many milliseconds have been used since it was made. */
export type UsedMs = () => number;

/** Begins to count what a process uses. */
export type Measure = (pid: number) => UsedMs;

/**
 * Counts the time that the processor has given to the main thread of a process: work that waits for a busy, throttled or
 * swapping machine is not to blame for it. Where the system does not tell, counts the time of the clock, which is never
 * less.
 */
export const processorTime: Measure = (pid) => {
  const began_ms = givenMs(pid);
  if (began_ms === undefined || !isCounted()) return passedTime(pid);
  return () => (givenMs(pid) ?? began_ms) - began_ms;
};

/** Whether the kernel counts that time at all: one that does not says 0, as is true of a process that just began. */
function isCounted(): boolean {
  return (givenMs(process.pid) ?? 0) > 0;
}

/** Counts the time of the clock, for work that mostly waits for others. */
export const passedTime: Measure = () => {
  const began_ms = performance.now();
  return () => performance.now() - began_ms;
};

/** Reads the first of the three numbers of `schedstat`, nanoseconds on the processor. */
function givenMs(pid: number): number | undefined {
  try {
    return Number.parseInt(readFileSync(`/proc/${pid}/schedstat`, "latin1"), 10) / 1_000_000;
  } catch {
    return undefined;
  }
}

/** Returns how many milliseconds the processor has given to the thread that asks. */
export function ownMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
