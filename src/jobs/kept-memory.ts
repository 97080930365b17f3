import type { Db } from "../db/database.ts";
import { type DueRow, HEAVY_BYTES, heavyBehind, readyJob, readyLines } from "../db/due-jobs.ts";
import { useOf } from "./queue.ts";
import {
  fullTargets,
  hasKept,
  isOfStrangers,
  mayHaveKept,
  memoryOf,
  type Room,
  type Uses,
} from "./shares.ts";

interface Asked {
  kind: string;
  now: number;
  /** What runs, including the jobs that this claim has begun. */
  uses: Uses;
  room: Room;
  free: number;
}

/**
 * Keeps memory for one large job at a time. Once other jobs have together used as many bytes as it needs, the memory
 * that becomes free is kept for it. So large and small jobs each get about half of the memory, and accounts with large
 * jobs take turns. The state is only whose turn it is, so a restart loses nothing.
 */
export interface KeptMemory {
  /**
   * Returns the job for which memory was kept, once it is enough; the caller has to start it before any other. Returns
   * null otherwise.
   */
  next: (tx: Db, asked: Asked) => Promise<DueRow | null>;
  /** Must be called when another job was started. */
  passed: (job: { weight: number }) => void;
}

/** Creates it empty. `uses` is what runs in the pool; the kept memory is part of it. */
export function createKeptMemory(uses: Uses): KeptMemory {
  let kept: { id: string; place: Parameters<Uses["add"]>[0] } | null = null;
  /** Bytes of the jobs started since the last large one had its turn. */
  let bytes_since = 0;
  /** The account that was looked at last. */
  let from = "";

  const find = async (tx: Db, { kind, now, uses: running, room }: Asked): Promise<void> => {
    const full_targets = JSON.stringify(fullTargets(running, room));
    const [row] = await heavyBehind(tx, { kind, from, now, full_targets });
    // The whole queue has no large job: nothing is owed.
    if (row === undefined && from === "") bytes_since = 0;
    from = row?.account ?? "";
    if (row === undefined) return;
    const use = useOf(row);
    const weight = memoryOf(use, room);
    if (bytes_since < weight || !mayHaveKept(use, { uses: running, room })) return;
    kept = { id: row.id, place: { share: null, weight, target: null } };
    uses.add(kept.place);
  };

  const end = (): void => {
    if (kept !== null) uses.remove(kept.place);
    kept = null;
    bytes_since = 0;
  };

  return {
    async next(tx, asked) {
      if (kept === null && bytes_since > HEAVY_BYTES) await find(tx, asked);
      if (kept === null) return null;
      const [row] = await readyJob(tx, { id: kept.id });
      if (row === undefined || (await isBehindHousehold(tx, asked.kind, row))) {
        end();
        return null;
      }
      if (!hasKept(useOf(row), asked)) return null;
      end();
      return row;
    },
    passed({ weight }) {
      if (kept === null) bytes_since += weight;
    },
  };
}

/** Returns whether a job of strangers waits behind one of its account's household. */
async function isBehindHousehold(tx: Db, kind: string, row: DueRow): Promise<boolean> {
  const use = useOf(row);
  if (use.share === null || !isOfStrangers(use)) return false;
  const { account } = use.share;
  const [found] = await readyLines(tx, { kind, from: account, limit: 1 });
  return (JSON.parse(found?.lines ?? "[]") as string[])[0] === account;
}
