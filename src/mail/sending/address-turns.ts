import { groupOf, type Share } from "../../jobs/queue.ts";
import { createUses, hasRoom, type Room, type Use, type Uses } from "../../jobs/shares.ts";
import { createFairTurns, type FairTurns } from "../../lib/fair-turns.ts";
import { waitLimit } from "../../lib/wait-limit.ts";
import type { MailError } from "./send-outcome.ts";

export const NO_TURN: MailError = new Error("it has many other mails from here to take first");

/** How often a mail without a place checks for one, in case it was not told. */
const LOOK_AGAIN_MS = 30_000;

/** A mail that waits for a turn: the server's address, its account, and until when it may wait (Unix milliseconds). */
interface Guest {
  address: string;
  share: Share | null;
  deadline: number;
}

/** The answer when too many mails wait for the address; `room` resolves once another may wait there. */
export interface Crowded {
  room: Promise<void>;
}

/**
 * Runs `work` with a mail server when it is the account's turn at its address. Rejects with NO_TURN when the turn would
 * come after the deadline. Resolves with `Crowded` at once when there is no room to wait, so that the job can let other
 * mails go first.
 */
export type AddressTurns = <T>(guest: Guest, work: () => Promise<T>) => Promise<T | Crowded>;

/** The state of one address. */
interface Desk {
  /** Mails that have their turn or wait for it. */
  guests: Uses;
  turns: FairTurns;
  /** Turns within a group of accounts (such as all strangers), by group: the group has one turn among the accounts. */
  among: Map<string, FairTurns>;
  /** Mails without room to wait, each with a function that tells it of room. */
  outside: Map<() => void, Use>;
}

/**
 * Creates turns: each address has `size` at once, and room for as many waiting mails. Accounts share both as they share
 * the slots of a worker pool, and so do the accounts of a group with the group's part.
 */
export function createAddressTurns(size: number): AddressTurns {
  const desks = new Map<string, Desk>();
  const room: Room = { slots: 2 * size, bytes: Infinity, target_slots: Infinity };
  const mayEnter = (use: Use, uses: Uses): boolean => {
    const { jobs } = uses.all();
    return hasRoom(use, { uses, room, free: room.slots - jobs });
  };
  const newDesk = (): Desk => ({
    guests: createUses(),
    turns: createFairTurns(size),
    among: new Map(),
    outside: new Map(),
  });

  const callIn = ({ guests, outside }: Desk): void => {
    const expected = guests.fork();
    for (const [call, use] of outside) {
      if (!mayEnter(use, expected)) continue;
      expected.add(use);
      call();
    }
  };

  const outsideOf = ({ outside }: Desk, use: Use): Crowded => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const call = (): void => {
      clearTimeout(timer);
      outside.delete(call);
      resolve();
    };
    const timer = setTimeout(call, LOOK_AGAIN_MS);
    timer.unref();
    outside.set(call, use);
    return { room: promise };
  };

  return async ({ address, share, deadline }, work) => {
    const desk = desks.get(address) ?? newDesk();
    const use: Use = { share: share ?? NOBODY, weight: 0, target: null };
    if (share && !mayEnter(use, desk.guests)) return outsideOf(desk, use);
    desks.set(address, desk);
    desk.guests.add(use);
    try {
      return await inTurn(desk, { account: use.share?.account ?? "", deadline, size }, work);
    } finally {
      desk.guests.remove(use);
      callIn(desk);
      if (desk.guests.all().jobs === 0) desks.delete(address);
    }
  };
}

async function inTurn<T>(
  { turns, among }: Desk,
  { account, deadline, size }: { account: string; deadline: number; size: number },
  work: () => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = waitLimit(Math.max(0, deadline - Date.now()), () => late.abort(NO_TURN));
  const begin = () => {
    timer.clear();
    return work();
  };
  const { signal } = late;
  const group = groupOf(account);
  try {
    if (group === null) return await turns({ who: account, signal }, begin);
    const members = among.get(group) ?? createFairTurns(size / 2);
    among.set(group, members);
    return await members({ who: account, signal }, () => turns({ who: group, signal }, begin));
  } finally {
    timer.clear();
  }
}

/** The share of all mails without one. */
const NOBODY: Share = { account: "", slots: null };
