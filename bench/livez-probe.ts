import { setTimeout as sleep } from "node:timers/promises";

/** Asks `/livez` of a server again and again from a process of its own. Prints its port; `GET /` gives how long it took. */
const [target = ""] = process.argv.slice(2);
const EVERY_MS = 20;
const times: number[] = [];
let failed = 0;

const probe = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => Response.json({ times, failed }),
});
console.log(probe.port);

for (;;) {
  const started = performance.now();
  const answer = await fetch(`${target}/livez`).catch(() => undefined);
  if (answer?.ok !== true) failed += 1;
  await answer?.arrayBuffer();
  times.push(performance.now() - started);
  await sleep(EVERY_MS);
}
