import { join } from "node:path";
import { parseArgs } from "node:util";
import { letDaysPass, measureFolder, opened, type Share, sumOf } from "./data-folder.ts";
import { deliver, mailOf, mailWithFile, startRelay } from "./smtp-peers.ts";
import {
  type Account,
  type Build,
  call,
  createAccount,
  createInbox,
  hasBinary,
  median,
  percentile,
  printSettings,
  residentMb,
  SENDER,
  short,
  startScript,
  startServer,
} from "./support.ts";

/**
 * Whether the server is the same after many mails as after few: `bun bench/endure.ts --mails 100000`. Each mail goes
 * the whole way: taken over SMTP, stored, answered by a model at once, signed, handed to a relay. Every tenth goes to an
 * account that is deleted while the next mails come in. Then weeks go by, each with a tenth of mails, in which much is
 * deleted: what of the disk is taken at their end, and what of that is needed?
 */
const { values } = parseArgs({
  options: {
    mails: { type: "string", default: "100000" },
    clients: { type: "string", default: "20" },
    bytes: { type: "string", default: "4096" },
    // One of so many mails has a file, of up to 240 KB.
    file_every: { type: "string", default: "10" },
    // In a second, at most: how much memory is in use at once depends on how much is done at once.
    rate: { type: "string", default: "100" },
    build: { type: "string", default: hasBinary() ? "binary" : "source" },
  },
});
const MAILS = Number(values.mails);
const CLIENTS = Number(values.clients);
const BYTES = Number(values.bytes);
const FILE_EVERY = Number(values.file_every);
const RATE = Number(values.rate);
const TENTHS = 10;
/** Code is compiled and caches are filled meanwhile; what memory grows by then is not counted. */
const WARM_UP = Math.max(1_000, Math.floor(MAILS / TENTHS));
const SAMPLE_MS = 200;
/** Nothing is sent meanwhile: what is still in use at its end is kept, not just not collected yet. */
const REST_MS = 6_000;
const IDLE_MS = 300_000;
const MAX_GROWTH = 1.1;
/** So many mails go to accounts that are deleted, and to inboxes that are, or that keep nothing for longer than a day. */
const LEAVING_EVERY = 10;
const CLOSED_EVERY = 10;
const FORGETFUL_EVERY = 5;
const WEEKS = 5;
/** More than mails are kept as they came in, and in five times more than files are. */
const WEEK_DAYS = 8;
const MAX_DISK = 1.2;
/** The most sweeps there are: each moves some of what lies among holes, until one changes next to nothing. */
const MAX_HOURS = 24;
const STILL = 0.99;
/** Files of all sizes, from what just lies beside the database. */
const [MIN_FILE, FILE_SIZES, FILE_STEP] = [14_000, 97, 2_333];
const NOISE = crypto.getRandomValues(Buffer.alloc(65_536));
const FILE = Buffer.concat(Array.from({ length: 4 }, () => NOISE));

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
const settings = { build, model_url: `http://127.0.0.1:${model.port}/v1`, relay_port: relay.port };
let server = await startServer(settings);
await using _server = { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
const { api_key, address } = await createAccount(server);
const closed = await createInbox(server, api_key, {});
const forgetful = await createInbox(server, api_key, { retention_days: 1 });
let leaving = await newLeaver();
let gone = 0;
let isClosed = false;
printSettings({
  build,
  mails: MAILS,
  warm_up: WARM_UP,
  clients: CLIENTS,
  bytes: BYTES,
  file_every: FILE_EVERY,
  rate: RATE,
});

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
const [early, late] = [tenths[0], tenths.at(-1)] as [Tenth, Tenth];
// One tenth alone may end just before a collection, or just after it.
const atRest = (of: Tenth[]): number => median(of.map(({ at_rest_mb }) => at_rest_mb));
const growth = atRest(tenths.slice(-3)) / atRest(tenths.slice(0, 3));
const disk = await weeks();
console.log(
  `\nmemory at rest, last three tenths against the first three   <= ${MAX_GROWTH}   ${growth.toFixed(3)} x`,
);
console.log(`p99, last tenth against first   ${(late.p99 / early.p99).toFixed(2)} x`);
console.log(`disk taken, against what is needed   <= ${MAX_DISK}   ${disk.toFixed(3)} x`);
console.log(
  `${serial} mails in all: ${faults.length === 0 ? "none lost, none doubled, nothing left over" : ""}`,
);
for (const fault of faults) console.log(`  FAULT: ${fault}`);
process.exitCode = faults.length > 0 || growth > MAX_GROWTH || disk > MAX_DISK ? 1 : 0;

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
  const memory: number[] = [];
  const sampling = setInterval(() => memory.push(residentMb(server.pid)), SAMPLE_MS);
  const times = await send(mails);
  clearInterval(sampling);
  const rate = mails / ((performance.now() - started) / 1_000);
  await Bun.sleep(REST_MS);
  const at_rest_mb = residentMb(server.pid);
  await leave();
  return {
    mails,
    rate,
    at_rest_mb,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    memory_mb: median(memory),
  };
}

