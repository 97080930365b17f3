import { expect, test } from "bun:test";
import { StorageError } from "../../src/db/storage-faults.ts";
import { createSharedMemory } from "../../src/lib/shared-memory.ts";
import { freshId, mailroom, type Mailroom, READS_ANYBODY } from "../support/mailroom.ts";
import { type ModelRequestBody, toolCalls } from "../support/model-server.ts";

const LONG = "A long line of words.\n".repeat(2_000);
/** So large that the server looks ahead whether it will be refused. */
const LARGE = LONG.repeat(8);
const FILE = { filename: "brought.txt", content_type: "text/plain", content: LONG };
/** A list of senders, on which Ann stands. */
const LISTED = { allowlist_senders: ["ann@example.com"] };

/** Makes a long file where it is asked for one. */
function reply({ messages, tools }: ModelRequestBody): Response | string {
  const name = tools?.find((tool) => tool.function.name.endsWith("create_file"))?.function.name ?? "";
  const is_asked = JSON.stringify(messages).includes("make a file") && messages.at(-1)?.role !== "tool";
  return is_asked ? toolCalls([{ name, args: { filename: "made.txt", content: LONG } }]) : "Done.";
}

/** Where the bytes of all mails and files lie, those above 16 KB. */
async function places({ app }: Mailroom): Promise<{ in_mail_files: number; in_rows: number }> {
  const columns = ["bytes", "segment", "size"] as const;
  const mails = await app.db.selectFrom("raw_mails").select(columns).execute();
  const files = await app.db.selectFrom("attachments").select(columns).execute();
  const long = [...mails, ...files].filter(({ size }) => size > 16 * 1024);
  return {
    in_mail_files: long.filter(({ segment, bytes }) => segment !== null && bytes === null).length,
    in_rows: long.filter(({ bytes }) => bytes !== null).length,
  };
}

test("long bytes lie in the mail files, by whichever way they came, and where a run made them", async () => {
  await using room = await mailroom({ model: { reply } });
  await room.send({ text: "Please make a file", attachments: [FILE] });
  await room.drain();
  // The mail, its file, and the one that was made.
  expect(await places(room)).toEqual({ in_mail_files: 3, in_rows: 0 });
  const file = { filename: "a.txt", content_type: "text/plain", data: btoa(LONG) };
  const call = await room.owner.post("/v1/messages", {
    instruction: "Please make a file",
    attachments: [file],
  });
  expect([call.status, call.body.status]).toEqual([200, "done"]);
  expect(await places(room)).toEqual({ in_mail_files: 5, in_rows: 0 });
  const tried = await room.owner.post(`/inboxes/${room.inbox.id}/test`, { content: LONG });
  expect(tried.status).toBe(200);
  // The mail of the test, and the content that is a file of it.
  expect(await places(room)).toEqual({ in_mail_files: 7, in_rows: 0 });
  await room.app.db
    .updateTable("messages")
    .set({ state: "failed", reason: "internal" })
    .where("id", "=", call.body.message_id)
    .execute();
  expect((await room.owner.post(`/messages/${call.body.message_id}/retry`)).status).toBe(202);
  await room.drain();
  expect(await places(room)).toEqual({ in_mail_files: 9, in_rows: 0 });
});

test.each([
  ["of a stranger to an inbox with a list", { inbox: LISTED }, { from: "Eve <eve@example.net>" }],
  ["that nothing proves", { config: { smtp: { trusted_networks: [] } } }, { from: "Eve <eve@example.net>" }],
  [
    "of a mailing list",
    {},
    { from: "News <news@example.net>", headers: { ...freshId().headers, "List-Id": "<news.example.net>" } },
  ],
])("a large mail %s is not written to the disk", async (_name, options, mail) => {
  await using room = await mailroom({ model: { reply }, ...options });
  const before = room.app.segments.position();
  await room.send({ text: LARGE, ...mail });
  expect(room.app.segments.position()).toEqual(before);
});

