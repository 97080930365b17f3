import {
  type Build,
  hasBinary,
  noteFigure,
  roundsOf,
  printResults,
  printSettings,
  residentMb,
  startServer,
} from "./support.ts";

/** From the start of the process to the line that says ready, on a data folder that is there; and memory when idle. */
const STARTS = roundsOf(9);
const IDLE_MS = 5_000;

const builds: Build[] = hasBinary() ? ["source", "binary"] : ["source"];
printSettings({
  starts: STARTS,
  memory: `resident, ${IDLE_MS / 1_000} s after the start, nothing asked of it`,
});
if (!hasBinary())
  console.log("There is no dist/mailwright (bun run build makes it), so only the source is measured.");

const ready: Record<Build, number[]> = { source: [], binary: [] };
const idle: Record<Build, number[]> = { source: [], binary: [] };
// The first start makes the keys and the certificate, which is not what is measured here.
await using first = await startServer();
await first.stop();
for (let round = 0; round < STARTS; round++) {
  for (const build of builds) {
    const server = await startServer({ build, dir: first.dir });
    ready[build].push(server.ready_ms);
    if (round < 3) {
      await Bun.sleep(IDLE_MS);
      idle[build].push(residentMb(server.pid));
    }
    await server.stop();
  }
}
for (const build of builds) {
  noteFigure(`second start to ready, ${build}`, ready[build], "ms");
  noteFigure(`idle memory, ${build}`, idle[build], "MB");
}
printResults();
