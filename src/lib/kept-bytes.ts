import { isBefore, type Position, type SegmentRange } from "./segment-files.ts";
import type { SegmentStore } from "./segments.ts";
import { MB } from "./sizes.ts";
import { waitAtMost } from "./deadline.ts";

/** How much goes along with whoever has waited longest: who has little waits for no more than one large mail. */
const ALONG_BYTES = 8 * MB;
/** How long the next batch waits for the transactions of the last one. */
const TOGETHER_MS = 50;

export interface SegmentWriter extends Pick<SegmentStore, "position"> {
  /** Writes and syncs bytes at the end of the segment files. Returns where each lies. Must not run twice at once. */
  append(all: Uint8Array[]): Promise<SegmentRange[]>;
}

interface Disk {
  /** Runs what writes, and throws where the disk does not answer. */
  onDisk: <T>(work: () => Promise<T>) => Promise<T>;
  /** Returns the blocks of a range to the disk. */
  free: (range: SegmentRange) => Promise<void>;
}

interface KeptBytes extends Pick<SegmentStore, "keep" | "take" | "settledEnd"> {
  /** Resolves once nothing is being written. */
  settled(): Promise<void>;
}

/** Writes bytes before the transactions that name them, and knows which of their ranges are still nobody's. */
export function openKeptBytes(writer: SegmentWriter, { onDisk, free }: Disk): KeptBytes {
  const untaken = new WeakMap<Uint8Array, SegmentRange[]>();
  const unsettled = new Set<SegmentRange>();
  /** Where what is being written begins. */
  let written_from: Position | undefined;
  let ended = Promise.withResolvers<void>();
  // Those whose transactions end together come together again: each batch costs a sync, and so does each commit.
  const gathered = async (): Promise<void> => {
    if (unsettled.size > 0) await waitAtMost(TOGETHER_MS, ended.promise);
  };
  const queue = openQueue(gathered, async (batch) => {
    written_from = writer.position();
    try {
      const ranges = await onDisk(() => writer.append(batch));
      for (const range of ranges) unsettled.add(range);
      return ranges;
    } finally {
      written_from = undefined;
    }
  });
  const settle = async (bytes: Uint8Array, range: SegmentRange): Promise<void> => {
    unsettled.delete(range);
    if (unsettled.size === 0) {
      ended.resolve();
      ended = Promise.withResolvers();
    }
    const left = untaken.get(bytes) ?? [];
    if (!left.includes(range)) return;
    left.splice(left.indexOf(range), 1);
    // What cannot be freed now is found by the sweep of the files.
    await free(range).catch(() => undefined);
  };
  return {
    async keep(all) {
      const stack = new AsyncDisposableStack();
      const outcomes = await Promise.allSettled(
        all.map(async (bytes) => {
          const range = await queue.add(bytes);
          untaken.set(bytes, [...(untaken.get(bytes) ?? []), range]);
          stack.defer(() => settle(bytes, range));
        }),
      );
      const failed = outcomes.find((outcome) => outcome.status === "rejected");
      if (failed === undefined) return stack;
      await stack.disposeAsync();
      throw failed.reason;
    },
    take: (bytes) => untaken.get(bytes)?.pop(),
    settledEnd() {
      const { segment, offset } = [...unsettled].reduce<Position>(
        (end, range) => (isBefore(range, end) ? range : end),
        written_from ?? writer.position(),
      );
      return { segment, offset };
    },
    settled: queue.settled,
  };
}

interface Waiting {
  bytes: Uint8Array;
  resolve: (range: SegmentRange) => void;
  reject: (error: unknown) => void;
}

/** Hands bytes to `writeBatch`, which returns where they are: what comes while it is at work, or until `gathered`, goes together. */
function openQueue(
  gathered: () => Promise<void>,
  writeBatch: (batch: Uint8Array[]) => Promise<SegmentRange[]>,
) {
  const waiting: Waiting[] = [];
  let running: Promise<void> | undefined;
  const run = async (): Promise<void> => {
    while (waiting.length > 0) {
      await gathered();
      const batch = takeBatch(waiting);
      const outcome = await writeBatch(batch.map(({ bytes }) => bytes)).then(
        (ranges) => () => ranges.forEach((range, index) => batch[index]?.resolve(range)),
        (error: unknown) => () => batch.forEach(({ reject }) => reject(error)),
      );
      outcome();
    }
    running = undefined;
  };
  return {
    add: (bytes: Uint8Array) =>
      new Promise<SegmentRange>((resolve, reject) => {
        waiting.push({ bytes, resolve, reject });
        // What is added in the same turn goes together.
        running ??= Promise.resolve().then(run);
      }),
    settled: async () => running,
  };
}

/** Takes the one that has waited longest, and the smallest of the others. */
function takeBatch(waiting: Waiting[]): Waiting[] {
  const [first, ...others] = waiting;
  let left = ALONG_BYTES;
  const bySize = others.toSorted((one, other) => one.bytes.byteLength - other.bytes.byteLength);
  const small = new Set(bySize.filter(({ bytes }) => (left -= bytes.byteLength) >= 0));
  const { true: batch = [], false: rest = [] } = Object.groupBy(waiting, (one) =>
    String(one === first || small.has(one)),
  );
  waiting.splice(0, waiting.length, ...rest);
  return batch;
}
