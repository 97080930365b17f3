import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { createVerifiedUser } from "../src/resources/accounts/accounts.ts";
import { createApiKey } from "../src/resources/accounts/api-keys.ts";
import { type App, createApp } from "../src/app.ts";
import { defaultConfig } from "../src/config/config.ts";
import { createHttp } from "../src/api.ts";
import { fillArchive, RESULT_CHARS, sqliteVersion, TURNS } from "./archive.ts";
import {
  interleave,
  median,
  roundsOf,
  noteFigure,
  noteRatio,
  printResults,
  printSettings,
  temporaryFolder,
} from "./support.ts";

/** What a page of the lists costs where there is much, against where there is little: through the HTTP interface, in this process. */
const FEW = 1_000;
const MANY = 1_000_000;
const PAGE = 50;
const DEEP_PAGES = 1_000;
const ROUNDS = roundsOf(9);
const REQUESTS = 40;

const OWNER = "ada@client.example";

await using few = await openDesk(FEW);
await using many = await openDesk(MANY);
printSettings({
  sqlite: sqliteVersion(),
  messages: `${FEW} against ${MANY} of one account, ${TURNS} to a conversation, a file with every 20th, results of ${RESULT_CHARS} characters`,
  files: `${megabytes(few)} MB against ${megabytes(many)} MB, made in ${(few.seconds + many.seconds).toFixed(0)} s`,
  pages: `${PAGE} items; in each of ${ROUNDS} rounds the medians of ${REQUESTS} requests to each side, in turns`,
});

// Also compiles what is run often, on both sides.
await cursorAt(few, "/messages", FEW / PAGE);
const deep = {
  messages: await cursorAt(many, "/messages", DEEP_PAGES),
  conversations: await cursorAt(many, "/conversations", DEEP_PAGES),
};

for (const [name, path, far] of [
  ["messages, first page", "/messages", ""],
  [`messages, page ${DEEP_PAGES}`, "/messages", deep.messages],
  ["messages, status=failed", "/messages?status=failed", ""],
  ["messages, status=rejected", "/messages?status=rejected", ""],
  ["messages, status=done&source=api", "/messages?status=done&source=api", ""],
  ["conversations, first page", "/conversations", ""],
  [`conversations, page ${DEEP_PAGES}`, "/conversations", deep.conversations],
] as const) {
  const rounds = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    const { ours, theirs } = await interleave(
      REQUESTS,
      () => milliseconds(many, pathOf(path, far)),
      () => milliseconds(few, pathOf(path, "")),
    );
    rounds.ours.push(median(ours));
    rounds.theirs.push(median(theirs));
  }
  noteRatio(name, rounds, " ms");
}
const nothing: number[] = [];
for (let request = 0; request < REQUESTS; request++)
  nothing.push(await milliseconds(many, pathOf("/messages?source=test", ""), 0));
noteFigure("a filter that finds nothing in what a page looks at", nothing, "ms");
printResults();

interface Desk extends AsyncDisposable {
  dir: string;
  /** That filling it took. */
  seconds: number;
  get(path: string): Promise<{ items: unknown[]; next_cursor: string | null }>;
}

/** A server that nobody listens to, over a database in a file with so many messages. */
async function openDesk(messages: number): Promise<Desk> {
  const dir = temporaryFolder();
  const config = defaultConfig({
    data: { dir },
    database: { url: `sqlite:${fileIn(dir)}` },
    smtp: { domain: "bench.example", hostname: "bench.example" },
    llm: { kind: "demo" },
    plans: { default: "team", team: { api_per_minute: 0 } },
    log: { level: "error" },
  });
  const started = performance.now();
  const key = await prepare(await createApp(config), messages);
  const seconds = (performance.now() - started) / 1_000;
  const app = await createApp(config);
  const http = createHttp(app, { ready: async () => ({}) });
  return {
    dir,
    seconds,
    async get(path) {
      const request = new Request(`http://bench.example${path}`, { headers: { "x-api-key": key } });
      const answer = await http.handle(request);
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${text}`);
      return JSON.parse(text) as Awaited<ReturnType<Desk["get"]>>;
    },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** An account, its messages, and its key. */
async function prepare(app: App, messages: number): Promise<string> {
  const user = await createVerifiedUser(app, { email: OWNER });
  const { key } = await createApiKey(app, { email: OWNER });
  await app[Symbol.asyncDispose]();
  fillArchive(fileIn(app.config.data.dir), { user_id: user.id, messages });
  return key;
}

/** The cursor of the page of this number. */
async function cursorAt(desk: Desk, path: string, page: number): Promise<string> {
  let cursor = "";
  for (let number = 1; number < page; number++) {
    const { next_cursor } = await desk.get(pathOf(path, cursor));
    if (next_cursor === null) throw new Error(`${path} ends at page ${number}`);
    cursor = next_cursor;
  }
  return cursor;
}

function pathOf(path: string, cursor: string): string {
  const query = `${path.includes("?") ? "&" : "?"}limit=${PAGE}`;
  return `${path}${query}${cursor === "" ? "" : `&cursor=${cursor}`}`;
}

async function milliseconds(desk: Desk, path: string, items = PAGE): Promise<number> {
  const started = performance.now();
  const page = await desk.get(path);
  const taken = performance.now() - started;
  if (page.items.length !== items) throw new Error(`${path} has ${page.items.length} items`);
  return taken;
}

function fileIn(dir: string): string {
  return join(dir, "mailwright.db");
}

function megabytes({ dir }: Desk): string {
  return (statSync(fileIn(dir)).size / 1_048_576).toFixed(1);
}
