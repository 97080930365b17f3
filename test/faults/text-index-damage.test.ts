import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { type App, createApp } from "../../src/app.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { findFaults } from "../../src/db/integrity.ts";
import { createLog } from "../../src/lib/log.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { blankMessage } from "../../src/resources/messages/blank-message.ts";
import { searchMessages } from "../../src/resources/messages/search/search.ts";
import { insertRow } from "../../src/db/prepared.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { indexAll } from "../support/index-all.ts";
import { layKeys } from "../support/keys.ts";
import { storeMail } from "../support/mail-files.ts";

const ROUNDS = Number(process.env["DAMAGE_ROUNDS"] ?? 6);
const MESSAGES = 120;
const never = new AbortController().signal;

let base: string;
let sound: string;
let page_bytes: number;
/** The pages of the index of words, with the tables that they are of. */
let pages: { page: number; name: string }[];

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), "mailwright-words-"));
  sound = join(base, "sound");
  await layKeys(sound);
  {
    await using app = await start(sound);
    await fill(app);
    await indexAll(app);
  }
  const sqlite = new Sqlite(join(sound, "mailwright.db"));
  sqlite.pragma("journal_mode = DELETE");
  page_bytes = sqlite.pragma("page_size", { simple: true }) as number;
  pages = sqlite
    .prepare(
      `select pageno as page, name from dbstat where pagetype in ('leaf', 'internal', 'overflow')
        and (name glob 'message_texts*' or name glob '*indexed_messages*' or name glob 'text_slots*')`,
    )
    .all() as typeof pages;
  sqlite.close();
});
afterAll(() => rm(base, { recursive: true, force: true }));

function config(dir: string) {
  return defaultConfig({ data: { dir }, smtp: { hostname: "mx.mw.test" } });
}

const said: string[] = [];
const silent = createLog({ level: "silent", format: "text" });
const log = Object.assign(silent, {
  error: (fields: object, words = "") => void said.push(`${words} ${JSON.stringify(fields)}`),
});

function start(dir: string, as: "server" | "command line" = "command line"): Promise<App> {
  return createApp(config(dir), {
    log,
    ...(as === "server" ? { worker: (app: App) => createWorker(app, jobHandlers(app)) } : {}),
  });
}

/** Messages with many words, of one account. */
async function fill(app: App): Promise<void> {
  const chance = chanceFrom(7);
  const words = () => Array.from({ length: 120 }, () => `w${Math.floor(chance() * 900)}`).join(" ");
  await app.write(async (tx) => {
    await tx
      .insertInto("users")
      .values({ id: "ada", email: "ada@example.com", created: 1, name: "" } as never)
      .execute();
    for (let at = 0; at < MESSAGES; at += 1)
      await insertRow(tx, "messages", {
        ...blankMessage(app, { id: app.newId(), user_id: "ada" }),
        state: "done",
        authority: "owner",
        subject: "everyword",
        result: words(),
      } as never);
  });
}

type Damage = (bytes: Buffer, chance: () => number) => void;

const noise = (bytes: Buffer, chance: () => number) => {
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = Math.floor(256 * chance());
};
const sectorOf = (bytes: Buffer, chance: () => number) => {
  const from = 512 * Math.floor((bytes.length / 512) * chance());
  return bytes.subarray(from, from + 512);
};
const KINDS: [string, Damage][] = [
  [
    "a flipped bit",
    (bytes, chance) => {
      const at = Math.floor(bytes.length * chance());
      bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(8 * chance()));
    },
  ],
  ["a sector of noise", (bytes, chance) => noise(sectorOf(bytes, chance), chance)],
  ["a sector of zeros", (bytes, chance) => void sectorOf(bytes, chance).fill(0)],
  ["a first sector of noise", (bytes, chance) => noise(bytes.subarray(0, 512), chance)],
  ["a page of noise", noise],
  ["a page of zeros", (bytes) => void bytes.fill(0)],
];

/** A copy of the folder with one damaged page of the index. */
async function damagedFolder(name: string, page: number, damage: (bytes: Buffer) => void): Promise<string> {
  const dir = join(base, name);
  await cp(sound, dir, { recursive: true });
  await using file = await open(join(dir, "mailwright.db"), "r+");
  const bytes = Buffer.alloc(page_bytes);
  await file.read(bytes, 0, page_bytes, (page - 1) * page_bytes);
  damage(bytes);
  await file.write(bytes, 0, page_bytes, (page - 1) * page_bytes);
  return dir;
}

/** All messages that have the word that all have. */
async function search(app: App): Promise<number> {
  const user = await app.db.selectFrom("users").selectAll().where("id", "=", "ada").executeTakeFirstOrThrow();
  let [found, cursor] = [0, null as string | null];
  do {
    const page = await searchMessages(app, user, {
      q: "everyword",
      limit: 50,
      ...(cursor === null ? {} : { cursor }),
    });
    found += page.items.length;
    cursor = page.next_cursor;
  } while (cursor !== null);
  return found;
}

/** Every message is found, and mail is taken. */
async function isWell(app: App): Promise<void> {
  expect(await search(app)).toBe(MESSAGES);
  await storeMail(app, "A");
  await indexAll(app);
  expect(await search(app)).toBe(MESSAGES);
  await app.db.deleteFrom("messages").where("subject", "=", "everyword").execute();
  expect(await search(app)).toBe(0);
}

/** Each page of each kind of damage, by chance. */
async function eachDamage(what: string, kind: [string, Damage], run: (dir: string) => Promise<void>) {
  const chance = chanceFrom(seedFrom("DAMAGE_SEED", `${what}: ${kind[0]}`));
  for (let round = 0; round < ROUNDS; round += 1) {
    const { page, name } = pages[Math.floor(pages.length * chance())] as (typeof pages)[number];
    said.length = 0;
    const dir = await damagedFolder(`${what} ${kind[0]} ${round}`, page, (bytes) => kind[1](bytes, chance));
    try {
      await run(dir);
    } catch (error) {
      throw new Error(`page ${page} of ${name}, round ${round}; ${said.join("; ")}`, { cause: error });
    }
    await rm(dir, { recursive: true, force: true });
  }
}

test.each(KINDS)(
  "%s in the index of words ends no start, and no search and no mail",
  async (name, damage) => {
    await eachDamage("start", [name, damage], async (dir) => {
      {
        await using app = await start(dir, "server");
        await isWell(app);
      }
      expect(await findFaults(join(dir, "mailwright.db"))).toEqual([]);
    });
  },
  120_000,
);

test.each(KINDS)(
  "%s in it that a running server meets stops nothing",
  async (name, damage) => {
    await eachDamage("running", [name, damage], async (dir) => {
      await using app = await start(dir);
      expect(await search(app)).toBeLessThanOrEqual(MESSAGES);
      await storeMail(app, "A");
      expect(["mended", "sound"]).toContain(await app.upkeep.lookThrough());
      await isWell(app);
    });
  },
  120_000,
);

test.each(KINDS)(
  "%s in it is kept in no backup, which can be made and restored",
  async (name, damage) => {
    await eachDamage("backup", [name, damage], async (dir) => {
      const archive = join(base, "backup.zip");
      await backupToFile(sourceOf(config(dir), 0), archive, never);
      const to = `${dir} restored`;
      await restoreBackup(config(to), archive, { now: 0, hold: true, confirm: async () => true });
      await using app = await start(to, "server");
      await isWell(app);
      await rm(to, { recursive: true, force: true });
    });
  },
  120_000,
);
