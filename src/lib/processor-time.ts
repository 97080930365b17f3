import { readFileSync } from "node:fs";

/** Returns how many milliseconds have been used since it was made. */
export type UsedMs = () => number;

/** Begins to count what a process uses. */
export type Measure = (pid: number) => UsedMs;

/** Ticks of the clock by which Linux counts for programs, on every machine (USER_HZ). */
const TICKS_PER_SECOND = 100;
/** The places of `utime` and `stime` behind the name of the program (proc_pid_stat(5): fields 14 and 15). */
const TIMES = [11, 12];

/**
 * Counts the time that the processors have given to a process, in all of its threads: libraries of machine code work
 * beside the main one. Work that waits for a busy, throttled or swapping machine is not to blame for it. Where the system
 * does not tell, counts the time of the clock.
 */
export const processorTime: Measure = (pid) => {
  const began_ms = givenMs(pid);
  if (began_ms === undefined || !isCounted()) return passedTime(pid);
  return () => (givenMs(pid) ?? began_ms) - began_ms;
};

/** Whether the system counts that time at all: one that does not says 0, as is true of a process that just began. */
function isCounted(): boolean {
  return (givenMs(process.pid) ?? 0) > 0;
}

/** Counts the time of the clock, for work that mostly waits for others. */
export const passedTime: Measure = () => {
  const began_ms = performance.now();
  return () => performance.now() - began_ms;
};

function givenMs(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = TIMES.reduce((sum, at) => sum + Number(fields[at]), 0);
    return (ticks / TICKS_PER_SECOND) * 1_000;
  } catch {
    return undefined;
  }
}

/** Returns how many milliseconds the processors have given to the process that asks, in all of its threads. */
export function ownMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
