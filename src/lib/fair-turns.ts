import { unlessAborted } from "./deadline.ts";

export interface TurnOptions {
  /** Whose work it is. */
  who: string;
  /** Others caused it: it waits behind what they themselves did. */
  strangers?: boolean;
  /** Whoever waits is passed over once it goes off; what has begun goes on, and is not waited for any more. */
  signal?: AbortSignal;
  /** Nothing else is done meanwhile. */
  alone?: boolean;
}

/** Does a number of pieces of work at once, and lets all parties have their turns. */
export type FairTurns = <T>(options: TurnOptions, work: () => Promise<T>) => Promise<T>;

interface Waiting {
  alone: boolean;
  begin: () => void;
}

/** Pieces of one kind that wait for a party: its own, or those that strangers caused. */
interface Line {
  waiting: Waiting[];
  running: number;
}

interface Party {
  own: Line;
  strangers: Line;
  /** When a piece of theirs was begun last. */
  served: number;
}

/**
 * At most `size` at once, and of one party no more than half of them, or one of its own beside what others caused: one
 * whose pieces take long holds up nobody else, nor strangers those they write to. Whoever was served the longest time ago
 * is next, so that a short piece overtakes the queue of another party.
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
      const line = party && nextLine(party, share);
      const piece = line?.waiting[0];
      if (!party || !line || !piece || (piece.alone && running > 0)) return;
      line.waiting.shift();
      party.served = ++turn;
      line.running += 1;
      running += 1;
      isAlone = piece.alone;
      piece.begin();
    }
  };

  return ({ who, strangers = false, signal, alone = false }, work) => {
    const party = parties.get(who) ?? newParty();
    const line = strangers ? party.strangers : party.own;
    parties.set(who, party);
    const begun = Promise.withResolvers<void>();
    const piece = { alone, begin: begun.resolve };
    line.waiting.push(piece);
    const leave = (): void => {
      const { own, strangers: others } = party;
      if (own.waiting.length + others.waiting.length + heldBy(party) === 0) parties.delete(who);
    };
    const done = begun.promise.then(async () => {
      try {
        signal?.throwIfAborted();
        return await work();
      } finally {
        line.running -= 1;
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
      const at = line.waiting.indexOf(piece);
      if (at < 0) return;
      line.waiting.splice(at, 1);
      leave();
      beginMore();
    });
  };
}

function newParty(): Party {
  return { own: { waiting: [], running: 0 }, strangers: { waiting: [], running: 0 }, served: 0 };
}

function heldBy({ own, strangers }: Party): number {
  return own.running + strangers.running;
}

function longestUnserved(parties: Map<string, Party>, share: number): Party | undefined {
  let found: Party | undefined;
  for (const party of parties.values())
    if (nextLine(party, share) && party.served < (found?.served ?? Infinity)) found = party;
  return found;
}

/** Finds the piece of a party that may be begun: its own come before those of strangers. */
function nextLine(party: Party, share: number): Line | undefined {
  const { own, strangers } = party;
  const hasRoom = heldBy(party) < share;
  if (own.waiting.length > 0) return hasRoom || own.running === 0 ? own : undefined;
  return strangers.waiting.length > 0 && hasRoom ? strangers : undefined;
}
