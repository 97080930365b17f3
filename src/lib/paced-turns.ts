import { createFairTurns } from "./fair-turns.ts";

/** How many requests of one party may be in progress at once when they take long. */
export const MAX_IN_HAND = 64;
/** A request that keeps the thread busy for longer than this takes long. */
const LONG_MS = 2;
/** After this much work the event loop turns; doing so costs some microseconds. */
const STRETCH_MS = 2;
/** How many recent requests a party is judged by: a single one may have been slow because the machine was busy. */
const JUDGED_BY = 5;
/** How many parties without requests in progress are remembered with their times. */
const MAX_KNOWN = 10_000;

/**
 * Starts a request of `who` at once, or resolves when it may start, with a function to call at its end. Returns
 * undefined when 64 of the party's requests are in progress and they take long.
 */
export type PacedTurns = (who: string) => (() => void) | Promise<() => void> | undefined;

interface Party {
  in_hand: number;
  /** How long its last requests took. */
  took_ms: number[];
}

interface Piece {
  who: string;
  party: Party;
  began: number;
  ended: boolean;
  /** Whether it passes the turn on when the event loop turns, at the latest. */
  passing: boolean;
  /** What the requests behind it wait for. */
  turn: PromiseWithResolvers<void> | undefined;
}

/**
 * Paces work that blocks this thread, for parties that may bring a lot of it at once. Parties take turns. After each
 * request that takes long, or several that do not, the event loop turns, so that everything else is served. A request
 * that is waiting itself lets others start, and one that comes alone waits for nothing.
 */
export function createPacedTurns(nowMs: () => number = performance.now.bind(performance)): PacedTurns {
  const inTurn = createFairTurns(1);
  const parties = createParties();
  let current: Piece | undefined;
  let waiting = 0;
  let worked_ms = 0;

  const begin = (who: string, party: Party): Piece => {
    current = { who, party, began: nowMs(), ended: false, passing: false, turn: undefined };
    return current;
  };

  const passOn = (piece: Piece): void => {
    if (current === piece) current = undefined;
    piece.turn?.resolve();
  };

  const passOnLater = (piece: Piece): void => {
    if (piece.passing) return;
    piece.passing = true;
    setImmediate(() => {
      worked_ms = 0;
      // A request is taken as long until its end shows otherwise.
      if (!piece.ended) note(piece.party, LONG_MS);
      passOn(piece);
    });
  };

  const end = (piece: Piece): void => {
    if (piece.ended) return;
    piece.ended = true;
    const took = nowMs() - piece.began;
    parties.giveBack(piece, took);
    if (current !== piece) return;
    worked_ms += took;
    if (worked_ms < STRETCH_MS) passOn(piece);
    else passOnLater(piece);
  };

  const waitBehind = (piece: Piece | undefined, who: string, party: Party): Promise<() => void> => {
    const begun = Promise.withResolvers<() => void>();
    waiting += 1;
    if (piece) {
      // A request that came alone started without queueing; from now on the queue has to know of it.
      if (!piece.turn) {
        const turn = takeTurn(piece);
        void inTurn({ who: piece.who }, () => turn);
      }
      passOnLater(piece);
    }
    void inTurn({ who }, () => {
      waiting -= 1;
      const mine = begin(who, party);
      if (waiting > 0) passOnLater(mine);
      begun.resolve(() => end(mine));
      return takeTurn(mine);
    });
    return begun.promise;
  };

  return (who) => {
    const party = parties.take(who);
    if (!party) return undefined;
    if (current || waiting > 0) return waitBehind(current, who, party);
    const piece = begin(who, party);
    return () => end(piece);
  };
}

function takeTurn(piece: Piece): Promise<void> {
  piece.turn ??= Promise.withResolvers<void>();
  return piece.turn.promise;
}

function note({ took_ms }: Party, ms: number): void {
  if (took_ms.push(ms) > JUDGED_BY) took_ms.shift();
}

function takesLong({ took_ms }: Party): boolean {
  return took_ms.filter((ms) => ms >= LONG_MS).length > JUDGED_BY / 2;
}

/** Keeps how many requests each party has in progress. */
function createParties() {
  const parties = new Map<string, Party>();
  return {
    take(who: string): Party | undefined {
      const party = parties.get(who) ?? { in_hand: 0, took_ms: [] };
      if (party.in_hand >= MAX_IN_HAND && takesLong(party)) return undefined;
      parties.set(who, party);
      party.in_hand += 1;
      return party;
    },
    giveBack({ who, party }: Piece, took_ms: number): void {
      party.in_hand -= 1;
      note(party, took_ms);
      if (party.in_hand === 0 && parties.size > MAX_KNOWN) parties.delete(who);
    },
  };
}
