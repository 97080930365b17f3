/**
 * Runs `bun run test`. Its last words are what this machine could not run, what would have it run, and the reason of
 * each test that failed: who sees only the end of a long log learns them.
 */
import { freemem } from "node:os";
import { join } from "node:path";

const ASKS = /apt-get install (?:--no-install-recommends )?([a-z0-9][a-z0-9+. -]*)/g;

const REPORT_LINES = 40;
const LINE_LENGTH = 300;

/** Four processes that give no memory back hold up to 1.6 GB each; beside them are servers, browsers and a disk in memory. */
const ROOM_BYTES = 12 * 1024 ** 3;

/** Giving every free page back at once takes a fifth of a run's time. */
const KEEPS_MEMORY = { MIMALLOC_PURGE_DELAY: "-1" };
/**
 * Most code of a test is run a few times: compiling it for the long run, and collecting garbage by the clock, take a
 * tenth of a run's time. `test/support/runtime.ts` takes all this away from what tests start.
 */
const SHORT_LIVED = {
  BUN_GC_TIMER_DISABLE: "1",
  BUN_JSC_thresholdForOptimizeAfterWarmUp: "8000",
  BUN_JSC_thresholdForOptimizeAfterLongWarmUp: "8000",
};

const tests = Bun.spawn([process.execPath, "run", "test"], {
  cwd: join(import.meta.dir, ".."),
  env: { ...process.env, ...SHORT_LIVED, ...(freemem() >= ROOM_BYTES ? KEEPS_MEMORY : {}) },
  stdio: ["inherit", "pipe", "pipe"],
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => tests.kill(signal));
const [out, said] = await Promise.all([
  pass(tests.stdout, process.stdout),
  pass(tests.stderr, process.stderr),
]);
const text = `${out}\n${said}`;
const skipped = /^ *(\d+) skip$/m.exec(text)?.[1] ?? "0";
const packages = [...text.matchAll(ASKS)].flatMap(([, names = ""]) => names.trim().split(/\s+/));
const missing = [...new Set(packages)].toSorted();
if (skipped !== "0") {
  const names = Array.from(text.matchAll(/^\(skip\) (.+)$/gm), ([, name = ""]) => name);
  const lines = [
    "",
    `Skipped: ${skipped} that this machine cannot run.`,
    ...(missing.length > 0
      ? [`Most of them run after: apt-get install --no-install-recommends ${missing.join(" ")}`]
      : []),
    ...[...new Set(names)].slice(0, 10).map((name) => `  ${name}`),
    "",
  ];
  await written(process.stdout, lines.join("\n"));
}
for (const words of failureReports(said)) await written(process.stdout, `\n${words}\n`);
process.exit(await tests.exited);

/**
 * Returns what stands above the `(fail)` line of each test, from the name of its file on: the end of it, where it is
 * long. A hook that failed has no name but that of its file.
 */
function failureReports(log: string): string[] {
  const reports: string[] = [];
  let file = "";
  let lines: string[] = [];
  for (const line of log.split("\n")) {
    // The runner names all that failed once more at its end.
    if (/^\d+ tests? failed:$/.test(line)) break;
    if (line.startsWith("(fail) ")) reports.push([file, ...lines.slice(-REPORT_LINES), line].join("\n"));
    if (/^test\/\S+:$/.test(line)) file = line;
    else if (/^\((?:pass|fail|skip|todo)\) /.test(line)) lines = [];
    else lines.push(line.slice(0, LINE_LENGTH));
  }
  return reports;
}

/** Hands everything on as it comes, and returns it. */
async function pass(from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream): Promise<string> {
  const decoder = new TextDecoder();
  let all = "";
  for await (const bytes of from) {
    await written(to, bytes);
    all += decoder.decode(bytes, { stream: true });
  }
  return all;
}

function written(to: NodeJS.WriteStream, what: Uint8Array | string): Promise<void> {
  return new Promise((resolve) => {
    to.write(what, () => resolve());
  });
}
