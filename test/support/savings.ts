/**
 * What a server does once costs a run of thousands of servers a third of its time: Elysia collects the garbage of the
 * whole process at the first request of each, and a password is made slow to guess.
 */
const { hash } = Bun.password;
const CHEAPEST = { memoryCost: 8, timeCost: 1 };

const cheapHash: typeof hash = (password, algorithm) =>
  hash(password, typeof algorithm === "object" ? { ...algorithm, ...CHEAPEST } : algorithm);

Object.assign(Bun, { gc: () => 0 });
Object.assign(Bun.password, { hash: cheapHash });

/** Passwords are hashed as for people until the end of the block. */
export function fullHashing(): Disposable {
  Object.assign(Bun.password, { hash });
  return { [Symbol.dispose]: () => void Object.assign(Bun.password, { hash: cheapHash }) };
}
