import { join } from "node:path";
import { parseArgs } from "node:util";
import Sqlite from "better-sqlite3";
import { deliver, mailOf, startRelay } from "./smtp-peers.ts";
import {
  type Build,
  createAccount,
  hasBinary,
  median,
  percentile,
  printSettings,
  residentMb,
  short,
  startScript,
  startServer,
} from "./support.ts";

/**
 * Whether the server is the same after many mails as after few: `bun bench/endure.ts --mails 100000`. Each mail goes
 * the whole way: taken over SMTP, stored, answered by a model at once, signed, handed to a relay.
 */
const { values } = parseArgs({
  options: {
    mails: { type: "string", default: "100000" },
    clients: { type: "string", default: "20" },
    bytes: { type: "string", default: "4096" },
    // In a second, at most: how much memory is in use at once depends on how much is done at once.
    rate: { type: "string", default: "100" },
    build: { type: "string", default: hasBinary() ? "binary" : "source" },
  },
});
const MAILS = Number(values.mails);
const CLIENTS = Number(values.clients);
const BYTES = Number(values.bytes);
const RATE = Number(values.rate);
const TENTHS = 10;
/** Code is compiled and caches are filled meanwhile; what memory grows by then is not counted. */
const WARM_UP = Math.max(1_000, Math.floor(MAILS / TENTHS));
const SAMPLE_MS = 200;
/** Nothing is sent meanwhile: what is still in use at its end is kept, not just not collected yet. */
const REST_MS = 6_000;
const IDLE_MS = 60_000;
const MAX_GROWTH = 1.1;

interface Handed {
  times: number;
  arrived?: () => void;
}

const handed = new Map<string, Handed>();
await using model = await startScript("instant-model.ts");
await using relay = await startRelay((name) => {
  const known = handed.get(name);
  if (!known) return;
  known.times += 1;
  known.arrived?.();
});
const build = values.build as Build;
await using server = await startServer({
  build,
  model_url: `http://127.0.0.1:${model.port}/v1`,
  relay_port: relay.port,
});
const { address } = await createAccount(server);
printSettings({ build, mails: MAILS, warm_up: WARM_UP, clients: CLIENTS, bytes: BYTES, rate: RATE });

let serial = 0;
const warm = await tenth(WARM_UP);
console.log(`\n${"".padEnd(10)}       mails          /s      p50 ms      p99 ms  MB meanwhile  MB at rest`);
show("warm-up", warm);
const tenths: Tenth[] = [];
for (let index = 0; index < TENTHS; index += 1) {
  tenths.push(await tenth(Math.round(MAILS / TENTHS)));
  show(`tenth ${index + 1}`, tenths[index] as Tenth);
}
const faults = await accounts();
const [first, last] = [tenths[0], tenths.at(-1)] as [Tenth, Tenth];
// One tenth alone may end just before a collection, or just after it.
const atRest = (of: Tenth[]): number => median(of.map(({ at_rest_mb }) => at_rest_mb));
const growth = atRest(tenths.slice(-3)) / atRest(tenths.slice(0, 3));
console.log(
  `\nmemory at rest, last three tenths against the first three   <= ${MAX_GROWTH}   ${growth.toFixed(3)} x`,
);
console.log(`p99, last tenth against first   ${(last.p99 / first.p99).toFixed(2)} x`);
console.log(
  `${serial} mails in all: ${faults.length === 0 ? "none lost, none doubled, nothing left over" : ""}`,
);
for (const fault of faults) console.log(`  FAULT: ${fault}`);
process.exitCode = faults.length > 0 || growth > MAX_GROWTH ? 1 : 0;

interface Tenth {
  mails: number;
  rate: number;
  p50: number;
  p99: number;
  memory_mb: number;
  at_rest_mb: number;
}

/** Sends so many mails, each client the next one when the last one's answer is there. */
async function tenth(mails: number): Promise<Tenth> {
  const started = performance.now();
  const times: number[] = [];
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(residentMb(server.pid)), SAMPLE_MS);
  let begun = 0;
  const client = async (): Promise<void> => {
    while (begun < mails) {
      const early_ms = started + (begun++ * 1_000) / RATE - performance.now();
      if (early_ms > 0) await Bun.sleep(early_ms);
      times.push(await answerTime());
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  clearInterval(sampling);
  const rate = mails / ((performance.now() - started) / 1_000);
  await Bun.sleep(REST_MS);
  return {
    mails,
    rate,
    at_rest_mb: residentMb(server.pid),
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    memory_mb: median(memory),
  };
}

async function answerTime(): Promise<number> {
  const name = `endure-${++serial}`;
  const mail: Handed = { times: 0 };
  handed.set(name, mail);
  const arrived = new Promise<void>((resolve) => (mail.arrived = resolve));
  const started = performance.now();
  await deliver(server.smtp_port, address, mailOf(name, BYTES));
  await arrived;
  return performance.now() - started;
}

/** What is wrong about what was answered and what is stored, once nothing is left to do. */
async function accounts(): Promise<string[]> {
  using database = opened();
  const one = (text: string): number => database.sqlite.prepare(text).pluck().get() as number;
  const left = "select count(*) from jobs where status <> 'pending' or run_at <= unixepoch()";
  const deadline = performance.now() + IDLE_MS;
  while (one(left) > 0 && performance.now() < deadline) await Bun.sleep(100);
  const answers = [...handed.values()].map(({ times }) => times);
  const counts: [string, number, number][] = [
    ["mails answered exactly once", answers.filter((times) => times === 1).length, serial],
    ["messages done", one("select count(*) from messages where state = 'done'"), serial],
    ["messages", one("select count(*) from messages"), serial],
    ["replies sent", one("select count(*) from outgoing_mails where status = 'sent'"), serial],
    ["settlements", one("select count(*) from ledger where kind = 'settle'"), serial],
    ["jobs left over", one(left), 0],
  ];
  return counts
    .filter(([, found, expected]) => found !== expected)
    .map(([what, found, expected]) => `${what}: ${found} in place of ${expected}`);
}

function opened(): { sqlite: Sqlite.Database } & Disposable {
  const sqlite = new Sqlite(join(server.dir, "data/mailwright.db"), { readonly: true });
  return { sqlite, [Symbol.dispose]: () => void sqlite.close() };
}

function show(name: string, { mails, rate, p50, p99, memory_mb, at_rest_mb }: Tenth): void {
  const cells = [
    mails.toString(),
    short(rate),
    short(p50),
    short(p99),
    memory_mb.toFixed(1),
    at_rest_mb.toFixed(1),
  ];
  console.log(`${name.padEnd(10)}${cells.map((cell) => cell.padStart(12)).join("")}`);
}