test("a large mail that was here before, or that comes too often, is not written to the disk", async () => {
  await using room = await mailroom({
    model: { reply },
    inbox: READS_ANYBODY,
    config: { limits: { inbound_per_sender_hour: 2 } },
  });
  const from = "Ann <ann@example.com>";
  const mail = { from, text: LARGE, ...freshId() };
  expect(await room.send(mail)).toStartWith("250");
  const once = room.app.segments.position();
  expect(await room.send(mail)).toStartWith("250");
  expect(room.app.segments.position()).toEqual(once);
  expect(await room.send({ from, text: `${LARGE}again` })).toStartWith("250");
  const twice = room.app.segments.position();
  expect(await room.send({ from, text: `${LARGE}and again` })).toStartWith("451");
  expect(room.app.segments.position()).toEqual(twice);
  expect(await places(room)).toEqual({ in_mail_files: 2, in_rows: 0 });
});

test.each([
  ["comes too often", { route_per_minute: 1 }, [200, 429]],
  ["finds no room", { route_per_minute: 0, storage_mb: 1 }, [507, 507]],
  ["finds no credits", { route_per_minute: 0, credits: 1 }, [200, 429]],
])("a call with a long file that %s is not written to the disk", async (_what, team, statuses) => {
  await using room = await mailroom({ model: { reply }, config: { plans: { team } } });
  const long = LONG.repeat(40);
  const call = () =>
    room.owner.post("/v1/messages", {
      instruction: "Read this",
      attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa(long) }],
    });
  const ends: number[] = [];
  for (const status of statuses) {
    expect((await call()).status).toBe(status);
    ends.push(room.app.segments.position().offset);
  }
  const taken = statuses.filter((status) => status === 200).length;
  expect(ends.at(-1)).toBe(taken * long.length);
});

test("a disk that is full for whatever comes in is written to for no long mail", async () => {
  await using room = await mailroom({ model: { reply } });
  Object.assign(room.app, {
    refuseIntake: () => {
      throw new StorageError("SQLITE_FULL", "only 10 MB are free");
    },
  });
  expect(await room.send({ text: LONG })).toStartWith("451");
  expect(room.app.segments.position().offset).toBe(0);
});

test("the long files of a schedule lie in the mail files, at its time and where it is run at once", async () => {
  await using room = await mailroom({ model: { reply } });
  const made = await room.owner.post("/v1/messages", {
    instruction: '--every="daily 8:00" Read this',
    attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa(LONG) }],
  });
  expect(made.body.status).toBe("done");
  const [schedule] = (await room.owner.get("/v1/schedules")).body;
  expect((await room.owner.post(`/v1/schedules/${schedule.id}/run`)).status).toBe(202);
  await room.drain();
  expect(await places(room)).toEqual({ in_mail_files: 2, in_rows: 0 });
  room.clock.advance("1d");
  await room.drain();
  expect(await places(room)).toEqual({ in_mail_files: 3, in_rows: 0 });
});

test("what is begun again is read only where there is memory for it", async () => {
  await using room = await mailroom({ model: { reply } });
  const { body } = await room.owner.post("/v1/messages", {
    instruction: "Read this",
    attachments: [{ filename: "a.txt", content_type: "text/plain", data: btoa(LONG) }],
  });
  await room.app.db.updateTable("messages").set({ state: "failed", reason: "internal" }).execute();
  room.app.bodyMemory = createSharedMemory({ budget: LONG.length, small: 1 });
  const retry = () => room.owner.post(`/messages/${body.message_id}/retry`);
  const crowded = await retry();
  expect([crowded.status, crowded.body.code, crowded.headers.get("retry-after")]).toEqual([
    503,
    "unavailable",
    "5",
  ]);
  room.app.bodyMemory = createSharedMemory({ budget: 2 * LONG.length, small: 1 });
  expect((await retry()).status).toBe(202);
});
