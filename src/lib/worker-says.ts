import { readlinkSync } from "node:fs";

/** What a worker says once it has loaded what an input needs. */
export const LOADED = "loaded";

/** Tells the pool that this worker is ready, and where the processor time of its thread is read. */
export function sayReady(): void {
  postMessage(ownTask());
}

/** Tells the pool that the work on an input begins only now, because something had to be loaded for it. */
export function sayLoaded(): void {
  postMessage(LOADED);
}

/** Returns the folder of this thread in `/proc`; "" where the system has none, as on macOS. */
function ownTask(): string {
  try {
    return `/proc/${readlinkSync("/proc/thread-self")}`;
  } catch {
    return "";
  }
}
