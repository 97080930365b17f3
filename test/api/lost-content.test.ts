import { describe, expect, spyOn, test } from "bun:test";
import { mkdtemp, readdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Migrator } from "kysely/migration";
import { sql } from "kysely";
import { migrations } from "../../migrations/index.ts";
import { backupToFile, sourceOf } from "../../src/backup/write-backup.ts";
import { exportOf } from "../../src/operation/export/export.ts";
import { zipOf } from "../../src/lib/zip.ts";
import { openDatabase } from "../../src/db/database.ts";
import { migrateToLatest } from "../../src/db/migrate.ts";
import { missingBytesWarning } from "../../src/db/missing-bytes.ts";
import { storeBytes } from "../../src/resources/messages/stored-bytes.ts";
import { hold, release } from "../../src/operation/admin/queue.ts";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";
import { unzip } from "../support/unzip.ts";

const FILE_BYTES = 100_000;
const LOST = { status: 410, body: { code: "content_lost", title: "The content is missing" } };

/** A server with two people, of whom each has sent a file of their letter. */
async function twoFiles() {
  const t = await testApp({ llm: { kind: "demo" } });
  const [ann, bob] = [await t.as("ann@example.com"), await t.as("bob@example.com")];
  for (const caller of [ann, bob]) {
    await caller.post("/inboxes", {});
    const data = Buffer.alloc(FILE_BYTES, caller === ann ? "a" : "b").toString("base64");
    const attachments = [{ filename: "letters.txt", content_type: "text/plain", data }];
    await caller.post("/v1/messages", { instruction: "Read it", attachments });
  }
  return { ...t, ann, bob };
}

async function fileOf(caller: Caller) {
  const { items } = (await caller.get("/messages")).body;
  const { status, body } = await caller.get(items[0].attachments[0].url);
  return { status, body: typeof body === "string" ? [...new Set(body)].join("") : body };
}

function segmentOf({ app }: TestApp): string {
  return join(app.config.data.dir, "mail", "00000001.seg");
}

test("bytes at the place of others are never given to anybody, and are found again once they are back", async () => {
  await using t = await twoFiles();
  const whole = await readFile(segmentOf(t));
  const [first, second] = [whole.subarray(0, FILE_BYTES), whole.subarray(FILE_BYTES)];
  await writeFile(segmentOf(t), Buffer.concat([second, first]));
  const error = spyOn(t.app.log, "error");
  for (const caller of [t.ann, t.bob, t.ann]) expect(await fileOf(caller)).toMatchObject(LOST);
  expect(error.mock.calls.map(([, words]) => words)).toEqual(
    Array(2).fill("bytes of a mail or file are missing, unreadable, or not what was stored"),
  );
  expect(await missingBytesWarning(t.app)).toEndWith("or not what was stored: 2 files (196 KB)");
  const [message] = (await t.ann.get("/messages")).body.items;
  expect(message.attachments).toMatchObject([{ filename: "letters.txt", lost: true }]);
  await writeFile(segmentOf(t), whole);
  expect(await fileOf(t.ann)).toEqual({ status: 200, body: "a" });
  expect(await missingBytesWarning(t.app)).toEndWith(": 1 file (98 KB)");
  expect(await fileOf(t.bob)).toEqual({ status: 200, body: "b" });
  expect(await missingBytesWarning(t.app)).toBeUndefined();
});

test("a checksum means the same in every version: of XXH64, with the id as its seed", async () => {
  await using t = await testApp();
  expect(Bun.hash.xxHash64("abc")).toBe(0x44bc2cf5ad770999n);
  const bytes = Buffer.alloc(20_000, "x");
  const store = async () => storeBytes(t.app, "0198c0ff-ee00-7000-8000-00000000cafe", bytes);
  const stored = await t.app.write(store, { stores: [bytes] });
  expect(stored).toMatchObject({ segment: 1, segment_offset: 0, checksum: 54_580_579_609_613 });
});

test("one changed bit is as good as nothing", async () => {
  await using t = await twoFiles();
  const bytes = await readFile(segmentOf(t));
  bytes[FILE_BYTES + 7] = (bytes[FILE_BYTES + 7] as number) ^ 1;
  await writeFile(segmentOf(t), bytes);
  expect(await fileOf(t.bob)).toMatchObject(LOST);
  expect(await fileOf(t.ann)).toEqual({ status: 200, body: "a" });
});

test("a row that names the place of another's bytes, sum and all, gets none of them", async () => {
  await using t = await twoFiles();
  await sql`update attachments set (segment, segment_offset, checksum) =
    (select segment, segment_offset, checksum from attachments order by segment_offset limit 1)`.execute(
    t.app.db,
  );
  expect(await fileOf(t.bob)).toMatchObject(LOST);
  expect(await fileOf(t.ann)).toEqual({ status: 200, body: "a" });
});

