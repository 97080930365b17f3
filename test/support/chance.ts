/** What an environment variable says, or any number; said on the console, so that a failed run can be had again. */
export function seedFrom(variable: string, what: string): number {
  const given = process.env[variable];
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`${variable} has to be a whole number.`);
  console.log(`${what}: ${variable}=${seed}`);
  return seed;
}

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function chanceFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
