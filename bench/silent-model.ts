/** A model that takes every question and answers none: what asks it waits, and uses no CPU. */
export function createSilentModel(): AsyncDisposable & { url: string } {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () => new Promise<never>(() => undefined),
  });
  return { url: `http://127.0.0.1:${server.port}/v1`, [Symbol.asyncDispose]: () => server.stop(true) };
}