test("a mail as it came in that is gone is said to be, and the rest of its story is told", async () => {
  await using room = await mailroom();
  await room.send({ text: "word ".repeat(10_000) });
  await room.drain();
  const { message_id } = (await room.activity())[0];
  await rm(segmentOf(room));
  expect(await room.owner.get(`/messages/${message_id}/raw`)).toMatchObject({
    status: 410,
    body: { code: "content_lost", detail: "The mail as it came in is missing on the disk of this server." },
  });
  expect((await room.owner.get(`/messages/${message_id}`)).body).toMatchObject({
    status: "done",
    content: null,
    raw_available: false,
  });
});

const FAILED = {
  status: "failed",
  reason: "content_lost",
  error: "The mail as it came in is missing on the disk of this server. Send it again.",
  credits_charged: 0,
};

describe("a mail before it is worked on", () => {
  const losses: [string, (path: string) => Promise<void>][] = [
    ["whose file is gone", (path) => rm(path)],
    ["whose file is shorter, as a copy that lags", (path) => truncate(path, 10)],
  ];
  test.each(losses)("%s waits for it, and fails with these words after an hour", async (_, lose) => {
    await using room = await mailroom();
    await room.send({ text: "word ".repeat(10_000) });
    await lose(segmentOf(room));
    for (let passed = 0; passed < 55; passed += 5) {
      await room.drain();
      room.clock.advance("5m");
    }
    await room.drain();
    expect((await room.activity())[0]).toMatchObject({ status: "received", reason: null });
    expect(await missingBytesWarning(room.app)).toContain("1 mail");
    room.clock.advance("5m");
    await room.drain();
    const [{ message_id, ...message }] = await room.activity();
    expect(message).toMatchObject(FAILED);
    expect(await room.owner.post(`/messages/${message_id}/retry`)).toMatchObject(LOST);
  });

  test("waits an hour for it although the clock was days ahead when that was noted", async () => {
    await using room = await mailroom();
    await room.send({ text: "word ".repeat(10_000) });
    await rm(segmentOf(room));
    room.clock.leap("30d");
    await room.drain();
    room.clock.leap("-30d");
    // As every job that is planned too far ahead once the clock is set back.
    await room.app.db.updateTable("jobs").set({ run_at: 0 }).where("kind", "=", "route_message").execute();
    for (let passed = 0; passed < 65; passed += 5) {
      await room.drain();
      room.clock.advance("5m");
    }
    expect((await room.activity())[0]).toMatchObject(FAILED);
  });

  test("whose file comes back in time is worked on as if nothing had been", async () => {
    await using room = await mailroom();
    await room.send({ text: "word ".repeat(10_000) });
    const path = segmentOf(room);
    await rename(path, `${path}.away`);
    await room.drain();
    room.clock.advance("50m");
    await room.drain();
    await rename(`${path}.away`, path);
    room.clock.advance("5m");
    await room.drain();
    expect((await room.activity())[0]).toMatchObject({ status: "done" });
    expect(await missingBytesWarning(room.app)).toBeUndefined();
  });

  test("at whose place other bytes lie fails with these words at once", async () => {
    await using room = await mailroom();
    await room.send({ text: "word ".repeat(10_000) });
    const bytes = await readFile(segmentOf(room));
    await writeFile(segmentOf(room), bytes.fill(7));
    await room.drain();
    expect((await room.activity())[0]).toMatchObject(FAILED);
  });
});

test("an export leaves out what is missing, and names it", async () => {
  await using t = await twoFiles();
  const { app } = t;
  const user = await app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", t.ann.user.id)
    .executeTakeFirst();
  if (!user) throw new Error("There is no such account");
  const whole = async () => unzip(Buffer.concat(await Array.fromAsync(zipOf(exportOf(app, user)))));
  const before = await whole();
  expect(before.has("missing.txt")).toBe(false);
  const name = [...before.keys()].find((one) => one.startsWith("attachments/")) ?? "";
  await rm(segmentOf(t));
  const after = await whole();
  expect(String(after.get("missing.txt"))).toBe(`${name}\n`);
  expect(String(after.get("README.txt"))).toContain("missing.txt");
  expect([...before.keys()].filter((one) => !after.has(one))).toEqual([name]);
});

test("a backup counts what is missing, marked or not, and zeros stand for none of it as content", async () => {
  const base = await mkdtemp(join(tmpdir(), "mailwright-lost-"));
  await using t = await testApp({ llm: { kind: "demo" }, database: { url: `sqlite:${join(base, "x.db")}` } });
  const ann = await t.as("ann@example.com");
  await ann.post("/inboxes", {});
  const data = Buffer.alloc(FILE_BYTES, "a").toString("base64");
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
  await ann.post("/v1/messages", { instruction: "Read it", attachments });
  const missing = async () => {
    const source = sourceOf(t.app.config, t.app.now());
    const { manifest } = await backupToFile(source, join(base, "x.zip"), new AbortController().signal);
    return manifest.missing_bytes;
  };
  expect(await missing()).toBe(0);
  await rm(segmentOf(t));
  expect(await missing()).toBe(FILE_BYTES);
  expect(await fileOf(ann)).toMatchObject(LOST);
  expect(await missing()).toBe(FILE_BYTES);
  await rm(base, { recursive: true });
});

