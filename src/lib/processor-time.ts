import { readFileSync } from "node:fs";

/** Returns how many milliseconds have been used since it was made. */
export type UsedMs = () => number;

/**
 * Begins to count the use of a thread. `task` is what the thread has said of itself (`sayReady`); undefined for one that
 * has not said anything yet.
 */
export type Measure = (task: string | undefined) => UsedMs;

/**
 * Counts the time that the processor has given to a thread: work that waits for a busy, throttled or swapping machine
 * is not to blame for it. Where the system does not tell that of one thread, counts the time of the whole process, which
 * is never less.
 */
export const processorTime: Measure = (task) => {
  const thread_ms = threadMs(task);
  const process_us = process.cpuUsage();
  return () => {
    const now_ms = threadMs(task);
    if (thread_ms !== undefined && now_ms !== undefined) return now_ms - thread_ms;
    const { user, system } = process.cpuUsage(process_us);
    return (user + system) / 1_000;
  };
};

/** Counts the time of the clock, for work that mostly waits for others. */
export const passedTime: Measure = () => {
  const began_ms = performance.now();
  return () => performance.now() - began_ms;
};

/**
 * Reads the first of the three numbers of `schedstat`, nanoseconds on the processor. A kernel that does not count them
 * says 0.
 */
function threadMs(task: string | undefined): number | undefined {
  if (!task) return undefined;
  try {
    const ns = Number.parseInt(readFileSync(`${task}/schedstat`, "latin1"), 10);
    return ns > 0 ? ns / 1_000_000 : undefined;
  } catch {
    return undefined;
  }
}

/** Returns how many milliseconds the processor has given to the thread that asks. */
export function ownMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
