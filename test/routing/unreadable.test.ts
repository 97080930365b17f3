import { describe, expect, test } from "bun:test";
import type { KyselyPlugin } from "kysely";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { currentMissingBytesWarning, missingBytesWarning } from "../../src/db/missing-bytes.ts";
import { sweepFiles } from "../../src/operation/retention/tidy-segments.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";

/** Long enough to lie beside the database. */
const LARGE = "Say hello.\n".repeat(3_000);

/** A large mail, one behind it in its conversation, and another large one that is well. */
async function threeMails() {
  const room = await mailroom();
  await room.send({ text: LARGE, headers: { "Message-ID": "<one@example.com>" } });
  const first = await room.newest();
  const headers = { "Message-ID": "<two@example.com>", "In-Reply-To": "<one@example.com>" };
  await room.send({ text: "And this?", headers });
  expect((await room.newest()).conversation_id).toBe(first.conversation_id);
  await room.send({ text: LARGE, headers: { "Message-ID": "<three@example.com>" } });
  return { ...room, first };
}

/** From now on the disk cannot read these bytes of the files of mails; gives what heals it. */
async function badSector(room: Mailroom, { segment_offset = -1 } = {}): Promise<() => void> {
  const { read } = room.app.segments;
  room.app.segments.read = (range) =>
    segment_offset === -1 || range.offset === segment_offset
      ? Promise.reject(Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" }))
      : read(range);
  return () => void (room.app.segments.read = read);
}

async function sectorOf(room: Mailroom, id: string | null): Promise<{ segment_offset: number }> {
  const row = await room.app.db
    .selectFrom("raw_mails")
    .select("segment_offset")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return { segment_offset: row.segment_offset ?? -2 };
}

/** The database cannot read these rows of mails any more. */
function badPage(room: Mailroom, isBad: (id: string) => boolean): void {
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult({ result }) {
      const mails = result.rows.filter((row) => "bytes" in row);
      if (!mails.some(({ id }) => isBad(String(id)))) return Promise.resolve(result);
      return Promise.reject(Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" }));
    },
  };
  room.app.db = room.app.db.withPlugin(plugin);
}

async function wait(room: Mailroom, minutes: number): Promise<void> {
  for (let passed = 0; passed < minutes; passed += 5) {
    await room.drain();
    room.clock.advance("5m");
  }
  await room.drain();
}

async function endings(room: Mailroom): Promise<string[]> {
  const rows = await room.app.db.selectFrom("messages").select(["state", "reason"]).orderBy("id").execute();
  return rows.map(({ state, reason }) => reason ?? state);
}

const mailed = async (room: Mailroom) => (await room.outgoing()).map(({ kind }) => kind).toSorted();
const rawOf = async (room: Mailroom, { id }: { id: string }) =>
  (await room.owner.get(`/messages/${id}/raw`)).status;

describe("the bytes of a mail that the disk cannot read any more, though it reads others", () => {
  test("are lost after an hour: its sender and the operator are told, and the next mail has its turn", async () => {
    await using room = await threeMails();
    const heal = await badSector(room, await sectorOf(room, room.first.raw_mail_id));
    await wait(room, 50);
    expect(await endings(room)).toEqual(["received", "received", "done"]);
    expect(await missingBytesWarning(room.app)).toBeUndefined();
    await wait(room, 20);
    expect(await endings(room)).toEqual(["content_lost", "done", "done"]);
    expect(await mailed(room)).toEqual(["notice", "reply", "reply"]);
    for (const words of [await missingBytesWarning(room.app), await currentMissingBytesWarning(room.app)])
      expect(words).toMatch(/^Missing or unreadable in .+: 1 mail /);
    expect(await rawOf(room, room.first)).toBe(410);
    // What puts the files in order is not held up by it.
    expect(await sweepFiles(room.app, new AbortController().signal)).toBe(true);
    heal();
    expect(await rawOf(room, room.first)).toBe(200);
    expect(await missingBytesWarning(room.app)).toBeUndefined();
  });

  test("are lost as well if there is nothing else to read", async () => {
    await using room = await mailroom();
    await room.send({ text: LARGE });
    await badSector(room);
    await wait(room, 70);
    expect(await endings(room)).toEqual(["content_lost"]);
  });

  test("are not lost while none of the others can be read: then it is the disk", async () => {
    await using room = await threeMails();
    const heal = await badSector(room);
    await wait(room, 300);
    expect(await endings(room)).toEqual(["received", "received", "received"]);
    expect(await missingBytesWarning(room.app)).toBeUndefined();
    heal();
    await wait(room, 5);
    expect(await endings(room)).toEqual(["done", "done", "done"]);
  });

  test("begin their hour anew when they could be read in between", async () => {
    await using room = await threeMails();
    await room.drain();
    const sector = await sectorOf(room, room.first.raw_mail_id);
    const heal = await badSector(room, sector);
    expect(await rawOf(room, room.first)).toBe(503);
    room.clock.advance("40m");
    heal();
    expect(await rawOf(room, room.first)).toBe(200);
    await badSector(room, sector);
    const statuses: number[] = [];
    for (let times = 0; times < 3; times += 1) {
      statuses.push(await rawOf(room, room.first));
      room.clock.advance("40m");
    }
    expect(statuses).toEqual([503, 503, 410]);
  });
});

describe("the row of a mail that the database cannot read any more, though it reads others", () => {
  test("is lost after an hour: its sender is told, and its job is kept for the operator", async () => {
    await using room = await threeMails();
    badPage(room, (id) => id === room.first.raw_mail_id);
    await wait(room, 50);
    expect(await endings(room)).toEqual(["received", "received", "done"]);
    expect(await queueWarnings(room.app)).toEqual({});
    await wait(room, 20);
    expect(await endings(room)).toEqual(["content_lost", "done", "done"]);
    expect(await mailed(room)).toEqual(["notice", "reply", "reply"]);
    expect(await queueWarnings(room.app)).toMatchObject({ dead: expect.stringContaining("1 job was") });
  });

  test("is not lost while none of the others can be read", async () => {
    await using room = await threeMails();
    badPage(room, () => true);
    await wait(room, 300);
    expect(await endings(room)).toEqual(["received", "received", "received"]);
  });
});
