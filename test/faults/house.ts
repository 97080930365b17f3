import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { stringify } from "smol-toml";
import { withApp } from "../../src/cli/with-app.ts";
import { createVerifiedUser } from "../../src/resources/accounts/accounts.ts";
import { createApiKey } from "../../src/resources/accounts/api-keys.ts";
import { builtBinary } from "../support/binary.ts";
import { layKeys } from "../support/keys.ts";
import { migratedImage } from "../support/migrated-image.ts";

const BINARY = await builtBinary();
const READY_MS = 15_000;

type Settings = Record<string, Record<string, unknown>>;

/** A real server process on a data folder of its own. */
export interface ServerProcess extends AsyncDisposable {
  pid: number;
  http: string;
  smtp: { host: string; port: number };
  kill(signal: NodeJS.Signals): void;
  /** The exit code; null after a signal. */
  exited: Promise<number | null>;
  /** What it has logged so far. */
  log(): string;
}

export interface House extends AsyncDisposable {
  dir: string;
  /** The path of its configuration. */
  config: string;
  /** Runs a command line next to the server, or without one. */
  cli(...words: string[]): Promise<{ code: number; out: string; err: string }>;
  /** Resolves when the server is ready; rejects with its log when it ends before. `env` is added to its environment. */
  start(env?: Record<string, string>): Promise<ServerProcess>;
  /** The same, without waiting for its end. */
  run(...words: string[]): Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** Starts a server, or what is said, without waiting for anything. */
  spawn(env?: Record<string, string>, ...words: string[]): Bun.Subprocess<"ignore", "pipe", "pipe">;
  /** The database of a server that has stopped. */
  database(): Sqlite.Database;
}

/** Limits are off, so that a load of mails is a load and not a loop; nothing leaves the machine. */
export async function house(settings: Settings = {}, folder?: string): Promise<House> {
  const base = await mkdtemp(join(tmpdir(), "mailwright-house-"));
  const dir = folder ?? join(base, "data");
  await mkdir(dir, { recursive: true });
  // A folder that is given may hold what a server has left behind.
  if (folder === undefined) {
    await layKeys(dir);
    await writeFile(join(dir, "mailwright.db"), await migratedImage(), { mode: 0o600 });
  }
  const config = join(base, "config.toml");
  await writeFile(config, stringify(merged(settings, dir)));
  const command = (...words: string[]) => [BINARY, ...words, "--config", config];
  const spawn = (env: Record<string, string> = {}, ...words: string[]) =>
    Bun.spawn(command(...(words.length > 0 ? words : ["serve"])), {
      cwd: base,
      env: { ...process.env, ...env },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
  const run: House["run"] = (...words) =>
    Bun.spawn(command(...words), { cwd: base, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  return {
    dir,
    config,
    spawn,
    start: (env) => untilReady(spawn(env)),
    run,
    async cli(...words) {
      const child = run(...words);
      const [out, err, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ]);
      return { code, out, err };
    },
    database: () => new Sqlite(join(dir, "mailwright.db")),
    [Symbol.asyncDispose]: () => rm(base, { recursive: true, force: true }),
  };
}

export interface Account {
  email: string;
  api_key: string;
}

/** Makes a verified account as the command line does, without a process of its own. */
export async function account({ config }: House, email: string): Promise<Account> {
  let api_key = "";
  await withApp({ config, create: true }, async (app) => {
    await createVerifiedUser(app, { email });
    api_key = (await createApiKey(app, { email })).key;
  });
  return { email, api_key };
}

/** Makes an inbox and gives its address. */
export async function inbox(server: ServerProcess, owner: Account, settings: object = {}): Promise<string> {
  const response = await fetch(`${server.http}/inboxes`, {
    method: "POST",
    headers: { "x-api-key": owner.api_key, "content-type": "application/json" },
    body: JSON.stringify(settings),
  });
  if (response.status !== 201) throw new Error(await response.text());
  return ((await response.json()) as { address: string }).address;
}

function merged(settings: Settings, dir: string): Settings {
  const base: Settings = {
    server: { listen: "127.0.0.1:0" },
    smtp: {
      listen: "127.0.0.1:0",
      domain: "mw.test",
      hostname: "mx.mw.test",
      early_talker_ms: 0,
      trusted_networks: ["127.0.0.1/32"],
    },
    data: { dir },
    llm: { kind: "demo" },
    plans: { team: { credits: 1_000_000, route_per_minute: 0, inbound_per_hour: 0, concurrent_routes: 0 } },
    limits: {
      replies_per_conversation_hour: 0,
      replies_per_sender_hour: 0,
      inbound_per_sender_hour: 0,
      inbound_per_sender_day: 0,
      replies_per_sender_day: 0,
      same_body_per_hour: 0,
    },
    log: { format: "json" },
  };
  const sections = new Set([...Object.keys(base), ...Object.keys(settings)]);
  return Object.fromEntries([...sections].map((name) => [name, { ...base[name], ...settings[name] }]));
}

async function untilReady(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<ServerProcess> {
  let text = "";
  const ready = Promise.withResolvers<{ http: string; smtp: string }>();
  const read = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      text += decoder.decode(chunk, { stream: true });
      const line = /^.*"msg":"ready".*$/m.exec(text)?.[0];
      if (line !== undefined) ready.resolve(JSON.parse(line) as { http: string; smtp: string });
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  const exited = child.exited.then(() => child.exitCode);
  void Promise.all([reading, exited]).then(() => ready.reject(new Error(`The server ended:\n${text}`)));
  const timer = setTimeout(() => {
    child.kill("SIGKILL");
  }, READY_MS);
  const { http, smtp } = await ready.promise.finally(() => clearTimeout(timer));
  const [host = "", port = ""] = smtp.split(":");
  return {
    pid: child.pid,
    http,
    smtp: { host, port: Number(port) },
    kill: (signal) => child.kill(signal),
    exited,
    log: () => text,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill("SIGKILL");
      await exited;
    },
  };
}
