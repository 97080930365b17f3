import { useState } from "react";
import { faultOf } from "../../api/client.ts";
import { errorWords } from "../../ui/notice.tsx";

interface Progress {
  /** Such as "Deleting". */
  act: string;
  done: number;
  of: number;
}

/** Does something with one message after the other; `forEach` gives those with which it was done. */
export function useOneByOne() {
  const [progress, setProgress] = useState<Progress>();
  const [faults, setFaults] = useState<string[]>([]);
  async function forEach(
    act: string,
    ids: string[],
    work: (id: string) => Promise<unknown>,
  ): Promise<string[]> {
    const done: string[] = [];
    const said = new Map<string, number>();
    try {
      for (const [index, id] of ids.entries()) {
        setProgress({ act, done: index, of: ids.length });
        try {
          await work(id);
          done.push(id);
        } catch (error) {
          // No message could have such a tag.
          if (faultOf(error)("tags")?.code === "invalid_tag") throw error;
          // Which other message stands in the way differs from one to the next.
          const words = errorWords(error).replace(/: see message [\w-]+\.$/, ".");
          said.set(words, (said.get(words) ?? 0) + 1);
        }
      }
    } finally {
      setProgress(undefined);
    }
    setFaults(
      said.size === 0
        ? []
        : [
            `${ids.length - done.length} of ${ids.length} stayed as they were.`,
            ...[...said].map(([words, count]) => (count === ids.length ? words : `${count} × ${words}`)),
          ],
    );
    return done;
  }
  return { progress, faults, forEach };
}
