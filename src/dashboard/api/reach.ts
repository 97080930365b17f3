import { useEffect, useRef, useSyncExternalStore } from "react";

/** How long after a question without an answer the next one is asked; each failure in a row doubles it. */
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 15_000;
const ALIVE = "/livez";

let is_reached = true;
let pause_ms = FIRST_PAUSE_MS;
let timer: ReturnType<typeof setTimeout> | undefined;
const watchers = new Set<() => void>();

/** Whether the server answered when it was asked last. */
export function useIsReached(): boolean {
  return useSyncExternalStore(
    (heard) => {
      watchers.add(heard);
      return () => watchers.delete(heard);
    },
    () => is_reached,
  );
}

/** Calls `goOn` once the server answers that could not be reached. */
export function useGoOn(goOn: () => void): void {
  const is_reached = useIsReached();
  const was_lost = useRef(false);
  useEffect(() => {
    if (is_reached && was_lost.current) goOn();
    was_lost.current = !is_reached;
  }, [is_reached, goOn]);
}

/** Said by every call: once one has no answer, the server is asked until it answers. */
export function noteReach(reached: boolean): void {
  clearTimeout(timer);
  if (reached) pause_ms = FIRST_PAUSE_MS;
  else {
    timer = setTimeout(() => void askForLife(), pause_ms);
    pause_ms = Math.min(2 * pause_ms, LONGEST_PAUSE_MS);
  }
  if (is_reached === reached) return;
  is_reached = reached;
  for (const heard of watchers) heard();
}

/** Asks at once whether the server can be reached. */
export async function askForLife(): Promise<void> {
  clearTimeout(timer);
  const answer = await fetch(ALIVE, { cache: "no-store" }).catch(() => undefined);
  noteReach(answer?.ok === true);
}
