import { messageOf } from "../errors.ts";
import type { Db, Write } from "./group-commit.ts";
import { isStorageFault } from "./storage-faults.ts";
import type { WatchLog } from "./watch.ts";

const AGAIN_MS = 1_000;

/** Writes down what nobody could bring a second time, as often as it takes. */
export interface Patience extends AsyncDisposable {
  /**
   * As `write`, but where the disk refuses, resolves with null and goes on trying until it is written, or this is
   * disposed of, which tries once more. `about` is for the log.
   */
  insist: <T>(operation: (tx: Db) => Promise<T>, about: object) => Promise<{ value: T } | null>;
}

export function createPatience(write: Write, log: WatchLog): Patience {
  const end = Promise.withResolvers<void>();
  const waiting = new Set<Promise<void>>();
  let isEnding = false;

  const again = async (operation: (tx: Db) => Promise<unknown>, about: object): Promise<void> => {
    for (;;) {
      await Promise.race([Bun.sleep(AGAIN_MS), end.promise]);
      // Read before the attempt: the one that begins after the end is the last.
      const isLast = isEnding;
      try {
        await write(operation);
        return log.info(about, "what the disk had refused is written now");
      } catch (error) {
        if (isStorageFault(error) && !isLast) continue;
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
      log.warn(about, "the disk does not take this; it is kept in memory and written as soon as it can be");
      const later = again(operation, about).finally(() => waiting.delete(later));
      waiting.add(later);
      return null;
    },
    async [Symbol.asyncDispose]() {
      isEnding = true;
      end.resolve();
      await Promise.all(waiting);
    },
  };
}
