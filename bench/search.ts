import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { createVerifiedUser } from "../src/resources/accounts/accounts.ts";
import { createApiKey } from "../src/resources/accounts/api-keys.ts";
import { createHttp } from "../src/api.ts";
import { createApp } from "../src/app.ts";
import { defaultConfig } from "../src/config/config.ts";
import { dayAt } from "../src/lib/durations.ts";
import { TEXT_FIELDS } from "../src/db/schema.ts";
import { markOf } from "../src/lib/split-words.ts";
import { indexSome } from "../src/resources/messages/search/keep-indexed.ts";
import { placeOf, SLOT_CHARS } from "../src/resources/messages/search/places.ts";
import { fillArchive, sqliteVersion } from "./archive.ts";
import { noteFigure, percentile, printResults, printSettings, temporaryFolder } from "./support.ts";

/**
 * What a page of a search costs where an account has many messages, and another one a tenth of them: through the HTTP
 * interface, in this process. `BENCH_MESSAGES=1000000` takes ten minutes and 7 GB, so by default there are fewer.
 */
const MESSAGES = Number(process.env["BENCH_MESSAGES"] ?? 100_000);
const PAGE = 50;
const REQUESTS = 60;
/** One message a second, up to now. */
const FIRST_MS = Date.now() - MESSAGES * 1_000;
/** Words of the texts of one message. */
const LENGTHS = { subject: 6, instruction: 8, result: 25, material: 45, files: 5 };
/** How often the words stand that are looked for: in every message of so many. */
const EVERY = { rareword: Math.ceil(MESSAGES / 20), middleword: 1_000, commonword: 3 };
const VOCABULARY = vocabulary(40_000);

