import { afterAll, beforeAll, expect, test } from "bun:test";
import { cp, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { type App, createApp } from "../../src/app.ts";
import { restoreBackup } from "../../src/backup/restore.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { findFaults } from "../../src/db/integrity.ts";
import { freeOn } from "../../src/db/reserve.ts";
import type { MessageRow } from "../../src/db/schema.ts";
import { createLog } from "../../src/lib/log.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { blankMessage } from "../../src/resources/messages/blank-message.ts";
import { indexSome, searchWarning } from "../../src/resources/messages/search/keep-indexed.ts";
import { searchMessages } from "../../src/resources/messages/search/search.ts";
import { insertRow } from "../../src/db/prepared.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { indexAll } from "../support/index-all.ts";
import { layKeys } from "../support/keys.ts";
import { storeMail } from "../support/mail-files.ts";
import { closing } from "./load.ts";
import { memoryDisk, whyNoMounts } from "./disks.ts";

const ROUNDS = Number(process.env["DAMAGE_ROUNDS"] ?? 1);
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
      .values({
        id: "ada",
        email: "ada@example.com",
        email_verified: 1,
        name: "",
        plan: "team",
        is_admin: 0,
        created: 1,
        timezone: "UTC",
        reply_footer: 0,
      } as never)
      .execute();
    for (let at = 0; at < MESSAGES; at += 1)
      await insertRow(tx, "messages", messageOf(app, { subject: "everyword", result: words() }));
  });
}

function messageOf(app: App, given: Partial<MessageRow>): MessageRow {
  const moment = { id: app.newId(), created: app.now(), accepted_ms: app.now() * 1_000 };
  const blank = blankMessage(app, { id: null, user_id: "ada" });
  return { ...blank, ...moment, state: "done", authority: "owner", ...given };
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
  await app.write((tx) => tx.deleteFrom("messages").where("subject", "=", "everyword").execute());
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
      await storeMail(app, "B");
      expect(["mended", "sound"]).toContain(await app.upkeep.lookThrough());
      await isWell(app);
    });
  },
  120_000,
);

test("what is set aside in a large database takes room, counts as no damage, and is gone by a backup", async () => {
  const { page } = pages.find(({ name }) => name === "message_texts_data") as (typeof pages)[number];
  const dir = await damagedFolder("large", page, (bytes) => noise(bytes, chanceFrom(3)));
  const path = join(dir, "mailwright.db");
  {
    using database = closing(new Sqlite(path));
    database.db.exec(`create table noise (bytes blob); insert into noise values (randomblob(33554432))`);
  }
  {
    await using app = await start(dir, "server");
    expect(await search(app)).toBe(MESSAGES);
    expect(await app.upkeep.lookThrough()).toBe("sound");
    await indexAll(app);
    expect(await app.write(async () => app.upkeep.giveBackSpace())).toBe(false);
    expect(await searchWarning(app)).toContain("was set aside");
  }
  expect(await findFaults(path)).toEqual([]);
  const archive = join(base, "large.zip");
  await backupToFile(sourceOf(config(dir), 0), archive, never);
  const to = `${dir} restored`;
  await restoreBackup(config(to), archive, { now: 0, hold: true, confirm: async () => true });
  await using app = await start(to, "server");
  await isWell(app);
  expect(await searchWarning(app)).toBeUndefined();
  using restored = closing(new Sqlite(join(to, "mailwright.db")));
  expect(restored.db.pragma("integrity_check", { simple: true })).toBe("ok");
});

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

test("an index that is set aside is made anew in short steps, and /readyz says so until then", async () => {
  const dir = join(base, "steps");
  await cp(sound, dir, { recursive: true });
  await using app = await start(dir);
  await app.write(async (tx) => {
    for (let at = 0; at < 1_200; at += 1)
      await insertRow(tx, "messages", messageOf(app, { subject: "later" }));
  });
  await indexAll(app);
  const began = performance.now();
  await app.upkeep.renewIndex();
  console.log(`made anew in ${Math.round(performance.now() - began)} ms`);
  expect(await search(app)).toBe(MESSAGES);
  const queued = async () => (await app.db.selectFrom("unindexed_messages").select("turn").execute()).length;
  expect(await queued()).toBe(0);
  expect(await searchWarning(app)).toContain("is being made anew");
  await indexSome(app);
  expect(await queued()).toBe(480);
  await indexAll(app);
  expect(await searchWarning(app)).toBeUndefined();
  expect(await search(app)).toBe(MESSAGES);
});

test("a message that cannot be read keeps no other from being indexed, or from being found", async () => {
  const dir = join(base, "unreadable");
  await cp(sound, dir, { recursive: true });
  await using app = await start(dir);
  const row = messageOf(app, { subject: "everyword" });
  await app.write((tx) => insertRow(tx, "messages", row));
  await app.write((tx) =>
    tx
      .updateTable("messages")
      .set({ result: Buffer.from("no text") as never, subject: Buffer.from("everyword") as never })
      .where("id", "=", row.id)
      .execute(),
  );
  await app.upkeep.renewIndex();
  expect(await search(app)).toBe(MESSAGES);
  await indexAll(app);
  expect(await app.db.selectFrom("unindexed_messages").selectAll().execute()).toEqual([]);
  expect((await app.db.selectFrom("indexed_messages").select("place").execute()).length).toBe(MESSAGES);
  expect(await search(app)).toBe(MESSAGES);
});

const reason = await whyNoMounts("tmpfs");

test.skipIf(reason !== undefined)(
  "the index waits while there is only the room that mail needs, says so, and leaves it when more is freed",
  async () => {
    const MB = 1_048_576;
    await using disk = await memoryDisk(256);
    const dir = join(disk.path, "data");
    await cp(sound, dir, { recursive: true });
    await using app = await start(dir);
    await app.upkeep.renewIndex();
    const ballast = join(disk.path, "ballast");
    const leave = async (mb: number) => {
      await rm(ballast, { force: true });
      await writeFile(ballast, randomBytes((await freeOn(dir)).bytes - mb * MB));
    };
    for (const mb of [10, 120]) {
      await leave(mb);
      const before = (await freeOn(dir)).bytes;
      for (let step = 0; step < 3; step += 1) expect(await indexSome(app)).toBe(false);
      expect((await freeOn(dir)).bytes).toBe(before);
      expect(await searchWarning(app)).toContain("less than 128 MB are free");
      expect(await search(app)).toBe(MESSAGES);
      await storeMail(app, `room${mb}`);
    }
    await leave(180);
    await indexAll(app);
    expect((await freeOn(dir)).bytes).toBeGreaterThan(128 * MB);
    expect(await searchWarning(app)).toBeUndefined();
    expect(await search(app)).toBe(MESSAGES);
  },
);
