import { unlessAborted } from "./deadline.ts";

export interface TurnOptions {
  /** Whose work it is. */
  who: string;
  /** Whoever waits is passed over once it goes off; what has begun goes on, and is not waited for any more. */
  signal?: AbortSignal;
  /** Nothing else is done meanwhile. */
  alone?: boolean;
}

/** Does some pieces of work at once, and everybody's in turn. */
export type FairTurns = <T>(options: TurnOptions, work: () => Promise<T>) => Promise<T>;

interface Waiting {
  alone: boolean;
  begin: () => void;
}

interface Party {
  waiting: Waiting[];
  running: number;
  /** When a piece of theirs was begun last. */
  served: number;
}

/**
 * At most `size` at once, and of one party no more than half of them: one whose pieces take long holds up nobody else.
 * Whoever was served the longest time ago is next, so that a short piece overtakes the queue of another party.
 */
export function createFairTurns(size: number): FairTurns {
  const parties = new Map<string, Party>();
  const share = Math.max(1, Math.floor(size / 2));
  let running = 0;
  let isAlone = false;
  let turn = 0;

  const beginMore = (): void => {
    while (running < size && !isAlone) {
      const party = longestUnserved(parties, share);
      const piece = party?.waiting[0];
      if (!party || !piece || (piece.alone && running > 0)) return;
      party.waiting.shift();
      party.served = ++turn;
      party.running += 1;
      running += 1;
      isAlone = piece.alone;
      piece.begin();
    }
  };

  return ({ who, signal, alone = false }, work) => {
    const party = parties.get(who) ?? { waiting: [], running: 0, served: 0 };
    parties.set(who, party);
    const begun = Promise.withResolvers<void>();
    const piece = { alone, begin: begun.resolve };
    party.waiting.push(piece);
    const leave = (): void => {
      if (party.waiting.length + party.running === 0) parties.delete(who);
    };
    const done = begun.promise.then(async () => {
      try {
        signal?.throwIfAborted();
        return await work();
      } finally {
        party.running -= 1;
        running -= 1;
        if (alone) isAlone = false;
        leave();
        beginMore();
      }
    });
    beginMore();
    if (!signal) return done;
    done.catch(() => undefined);
    return unlessAborted(done, signal).finally(() => {
      const at = party.waiting.indexOf(piece);
      if (at < 0) return;
      party.waiting.splice(at, 1);
      leave();
      beginMore();
    });
  };
}

function longestUnserved(parties: Map<string, Party>, share: number): Party | undefined {
  let found: Party | undefined;
  for (const party of parties.values())
    if (party.waiting.length > 0 && party.running < share && party.served < (found?.served ?? Infinity))
      found = party;
  return found;
}
