import { type Subprocess, spawn } from "bun";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { FIGURES } from "./figures.ts";

const ROOT = new URL("..", import.meta.url).pathname;
const BINARY = join(ROOT, "dist/mailwright");
const READY_WITHIN_MS = 20_000;
/** Of `/proc/<pid>/stat`. */
const TICKS_PER_SECOND = 100;

export const DOMAIN = "bench.example";
export const SENDER = "ada@client.example";

/** `source` runs src/main.ts with this bun; `binary` runs dist/mailwright. */
export type Build = "source" | "binary";

export interface BenchServer extends AsyncDisposable {
  pid: number;
  dir: string;
  http: string;
  smtp_port: number;
  /** Wall-clock milliseconds from the start of the process to the line that says ready. */
  ready_ms: number;
  /** Ends it without a drain, leaving its data folder. */
  stop(): Promise<void>;
  /** Ends it as an operator does, leaving its data folder. */
  drain(): Promise<void>;
}

export interface ServerSettings {
  build?: Build;
  /** Where the default model connection goes; none without it. */
  model_url?: string;
  relay_port?: number;
  /** A data folder of an earlier server. */
  dir?: string;
  /** A file that is loaded in front of the server, and what it finds in its environment. */
  preload?: { path: string; env: Record<string, string> };
  /** More lines of TOML, at the end of the file. */
  more?: string;
}

export function hasBinary(): boolean {
  return existsSync(BINARY);
}

/** A real server process on free loopback ports, with a data folder of its own and every limit off. */
export async function startServer(settings: ServerSettings = {}): Promise<BenchServer> {
  const dir = settings.dir ?? temporaryFolder();
  writeFileSync(join(dir, "config.toml"), configOf(dir, settings));
  const started = performance.now();
  const child = spawn([...commandOf(settings), "serve", "--config", join(dir, "config.toml")], {
    cwd: dir,
    env: { ...process.env, ...settings.preload?.env },
    stdout: "pipe",
    stderr: "inherit",
  });
  const line = await lineWith(child, '"msg":"ready"');
  const ready_ms = performance.now() - started;
  const ready = JSON.parse(line) as { http: string; smtp: string };
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL");
    await child.exited;
  };
  return {
    pid: child.pid,
    dir,
    http: ready.http,
    smtp_port: Number(ready.smtp.split(":").at(-1)),
    ready_ms,
    stop,
    async drain() {
      child.kill("SIGTERM");
      await child.exited;
    },
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export interface Account {
  api_key: string;
  /** Mail to it is routed. */
  address: string;
}

/** An account with one inbox. Mail from SENDER has authority there, for it is the owner's or listed. */
export async function createAccount(server: BenchServer, email = SENDER): Promise<Account> {
  const user = spawn(
    [
      ...commandOf({}),
      "user",
      "create",
      email,
      "--api-key",
      "--json",
      "--config",
      join(server.dir, "config.toml"),
    ],
    { stdout: "pipe", stderr: "inherit" },
  );
  const { api_key } = (await new Response(user.stdout).json()) as { api_key: string };
  const { address } = await createInbox(
    server,
    api_key,
    email === SENDER ? {} : { allowlist_senders: [SENDER] },
  );
  return { api_key, address };
}

export async function createInbox(
  server: BenchServer,
  api_key: string,
  settings: object,
): Promise<{ id: string; address: string }> {
  const inbox = await call(server, api_key, {
    method: "POST",
    path: "/inboxes",
    body: { label: "Bench", ...settings },
  });
  return (await inbox.json()) as { id: string; address: string };
}

/** Throws what the server says where it refuses. */
export async function call(
  server: BenchServer,
  api_key: string,
  { method, path, body }: { method: string; path: string; body?: object },
): Promise<Response> {
  const answer = await fetch(`${server.http}${path}`, {
    method,
    headers: { "x-api-key": api_key, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  return answer;
}

/** A script of this folder in a process of its own; it prints its port as the first line. */
export async function startScript(
  name: string,
  ...args: string[]
): Promise<AsyncDisposable & { port: number }> {
  const child = spawn([process.execPath, join(ROOT, "bench", name), ...args], {
    stdout: "pipe",
    stderr: "inherit",
  });
  const port = Number(await lineWith(child, ""));
  return { port, [Symbol.asyncDispose]: () => end(child) };
}

/** The first line of a process's output that holds `text`. What follows is read away, so that it never blocks. */
export async function lineWith(
  child: Subprocess<"ignore" | "pipe", "pipe", "inherit">,
  text: string,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const timer = setTimeout(() => reject(new Error(`No line with ${text}`)), READY_WITHIN_MS);
  void (async () => {
    let rest = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      rest = (rest + chunk).slice(-100_000);
      const lines = rest.split("\n");
      rest = lines.pop() ?? "";
      const found = lines.find((line) => line.includes(text));
      if (found !== undefined) resolve(found);
    }
    reject(new Error("The process ended before it was ready"));
  })();
  return promise.finally(() => clearTimeout(timer));
}

export async function end(child: Subprocess): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}

export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), "mailwright-bench-"));
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** User and system seconds that a process has used; with `waited`, those of its ended children too. */
export function cpuSeconds(pid: number, waited = false): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field is the name in brackets, which may hold anything.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15);
  return (user + system + (waited ? childUser + childSystem : 0)) / TICKS_PER_SECOND;
}

