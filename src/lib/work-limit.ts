import type { UsedMs } from "./processor-time.ts";
import { type WaitLimit, waitLimit } from "./wait-limit.ts";

/** How many times its limit work may take by the clock while it is not given the time that it may use. */
const PATIENCE = 5;
/** The shortest wait for what is left, as a part of the limit. */
const SHORTEST = 0.1;

/**
 * Calls `giveUp` once work has used `limit_ms`, and so is too slow itself, or once it has been held up for much longer
 * without being given that time. What has been waited is counted, not what the clock says: a process that was stopped
 * has not waited.
 */
export function workLimit(
  limit_ms: number,
  usedMs: UsedMs,
  giveUp: (problem: "too_slow" | "held_up") => void,
): Pick<WaitLimit, "clear"> {
  let waited_ms = 0;
  let timer: WaitLimit;
  const wait = (ms: number): void => {
    waited_ms += ms;
    timer = waitLimit(ms, look);
  };
  const look = (): void => {
    const left_ms = limit_ms - usedMs();
    if (left_ms <= 0) giveUp("too_slow");
    else if (waited_ms >= limit_ms * PATIENCE) giveUp("held_up");
    else wait(Math.max(left_ms, limit_ms * SHORTEST));
  };
  wait(limit_ms);
  return { clear: () => timer.clear() };
}
