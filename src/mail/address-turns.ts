import { groupOf } from "../jobs/queue.ts";
import { createFairTurns, type FairTurns } from "../lib/fair-turns.ts";
import { waitLimit } from "../lib/wait-limit.ts";
import type { MailError } from "./send-outcome.ts";

export const NO_TURN: MailError = new Error("it has many other mails from here to take first");

/** Whose mail is to go where, and until when it may wait (milliseconds since the epoch). */
interface Guest {
  address: string;
  account: string;
  deadline: number;
}

/** Does a piece of work with a mail server once it is the account's turn there; rejects with NO_TURN when it came too late. */
export type AddressTurns = <T>(guest: Guest, work: () => Promise<T>) => Promise<T>;

interface Desk {
  /** Those who have their turn, or wait for it. */
  guests: number;
  turns: FairTurns;
  /** For the part that a group of accounts gets as one. */
  among: Map<string, FairTurns>;
}

/** `size` at once at each address, which all accounts share as in `createFairTurns`, and those of a group its part likewise. */
export function createAddressTurns(size: number): AddressTurns {
  const desks = new Map<string, Desk>();
  return async ({ address, account, deadline }, work) => {
    const desk = desks.get(address) ?? { guests: 0, turns: createFairTurns(size), among: new Map() };
    desks.set(address, desk);
    desk.guests += 1;
    const late = new AbortController();
    const timer = waitLimit(Math.max(0, deadline - Date.now()), () => late.abort(NO_TURN));
    const begin = () => {
      timer.clear();
      return work();
    };
    const { signal } = late;
    const group = groupOf(account);
    try {
      if (group === null) return await desk.turns({ who: account, signal }, begin);
      const among = desk.among.get(group) ?? createFairTurns(size / 2);
      desk.among.set(group, among);
      return await among({ who: account, signal }, () => desk.turns({ who: group, signal }, begin));
    } finally {
      timer.clear();
      desk.guests -= 1;
      if (desk.guests === 0) desks.delete(address);
    }
  };
}
