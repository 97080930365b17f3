import { AppError } from "../../errors.ts";
import { createFairTurns } from "../../lib/fair-turns.ts";
import { networksAround } from "../../net/networks.ts";

/** OWASP's choice for argon2id: 19 MiB, two passes. */
const HASHING = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** Passwords of one provider's network that wait for their turn: a few seconds of work. */
const MAX_WAITING = 100;
const CROWDED_RETRY_SECONDS = 10;

/**
 * Hashing works on the threads of the process that also read files and look up names: of two, one is left to them. Networks take turns,
 * so that whoever tries many passwords holds up only those who are near.
 */
const inTurn = createFairTurns(1);
const waiting = new Map<string, number>();

/** Returns the hash of a password. `client` is the address that sent it, "" for the command line. */
export function hashPassword(text: string, client: string): Promise<string> {
  return alone(client, () => Bun.password.hash(text, HASHING));
}

/** Whether a password has this hash. Throws `unavailable` where too many wait already. */
export function hasHash(text: string, hash: string, client: string): Promise<boolean> {
  return alone(client, () => Bun.password.verify(text, hash));
}

async function alone<T>(client: string, work: () => Promise<T>): Promise<T> {
  const [who = ""] = networksAround(client);
  const count = waiting.get(who) ?? 0;
  if (count >= MAX_WAITING)
    throw new AppError("unavailable", "Too many passwords are being compared at once.", {
      fix: `Send it again in ${CROWDED_RETRY_SECONDS} seconds, or sign in with a code.`,
      retry_after_seconds: CROWDED_RETRY_SECONDS,
    });
  waiting.set(who, count + 1);
  try {
    return await inTurn({ who }, work);
  } finally {
    const left = (waiting.get(who) ?? 1) - 1;
    if (left === 0) waiting.delete(who);
    else waiting.set(who, left);
  }
}