const dir = temporaryFolder();
using _folder = { [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
const file = join(dir, "mailwright.db");
const config = defaultConfig({
  data: { dir },
  database: { url: `sqlite:${file}` },
  smtp: { domain: "bench.example", hostname: "bench.example" },
  llm: { kind: "demo" },
  plans: { default: "team", team: { api_per_minute: 0 } },
  log: { level: "error" },
});
const began = performance.now();
const accounts = await prepare();
const made_in = (performance.now() - began) / 1_000;
await using app = await createApp(config);
const http = createHttp(app, { ready: async () => ({}) });
printSettings({
  sqlite: sqliteVersion(),
  messages: `${MESSAGES} of one account and a tenth as many of another, ${Object.values(LENGTHS).reduce((sum, count) => sum + count)} words each`,
  file: `${(statSync(file).size / 1_048_576).toFixed(0)} MB, made in ${made_in.toFixed(0)} s`,
  pages: `${PAGE} items, ${REQUESTS} requests each, behind one another; of a search that gives several pages the first`,
});

for (const [name, q] of [
  ["a rare word", "rareword"],
  ["a middle word", "middleword"],
  ["a very common word", "commonword"],
  ["a word that only another account has", "foreignword"],
  ["the beginning of words", VOCABULARY[40]?.slice(0, 4) ?? ""],
  ["two words", `commonword ${VOCABULARY[90]}`],
  ["a phrase", `"commonword ${VOCABULARY[2]}"`],
  ["a rare word and no other", `rareword -${VOCABULARY[5]}`],
  [
    "a sender and days",
    `from:carol commonword after:${dayAt(FIRST_MS / 1_000)} before:${dayAt(Date.now() / 1_000)}`,
  ],
] as const)
  await measure(name, `/messages?limit=${PAGE}&q=${encodeURIComponent(q)}`);
await measure("a middle word, by rank", `/messages?limit=${PAGE}&sort=rank&q=middleword`);
await measure("a very common word, by rank", `/messages?limit=${PAGE}&sort=rank&q=commonword`);
await measureIndexing();
printResults();

async function measure(name: string, path: string): Promise<void> {
  const taken: number[] = [];
  let items = 0;
  for (let request = 0; request < REQUESTS + 2; request += 1) {
    const started = performance.now();
    const answer = await http.handle(
      new Request(`http://bench.example${path}`, { headers: { "x-api-key": accounts[0]?.key ?? "" } }),
    );
    const page = (await answer.json()) as { items: unknown[] };
    // The first ones compile what is run.
    if (request >= 2) taken.push(performance.now() - started);
    items = page.items.length;
  }
  console.log(`${name}: ${items} items`);
  noteFigure(`search, ${name}, p50`, [percentile(taken, 0.5)], "ms");
  noteFigure(`search, ${name}, p95`, [percentile(taken, 0.95)], "ms");
}

/** How long this thread works on a message until it can be found, and on one that can be found already. */
async function measureIndexing(): Promise<void> {
  const count = 500;
  fillArchive(file, {
    user_id: accounts[0]?.user_id ?? "",
    messages: count,
    first_ms: Date.now() + 3_600_000,
  });
  // Only the next read sees what another connection wrote.
  await Bun.sleep(0);
  const fresh = performance.now();
  while (await indexSome(app));
  noteFigure("indexing a message", [(performance.now() - fresh) / count], "ms");
  const waiting = app.db
    .selectFrom("indexed_messages")
    .select("message_id")
    .orderBy("place", "desc")
    .limit(count);
  await app.db.updateTable("messages").set({ tags: '["new"]' }).where("id", "in", waiting).execute();
  const started = performance.now();
  while (await indexSome(app));
  noteFigure("indexing a message anew", [(performance.now() - started) / count], "ms");
}

/** Two accounts with their messages, which are indexed as the server would; returns them with their keys. */
async function prepare(): Promise<{ user_id: string; key: string }[]> {
  const made = await createApp(config);
  const accounts: { user_id: string; key: string }[] = [];
  for (const email of ["ada@client.example", "bob@client.example"]) {
    const user = await createVerifiedUser(made, { email });
    accounts.push({ user_id: user.id, key: (await createApiKey(made, { email })).key });
  }
  await made[Symbol.asyncDispose]();
  for (const [at, { user_id }] of accounts.entries())
    fillArchive(file, { user_id, messages: MESSAGES / 10 ** at, first_ms: FIRST_MS + at * 500 });
  const sqlite = new Sqlite(file);
  sqlite.pragma("synchronous = OFF");
  sqlite.pragma("cache_size = -200000");
  sqlite.exec("delete from unindexed_messages");
  for (const [at, { user_id }] of accounts.entries()) fillIndex(sqlite, { user_id, other: at === 1 });
  sqlite.pragma("wal_checkpoint(truncate)");
  sqlite.close();
  return accounts;
}

/** Texts for the messages of an account, as `keep-indexed.ts` stores them. */
function fillIndex(sqlite: Sqlite.Database, { user_id, other }: { user_id: string; other: boolean }): void {
  const ids = sqlite
    .prepare("select id from messages where user_id = ? order by id")
    .pluck()
    .all(user_id) as string[];
  const names = TEXT_FIELDS.join(", ");
  const values = TEXT_FIELDS.map(() => "?").join(", ");
  const store = sqlite.prepare(
    `insert into indexed_messages (place, message_id, slot, ${names}) values (?, ?, ?, ${values})`,
  );
  const index = sqlite.prepare(`insert into message_texts (rowid, ${names}) values (?, ${values})`);
  const open = sqlite
    .prepare("insert into text_slots (user_id, first, last, chars) values (?, ?, ?, ?) returning slot")
    .pluck();
  const grow = sqlite.prepare("update text_slots set last = ? where slot = ?");
  let [slot, chars] = [0, SLOT_CHARS];
  for (let from = 0; from < ids.length; from += 1_000) {
    sqlite.transaction(() => {
      for (const [at, id] of ids.slice(from, from + 1_000).entries()) {
        const place = placeOf(id);
        const texts = textsOf(from + at, other);
        const length = texts.reduce((sum, text) => sum + text.length, 0);
        if (chars + length > SLOT_CHARS) {
          slot = open.get(user_id, place, place, SLOT_CHARS) as number;
          chars = 0;
        }
        chars += length;
        const mark = markOf(slot);
        // As `markedText` does for such words, which would take most of the time.
        const marked = texts.map((text) => text.replaceAll(/\w+/g, (one) => mark + one));
        store.run(place, id, slot, ...marked);
        index.run(place, ...marked);
        grow.run(place, slot);
      }
    })();
  }
}

function textsOf(number: number, other: boolean): string[] {
  const has = (every: number) => number % every === 0;
  const special = [
    ...(has(EVERY.rareword) ? ["rareword"] : []),
    ...(has(EVERY.middleword) ? ["middleword"] : []),
    ...(has(EVERY.commonword) ? ["commonword"] : []),
    ...(other ? ["foreignword"] : []),
  ];
  const text = (count: number) => Array.from({ length: count }, word).join(" ");
  return [
    "all",
    text(LENGTHS.subject),
    `${["ada", "bob", "carol", "dan"][number % 4]}@client.example`,
    "Reports reports-k3m9x2@bench.example",
    "",
    text(LENGTHS.instruction),
    [...special, text(LENGTHS.result)].join(" "),
    text(LENGTHS.material),
    text(LENGTHS.files),
  ];
}

/** Few words stand often, and most of them seldom, as in any language. */
function word(): string {
  return VOCABULARY[Math.floor(VOCABULARY.length * Math.random() ** 4)] ?? "";
}

function vocabulary(count: number): string[] {
  const syllables = Array.from("bdfgklmnprst", (sound) =>
    Array.from("aeiou", (vowel) => sound + vowel),
  ).flat();
  const words = new Set<string>();
  while (words.size < count)
    words.add(
      Array.from(
        { length: 2 + Math.floor(Math.random() * 3) },
        () => syllables[Math.floor(Math.random() * syllables.length)],
      ).join(""),
    );
  return [...words];
}
