/** From which part of a processor's time on the process does something else. */
const BUSY = 0.25;

/** Rests, and returns whether this process did something else meanwhile, on any of its threads. */
export async function restBusy(rest: () => Promise<unknown>): Promise<boolean> {
  const used = process.cpuUsage();
  const began = performance.now();
  await rest();
  const { user, system } = process.cpuUsage(used);
  return user + system > BUSY * 1_000 * (performance.now() - began);
}