/** Returns how many milliseconds each took until its answer was there. */
async function send(mails: number): Promise<number[]> {
  const started = performance.now();
  const times: number[] = [];
  let begun = 0;
  const client = async (): Promise<void> => {
    while (begun < mails) {
      const early_ms = started + (begun++ * 1_000) / RATE - performance.now();
      if (early_ms > 0) await Bun.sleep(early_ms);
      times.push(await answerTime());
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return times;
}

async function answerTime(): Promise<number> {
  const name = `endure-${++serial}`;
  const mail: Handed = { times: 0 };
  handed.set(name, mail);
  const arrived = new Promise<void>((resolve) => (mail.arrived = resolve));
  const size = MIN_FILE + (serial % FILE_SIZES) * FILE_STEP;
  const text =
    serial % FILE_EVERY === 0 ? mailWithFile(name, BYTES, FILE.subarray(0, size)) : mailOf(name, BYTES);
  const to = nextAddress();
  const started = performance.now();
  await deliver(server.smtp_port, to, text);
  await arrived;
  return performance.now() - started;
}

/** Who a mail is for does not go with whether it has a file. */
function nextAddress(): string {
  const number = Math.floor(serial / FILE_EVERY) + serial;
  if (number % LEAVING_EVERY === 1) {
    leaving.mails += 1;
    return leaving.address;
  }
  if (number % CLOSED_EVERY === 2 && !isClosed) return closed.address;
  return number % FORGETFUL_EVERY === 3 ? forgetful.address : address;
}

interface Leaver extends Account {
  email: string;
  mails: number;
}

async function newLeaver(): Promise<Leaver> {
  const email = `leaver-${Bun.randomUUIDv7()}@client.example`;
  return { ...(await createAccount(server, email)), email, mails: 0 };
}

/** Deletes the account of a tenth, whose rows and bytes are erased while the next mails come in. */
async function leave(): Promise<void> {
  gone += leaving.mails;
  const { email: confirm, api_key: key } = leaving;
  await call(server, key, { method: "DELETE", path: "/auth/account", body: { confirm } });
  leaving = await newLeaver();
}

/** What is wrong about what was answered and what is stored, once nothing is left to do. */
async function accounts(): Promise<string[]> {
  await untilIdle(0);
  using database = opened(databasePath());
  const one = (text: string): number => database.sqlite.prepare(text).pluck().get() as number;
  const own = `user_id = (select id from users where email = '${SENDER}')`;
  const stay = serial - gone;
  const answers = [...handed.values()].map(({ times }) => times);
  const counts: [string, number, number][] = [
    ["mails answered exactly once", answers.filter((times) => times === 1).length, serial],
    ["messages done", one(`select count(*) from messages where state = 'done' and ${own}`), stay],
    ["messages", one(`select count(*) from messages where ${own}`), stay],
    ["replies sent", one(`select count(*) from outgoing_mails where status = 'sent' and ${own}`), stay],
    ["settlements", one(`select count(*) from ledger where kind = 'settle' and ${own}`), stay],
    ["jobs left over", one(leftAfter(0)), 0],
  ];
  return counts
    .filter(([, found, expected]) => found !== expected)
    .map(([what, found, expected]) => `${what}: ${found} in place of ${expected}`);
}

/** Returns what is taken of the disk in the end, as a multiple of what is needed. */
async function weeks(): Promise<number> {
  console.log(
    `\nMB taken/needed            database       log             mails     rest               all    ratio`,
  );
  showDisk("tenths");
  await call(server, api_key, { method: "DELETE", path: `/inboxes/${closed.id}` });
  isClosed = true;
  for (let week = 1; week <= WEEKS; week += 1) {
    await restart(week * WEEK_DAYS);
    await send(Math.round(MAILS / TENTHS));
    await leave();
    await untilIdle(week * WEEK_DAYS);
    showDisk(`week ${week}`);
  }
  let taken = Number.POSITIVE_INFINITY;
  for (let hour = 1; hour <= MAX_HOURS; hour += 1) {
    await restart(WEEKS * WEEK_DAYS);
    await untilIdle(WEEKS * WEEK_DAYS);
    const { disk: now, live } = showDisk(`hour ${hour}`);
    if (now > taken * STILL || hour === MAX_HOURS) return now / live;
    taken = now;
  }
  return Number.NaN;
}

/** Begins anew on the same folder, so many days after the first start. */
async function restart(days: number): Promise<void> {
  await server.drain();
  letDaysPass(dataPath(), days);
  server = await startServer({ ...settings, dir: server.dir });
}

async function untilIdle(days: number): Promise<void> {
  using database = opened(databasePath());
  const left = database.sqlite.prepare(leftAfter(days)).pluck();
  const deadline = performance.now() + IDLE_MS;
  while (left.get() !== 0 && performance.now() < deadline) await Bun.sleep(100);
}

function leftAfter(days: number): string {
  return `select count(*) from jobs where status <> 'pending' or run_at <= unixepoch() + ${days * 86_400}`;
}

function dataPath(): string {
  return join(server.dir, "data");
}

function databasePath(): string {
  return join(dataPath(), "mailwright.db");
}

function showDisk(name: string): Share {
  const { database, log, mail, rest } = measureFolder(dataPath());
  const all = sumOf({ database, log, mail, rest });
  const mb = (bytes: number): string => (bytes / 1_048_576).toFixed(1);
  const both = ({ disk: taken, live }: Share): string => `${mb(taken)}/${mb(live)}`.padStart(18);
  const one = ({ disk: taken }: Share): string => mb(taken).padStart(10);
  const cells = [
    both(database),
    one(log),
    both(mail),
    one(rest),
    both(all),
    (all.disk / all.live).toFixed(3).padStart(9),
  ];
  console.log(`${name.padEnd(16)}${cells.join("")}`);
  return all;
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
