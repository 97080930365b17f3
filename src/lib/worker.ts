import { NoTasksError, refuseThread } from "./own-faults.ts";

/** The first argument of a process that is started as a worker; the path of its module follows. */
export const WORK = "--work";
export const COMPILED_ROOT = "/$bunfs/root/";

/**
 * Starts a worker thread from `path`, relative to `src` (`db/checkpoint-worker.ts`). In the compiled binary every
 * module is bundled into one file at the root, so `import.meta.url` says nothing about folders there. Throws
 * NoHandlesError where starting it would end this process, and NoTasksError where the system allows no more threads.
 */
export function startWorker(path: string): Worker {
  refuseThread();
  try {
    return new Worker(moduleAt(path));
  } catch (error) {
    // A fault in the module itself arrives later as an event.
    throw new NoTasksError(error);
  }
}

/** Returns the URL of the module at `path`, relative to `src`. */
export function moduleAt(path: string): string {
  const root = import.meta.url.includes(COMPILED_ROOT)
    ? `file://${COMPILED_ROOT}`
    : new URL("../", import.meta.url);
  return new URL(path, root).href;
}