/** Resident memory in MB. */
export function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}

/** `share` of 0.5 is the median. NaN of nothing. */
export function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Measures both sides turn by turn, so that a busy moment of the machine hits both. */
export async function interleave<T>(
  rounds: number,
  ours: (round: number) => Promise<T>,
  theirs: (round: number) => Promise<T>,
): Promise<{ ours: T[]; theirs: T[] }> {
  const taken = { ours: [] as T[], theirs: [] as T[] };
  for (let round = 0; round < rounds; round++) {
    // The one that goes second finds warmer caches, so they take turns at that too.
    if (round % 2 === 0) taken.ours.push(await ours(round));
    taken.theirs.push(await theirs(round));
    if (round % 2 === 1) taken.ours.push(await ours(round));
  }
  return taken;
}

/** Set by `bench/all.ts`: how many rounds a bench has at the most, and the file for its results. */
export const ROUNDS_VARIABLE = "BENCH_ROUNDS";
export const RESULTS_VARIABLE = "BENCH_RESULTS";

/** How many rounds a bench has that wants so many. */
export function roundsOf(wanted: number): number {
  return Math.min(wanted, Number(process.env[ROUNDS_VARIABLE] ?? wanted));
}

export interface Result {
  name: string;
  median: number;
}

const results: (Result & { line: string })[] = [];

/** Keeps the ratio of two sides, round by round, for the end: median, minimum and maximum. */
export function noteRatio(name: string, pairs: { ours: number[]; theirs: number[] }, unit = ""): void {
  const ratios = pairs.ours.map((value, round) => value / (pairs.theirs[round] ?? Number.NaN));
  const sides = `(${short(median(pairs.ours))}${unit} against ${short(median(pairs.theirs))}${unit})`;
  note(name, ratios, `x  ${sides}`);
}

/** Keeps a figure that stands for itself. */
export function noteFigure(name: string, values: number[], unit: string): void {
  note(name, values, unit);
}

function note(name: string, values: number[], unit: string): void {
  const { goal = "-", floor = "" } = FIGURES[name] ?? {};
  const line = `${name.padEnd(58)} ${goal.padEnd(8)} ${floor.padEnd(8)} ${spread(values)} ${unit}`;
  console.log(`  ${line}`);
  results.push({ name, median: median(values), line });
}

export function printResults(): void {
  console.log(`\n${"".padEnd(58)} ${"goal".padEnd(8)} ${"floor".padEnd(8)} median [min .. max]`);
  for (const { line } of results) console.log(line);
  const file = process.env[RESULTS_VARIABLE];
  if (file !== undefined)
    writeFileSync(file, JSON.stringify(results.map(({ name, median: value }) => ({ name, median: value }))));
}

/** What the figures depend on. */
export function printSettings(settings: Record<string, string | number>): void {
  const commit = Bun.spawnSync(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"]).stdout.toString().trim();
  const shown = { commit, bun: Bun.version, cpu: `${cpus().length} x ${cpus()[0]?.model}`, ...settings };
  for (const [name, value] of Object.entries(shown)) console.log(`${name}: ${value}`);
}

export function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function spread(values: number[]): string {
  return `${short(median(values))} [${short(Math.min(...values))} .. ${short(Math.max(...values))}]`;
}

function commandOf({ build = "source", preload }: ServerSettings): string[] {
  if (build === "binary") return [BINARY];
  const before = preload === undefined ? [] : ["--preload", join(ROOT, preload.path)];
  return [process.execPath, ...before, join(ROOT, "src/main.ts")];
}

function configOf(dir: string, { model_url, relay_port, more = "" }: ServerSettings): string {
  const model = `[llm]\nkind = "openai_compatible"\nbase_url = "${model_url}"\nmodel = "instant"\napi_key = "none"`;
  const relay = `[outbound]\nmode = "relay"\nrelay_url = "smtp://127.0.0.1:${relay_port}"`;
  return `
[server]
listen = "127.0.0.1:0"
[smtp]
listen = "127.0.0.1:0"
hostname = "${DOMAIN}"
domain = "${DOMAIN}"
trusted_networks = ["127.0.0.1/32"]
early_talker_ms = 0
max_connections = 10000
max_connections_per_address = 10000
[data]
dir = "${join(dir, "data")}"
[plans]
default = "team"
[plans.team]
credits = 1000000000
route_per_minute = 0
concurrent_routes = 0
api_per_minute = 0
inbound_per_hour = 0
[limits]
replies_per_conversation_hour = 0
replies_per_sender_hour = 0
inbound_per_sender_hour = 0
inbound_per_sender_day = 0
replies_per_sender_day = 0
same_body_per_hour = 0
[log]
level = "info"
format = "json"
${model_url === undefined ? "" : model}
${relay_port === undefined ? "" : relay}
${more}
`;
}