test("what an earlier version stored is served as it is, but for zeros", async () => {
  await using t = await twoFiles();
  await t.app.db.updateTable("attachments").set({ checksum: null }).execute();
  expect(await fileOf(t.ann)).toEqual({ status: 200, body: "a" });
  const bytes = await readFile(segmentOf(t));
  await writeFile(segmentOf(t), bytes.fill(0, 0, FILE_BYTES));
  expect(await fileOf(t.ann)).toMatchObject(LOST);
  expect(await fileOf(t.bob)).toEqual({ status: 200, body: "b" });
});

test("where an earlier version gave bytes to two, the younger keeps them: reading, deleting and all", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0017");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  const ids = ["1", "2", "3", "4", "5"];
  const places = [
    [1, 0, 100],
    [1, 50, 200],
    [1, 250, 50],
    [2, 0, 100],
    [2, 0, 30],
  ];
  for (const [index, [segment, segment_offset, size]] of places.entries())
    await sql`insert into raw_mails (id, size, created, segment, segment_offset)
      values (${ids[index]}, ${size}, 0, ${segment}, ${segment_offset})`.execute(db);
  await migrateToLatest(db);
  const rows = await db.selectFrom("raw_mails").select(["id", "checksum", "lost_at"]).orderBy("id").execute();
  expect(rows.map(({ lost_at }) => lost_at !== null)).toEqual([true, false, false, true, false]);
  expect(rows.map(({ checksum }) => checksum)).toEqual([-1, null, null, -1, null]);
});

test("deleting an account erases no byte that a row of another names", async () => {
  await using t = await twoFiles();
  const { app } = t;
  // As an earlier version left it: both rows name the bytes that were written last.
  await sql`update attachments set segment_offset = ${FILE_BYTES / 2}, checksum = -1
    where segment_offset = 0`.execute(app.db);
  await t.request("/auth/account", {
    method: "DELETE",
    headers: { "x-api-key": t.ann.key, "content-type": "application/json" },
    body: JSON.stringify({ confirm: "ann@example.com" }),
  });
  await t.drain();
  expect(await app.db.selectFrom("attachments").select("id").execute()).toHaveLength(1);
  expect(await fileOf(t.bob)).toEqual({ status: 200, body: "b" });
  const bytes = await readFile(segmentOf(t));
  expect([bytes[0], bytes[FILE_BYTES - 1], bytes[FILE_BYTES]]).toEqual([0, 0, 98]);
  expect(await readdir(join(app.config.data.dir, "mail"))).toHaveLength(1);
});

test.each([
  ["its content", sql`delete from message_contents`],
  ["one of its files", sql`update attachments set direction = 'io' where filename = 'b.txt'`],
])(
  "a call of which %s is not found fails, costs nothing, and is not done without it",
  async (_what, damage) => {
    await using room = await mailroom();
    await hold(room.app, ["route_message"]);
    const attachments = ["a.txt", "b.txt"].map((filename) => ({
      filename,
      content_type: "text/plain",
      data: Buffer.from(filename).toString("base64"),
    }));
    const call = { instruction: "Sum it up.", content: "What it is about.", attachments };
    const answer = await room.owner.post("/v1/messages", call, { prefer: "respond-async" });
    expect(answer.status).toBe(202);
    await sql`pragma foreign_keys = off`.execute(room.app.db);
    await damage.execute(room.app.db);
    await sql`pragma foreign_keys = on`.execute(room.app.db);
    await release(room.app, ["route_message"]);
    await room.drain();
    expect(await room.newest()).toMatchObject({
      state: "failed",
      reason: "content_lost",
      credits_charged: 0,
    });
    expect(room.model.requests).toEqual([]);
    expect((await queueWarnings(room.app)).dead).toBeDefined();
    const again = await room.owner.post(`/messages/${(await room.newest()).id}/retry`);
    expect(again).toMatchObject({ status: 410, body: { code: "content_lost" } });
  },
);

test.each([
  ["its content", sql`delete from message_contents`],
  ["its file", sql`delete from attachments`],
])(
  "a call of which %s is not found any more is not tried again, nor run by its schedule",
  async (_what, damage) => {
    const down = { on: true };
    await using room = await mailroom({
      model: { reply: () => (down.on ? new Response("no", { status: 401 }) : "fine") },
    });
    const data = Buffer.from("A balloon besides.").toString("base64");
    const call = {
      content: "The zeppelin lands at noon.",
      attachments: [{ filename: "a.txt", content_type: "text/plain", data }],
    };
    await room.owner.post("/v1/messages", { instruction: "Sum it up.", ...call });
    const failed = await room.newest();
    const instruction = '--every="daily 9:00" --title=News\nSum it up.';
    await room.owner.post("/v1/messages", { instruction, ...call });
    down.on = false;
    const asked = room.model.requests.length;
    await damage.execute(room.app.db);
    const again = await room.owner.post(`/messages/${failed.id}/retry`);
    expect(again).toMatchObject({ status: 410, body: { code: "content_lost" } });
    room.clock.advance("1d");
    await room.drain();
    const [schedule] = (await room.owner.get("/v1/schedules")).body;
    expect(schedule).toMatchObject({ status: "paused", reason: expect.stringContaining("is missing") });
    expect(room.model.requests).toHaveLength(asked);
  },
);
