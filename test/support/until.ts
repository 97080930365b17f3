/** How long most things are waited for: less than a test may take, so that the reason is told. */
const PATIENCE_MS = 45_000;

/**
 * Resolves once `isSo` holds, for what tells nothing when it is done: it is asked again and again. Throws after `ms`, with
 * what `explain` says of how it stands.
 */
export async function until(
  isSo: () => unknown,
  ms = PATIENCE_MS,
  explain: () => string | Promise<string> = () => String(isSo),
): Promise<void> {
  const deadline = performance.now() + ms;
  let pause_ms = 1;
  while (!(await isSo())) {
    if (performance.now() > deadline)
      throw new Error(`This did not come true within ${ms} ms.\n${await explain()}`);
    await Bun.sleep(pause_ms);
    pause_ms = Math.min(20, pause_ms * 2);
  }
}
