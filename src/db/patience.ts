import { messageOf } from "../errors.ts";
import type { Db, Write } from "./group-commit.ts";
import { isStorageFault } from "./storage-faults.ts";
import type { WatchLog } from "./watch.ts";

const AGAIN_MS = 1_000;

/** Stores what nobody could send a second time, such as the result of a run, and retries as often as it takes. */
export interface Patience extends AsyncDisposable {
  /**
   * Like `write`, but when the disk refuses, resolves with null and retries until the operation is committed. Disposal
   * tries once more. `about` is for the log.
   */
  insist: <T>(operation: (tx: Db) => Promise<T>, about: object) => Promise<{ value: T } | null>;
}

export function createPatience(write: Write, log: WatchLog): Patience {
  const end = Promise.withResolvers<void>();
  const waiting = new Set<Promise<void>>();
  let is_ending = false;

  const again = async (operation: (tx: Db) => Promise<unknown>, about: object): Promise<void> => {
    for (;;) {
      await Promise.race([Bun.sleep(AGAIN_MS), end.promise]);
      // Read before the attempt: an attempt that begins after disposal is the last one.
      const is_last = is_ending;
      try {
        await write(operation);
        return log.info(about, "what the disk had refused is written now");
      } catch (error) {
        if (isStorageFault(error) && !is_last) continue;
        return log.error({ ...about, err: messageOf(error) }, "what was only in memory is lost");
      }
    }
  };
  return {
    async insist(operation, about) {
      try {
        return { value: await write(operation) };
      } catch (error) {
        if (!isStorageFault(error)) throw error;
      }
      log.warn(about, "the disk cannot be written; this is kept in memory and written as soon as possible");
      const later = again(operation, about).finally(() => waiting.delete(later));
      waiting.add(later);
      return null;
    },
    async [Symbol.asyncDispose]() {
      is_ending = true;
      end.resolve();
      await Promise.all(waiting);
    },
  };
}
