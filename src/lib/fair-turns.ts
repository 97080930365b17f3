import { unlessAborted } from "./deadline.ts";

export interface TurnOptions {
  /** The account whose work it is, or another party. */
  who: string;
  /** True when others caused the work: it waits behind what the party itself caused. */
  strangers?: boolean;
  /** Aborting it rejects a waiting call. Work that has begun continues, but the call no longer waits for it. */
  signal?: AbortSignal;
}

/** Runs a limited number of functions at once, shared fairly between parties. Resolves with the result of `work`. */
export type FairTurns = <T>(options: TurnOptions, work: () => Promise<T>) => Promise<T>;

/** The work that waits or runs for a party: its own, or what strangers caused. */
interface Line {
  waiting: (() => void)[];
  running: number;
}

interface Party {
  own: Line;
  strangers: Line;
  /** When work of this party was last started, as a running number. */
  served: number;
}

/**
 * Runs at most `size` functions at once. One party gets half of them at most, plus one of its own when strangers' work
 * fills that half: so slow work holds up nobody else, and strangers never hold up whom they write to. The party that
 * was served the longest time ago is next.
 */
export function createFairTurns(size: number): FairTurns {
  const parties = new Map<string, Party>();
  const share = Math.max(1, Math.floor(size / 2));
  let running = 0;
  let turn = 0;

  const beginMore = (): void => {
    while (running < size) {
      const party = longestUnserved(parties, share);
      const line = party && nextLine(party, share);
      const begin = line?.waiting.shift();
      if (!party || !line || !begin) return;
      party.served = ++turn;
      line.running += 1;
      running += 1;
      begin();
    }
  };

  return ({ who, strangers = false, signal }, work) => {
    const party = parties.get(who) ?? newParty();
    const line = strangers ? party.strangers : party.own;
    parties.set(who, party);
    const begun = Promise.withResolvers<void>();
    line.waiting.push(begun.resolve);
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
        leave();
        beginMore();
      }
    });
    beginMore();
    if (!signal) return done;
    done.catch(() => undefined);
    return unlessAborted(done, signal).finally(() => {
      const at = line.waiting.indexOf(begun.resolve);
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

/** Returns the line of a party from which work may start: its own comes before that of strangers. */
function nextLine(party: Party, share: number): Line | undefined {
  const { own, strangers } = party;
  const has_room = heldBy(party) < share;
  if (own.waiting.length > 0) return has_room || own.running === 0 ? own : undefined;
  return strangers.waiting.length > 0 && has_room ? strangers : undefined;
}
