import { createFairTurns } from "./fair-turns.ts";

/** Pieces of one party that may be in hand at once where they take long. */
export const MAX_IN_HAND = 64;
/** From here on a piece takes long. */
const LONG_MS = 2;
/** After so much work others get in; to look for them costs some microseconds. */
const STRETCH_MS = 2;
/** Pieces by which a party is judged: one alone may have taken long because the machine was busy with something else. */
const JUDGED_BY = 5;
/** Parties of which is kept how long their pieces take, beside those that have some in hand. */
const MAX_KNOWN = 10_000;

/**
 * Begins a piece of work of `who`, or resolves when it may begin, to what is to be called at its end. Undefined where 64 of
 * theirs are in hand, and they take long.
 */
export type PacedTurns = (who: string) => (() => void) | Promise<() => void> | undefined;

interface Party {
  in_hand: number;
  /** How long its last pieces took. */
  took_ms: number[];
}

interface Piece {
  who: string;
  party: Party;
  began: number;
  ended: boolean;
  /** Whether it passes the turn on once the event loop has turned, at the latest. */
  passing: boolean;
  /** What those behind it wait for. */
  turn: PromiseWithResolvers<void> | undefined;
}

/**
 * For work that this thread does itself, of parties that may bring a lot of it at once. Everybody's is done in turn, and
 * after each piece that takes long, or many that do not, the event loop turns, so that whatever else came meanwhile gets
 * in. A piece that waits for something keeps nobody from beginning. One that comes alone waits for nothing.
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
      // Until its end is there nobody knows how long it takes.
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
      // One that came alone has not been in the queue, which is to know of it from now on.
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

/** What everybody has in hand. */
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
