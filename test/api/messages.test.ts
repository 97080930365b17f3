import { expect, test } from "bun:test";
import type { MessageState } from "../../src/db/schema.ts";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { storeMessages } from "./archive.ts";
import { deskOf } from "./desk.ts";
import { LISTEN, openDoor } from "./door.ts";

const DEMO = { llm: { kind: "demo" as const }, plans: { team: { route_per_minute: 0 } } };

test("pages go through every message once, newest first, also when all are of one moment", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const made: string[] = [];
  for (let turn = 0; turn < 7; turn++)
    made.unshift((await ada.post("/v1/messages", { instruction: `${turn}` })).body.message_id);
  for (const limit of [1, 2, 3, 6, 7, 8, 100]) {
    const pages = await allPages(ada, limit);
    expect(pages.flat()).toEqual(made);
    expect(pages.map((page) => page.length)).toEqual(sizesOf(7, limit));
  }
});

test("a message that arrives between two pages moves nothing", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  for (let turn = 0; turn < 4; turn++) await ada.post("/v1/messages", { instruction: `${turn}` });
  const first = (await ada.get("/messages?limit=2")).body;
  await ada.post("/v1/messages", { instruction: "later" });
  const second = (await ada.get(`/messages?limit=2&cursor=${first.next_cursor}`)).body;
  expect([...first.items, ...second.items].map(({ subject }) => subject)).toEqual(["3", "2", "1", "0"]);
  expect(second.next_cursor).toBe(null);
});

test("a page holds 50 unless told, and 1 to 100 if told", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  await Promise.all(
    Array.from({ length: 51 }, () => ada.post("/v1/messages", { instruction: "x", async: true })),
  );
  const page = (await ada.get("/messages")).body;
  expect([page.items.length, typeof page.next_cursor]).toEqual([50, "string"]);
  expect((await ada.get("/messages?limit=100")).body.items).toHaveLength(51);
  for (const limit of ["0", "101", "-1", "1.5", "abc", "", "null", "NaN", "Infinity"]) {
    const answer = await ada.get(`/messages?limit=${limit}`);
    expect([limit, answer.status, answer.body.errors[0].path]).toEqual([limit, 422, "query.limit"]);
    expect(answer.body.detail).toStartWith("query.limit must be");
  }
});

test("a cursor that we did not give out is refused, or leads to nothing of others", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  for (const cursor of [
    "x",
    "%00",
    "e30",
    "W10",
    encoded([1]),
    encoded(["a", "b"]),
    encoded({}),
    encoded(["~"]),
    encoded(["0".repeat(36)]),
    encoded([`${Bun.randomUUIDv7()} `]),
    encoded(Bun.randomUUIDv7()),
    "null",
    "",
  ]) {
    const answer = await ada.get(`/messages?cursor=${cursor}`);
    expect([cursor, answer.status, answer.body.code]).toEqual([cursor, 422, "invalid_cursor"]);
  }
  await ada.post("/v1/messages", { instruction: "x" });
  const bob = await t.as("bob@example.com");
  const last = encoded(["ffffffff-ffff-ffff-ffff-ffffffffffff"]);
  expect((await ada.get(`/messages?cursor=${last}`)).body.items).toHaveLength(1);
  expect((await bob.get(`/messages?cursor=${last}`)).body.items).toEqual([]);
});

test("the activity tells what was commanded and what came of it, never the content", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const called = await ada.post("/v1/messages", { instruction: "Note it", content: "the secret plan" });
  const [item] = (await ada.get("/messages")).body.items;
  expect(item).toMatchObject({
    message_id: called.body.message_id,
    conversation_id: called.body.conversation_id,
    inbox_id,
    source: "api",
    status: "done",
    command: { target: null, command: "Note it", options: {} },
    error: null,
    reason: null,
    steps: [],
    attachments: [],
    sender: null,
    credits_charged: 1,
    created: t.app.now(),
    completed: t.app.now(),
  });
  const { result: _quoted, ...rest } = item;
  expect(JSON.stringify(rest)).not.toContain("secret plan");
});

test("an attachment comes as a download that no browser would run", async () => {
  await using t = await testApp({ ...DEMO, server: LISTEN });
  await using door = await openDoor(t);
  const { ada } = await deskOf(t);
  const bytes = Buffer.from([0, 1, 2, 255, 254, 13, 10]);
  const [file] = await stored(ada, [
    { filename: 'Ünïcode "plan" (v2)\'%;.bin', content_type: "image/png", data: bytes.toString("base64") },
  ]);
  const response = await fetch(`${door.url}${file.url}`, { headers: { "x-api-key": ada.key } });
  expect(response.status).toBe(200);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes);
  expect(response.headers.get("content-disposition")).toBe(
    'attachment; filename="_n_code _plan_ (v2)\'_;.bin"; ' +
      "filename*=UTF-8''%C3%9Cn%C3%AFcode%20%22plan%22%20%28v2%29%27%25%3B.bin",
  );
  expect(response.headers.get("content-type")).toBe("image/png");
  expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  expect(response.headers.get("content-security-policy")).toBe("sandbox; default-src 'none'");
  expect(response.headers.get("cache-control")).toBe("private, no-store");
  expect(response.headers.get("x-request-id")).toStartWith("req_");
});

test.each([
  ["text/html", "application/octet-stream"],
  ["TEXT/HTML; charset=utf-8", "application/octet-stream"],
  ["image/svg+xml", "application/octet-stream"],
  ["application/xhtml+xml", "application/octet-stream"],
  ["text/xml", "application/octet-stream"],
  ["text/javascript", "application/octet-stream"],
  ["application/ecmascript", "application/octet-stream"],
  ["text/plain; charset=utf-8", "text/plain; charset=utf-8"],
  ["application/pdf", "application/pdf"],
  ['text/plain; name="日本"', "application/octet-stream"],
  ["text/plain; a=\u{1}", "application/octet-stream"],
])("an attachment of the type %p is served as %p", async (given, served) => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const [file] = await stored(ada, [{ filename: "a", content_type: given, data: "aGk=" }]);
  const answer = await ada.get(file.url);
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, served]);
});

test("an attachment whose bytes were purged keeps its line and answers 404", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const [file] = await stored(ada, [{ filename: "a.txt", content_type: "text/plain", data: "aGk=" }]);
  await t.app.db.updateTable("attachments").set({ bytes: null, purged_at: t.app.now() }).execute();
  const answer = await ada.get(file.url);
  expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  const [item] = (await ada.get("/messages")).body.items;
  expect(item.attachments).toEqual([{ ...file, purged: true }]);
});

test("a purged attachment of a segment is gone as well, and one under an unknown id never was", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const data = Buffer.alloc(40_000, "x").toString("base64");
  const [file] = await stored(ada, [{ filename: "a.txt", content_type: "text/plain", data }]);
  expect(file).toMatchObject({ direction: "in", size: 40_000 });
  expect((await ada.get(file.url)).body).toHaveLength(40_000);
  await t.app.db.updateTable("attachments").set({ segment: null, segment_offset: null }).execute();
  const purged = await ada.get(file.url);
  const unknown = await ada.get(file.url.replace(file.id, Bun.randomUUIDv7()));
  for (const answer of [purged, unknown])
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
});

test("a file of a mail is downloaded as one of a call is", async () => {
  await using room = await mailroom();
  await room.send({
    text: "Sum up",
    attachments: [{ filename: "../notes.html", content_type: "text/html", content: "<b>hi" }],
  });
  await room.drain();
  const [item] = await room.activity();
  const [file] = item.attachments;
  expect(file).toMatchObject({ direction: "in", filename: "notes.html", content_type: "text/html" });
  const answer = await room.owner.get(file.url);
  expect([answer.status, answer.body]).toEqual([200, "<b>hi"]);
  expect(answer.headers.get("content-type")).toBe("application/octet-stream");
  expect(answer.headers.get("content-disposition")).toStartWith('attachment; filename="notes.html"');
});

test("a raw mail comes to its owner byte by byte, as a download that no browser would run", async () => {
  await using room = await mailroom();
  const raw = rawMail({
    ...freshId(),
    from: "Ada <ada@example.com>",
    to: room.inbox.address,
    text: `Sum up ${"é".repeat(20_000)}`,
  });
  await room.send({ raw });
  const { id } = await room.newest();
  const answer = await room.owner.get(`/messages/${id}/raw`);
  expect(answer.status).toBe(200);
  // The door adds a Received field in front, and ends the last line.
  expect(answer.body.trimEnd()).toEndWith(raw.toString().trimEnd());
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "message/rfc822",
    "content-disposition": `attachment; filename="message-${id}.eml"; filename*=UTF-8''message-${id}.eml`,
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff",
  });
  await room.app.db
    .updateTable("raw_mails")
    .set({ bytes: null, segment: null, segment_offset: null, purged_at: room.app.now() })
    .execute();
  const purged = await room.owner.get(`/messages/${id}/raw`);
  expect([purged.status, purged.body.code]).toEqual([404, "not_found"]);
});

test("there is no raw mail of a call, of a refused mail, of another's or of none", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["ada@example.com"] } });
  await room.send({ text: "Sum up" });
  const { id: mail } = await room.newest();
  await room.send({ from: "Eve <eve@example.net>", text: "Let me in" });
  const { id: refused, state } = await room.newest();
  expect(state).toBe("rejected");
  const { body: call } = await room.owner.post("/v1/messages", { instruction: "Sum up", async: true });
  const bob = await room.as("bob@example.com");
  for (const [caller, id] of [
    [room.owner, call.message_id],
    [room.owner, refused],
    [room.owner, Bun.randomUUIDv7()],
    [bob, mail],
  ]) {
    const answer = await caller.get(`/messages/${id}/raw`);
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  }
  expect((await room.owner.get("/messages/x/raw")).status).toBe(422);
});

test("each state is shown as decided: in the activity, and to one who polls", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const cases: [MessageState, string, string | null, string, string | null][] = [
    ["received", "received", null, "processing", null],
    ["done", "done", null, "done", null],
    ["failed", "failed", "Why.", "failed", "Why."],
    ["limited", "limited", "Why.", "limited", "Why."],
    ["rejected", "rejected", "Why.", "failed", "Why."],
    ["skipped", "rejected", "skipped: Why.", "skipped", "Why."],
  ];
  for (const [state, status, error, routing, routing_error] of cases) {
    const ended =
      state === "received" || state === "done" ? {} : { error: "Why.", reason: "loop_cap" as const };
    const [row] = await storeMessages(t, ada.user, [{ ...ended, state, inbox_id, subject: "About" }]);
    const [item] = (await ada.get(`/messages?status=${status}&limit=1`)).body.items;
    expect(item).toMatchObject({ message_id: row?.id, status, error, result: "" });
    const polled = await ada.get(`/v1/messages/${row?.id}`);
    expect([state, polled.status, polled.headers.get("retry-after")]).toEqual([
      state,
      200,
      state === "received" ? "2" : null,
    ]);
    expect(polled.body).toEqual({
      message_id: row?.id,
      conversation_id: null,
      source: "email",
      status: routing,
      result: "",
      error: routing_error,
      usage: null,
      cost: null,
      steps: [],
      attachments: [],
      credits: { charged: 0, remaining: expect.any(Number) },
      reply_status: "none",
      subject: "About",
      metadata: {},
      created: t.app.now(),
    });
  }
  for (const id of ["x", Bun.randomUUIDv7(), "%00"]) {
    const answer = await ada.get(`/v1/messages/${id}`);
    expect([id, answer.status, answer.body.code]).toEqual([id, 404, "not_found"]);
  }
});

test("an empty attachment is one of no bytes, not a missing one", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const [file] = await stored(ada, [{ filename: "a.bin", content_type: "application/pdf", data: "" }]);
  const answer = await ada.get(file.url);
  expect([answer.status, answer.body, file.size]).toEqual([200, "", 0]);
});

async function allPages(ada: Caller, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  let next: string | null = "";
  while (next !== null && pages.length < 20) {
    const answer: Answer = await ada.get(`/messages?limit=${limit}${next === "" ? "" : `&cursor=${next}`}`);
    pages.push(answer.body.items.map(({ message_id }: { message_id: string }) => message_id));
    next = answer.body.next_cursor;
  }
  return pages;
}

function sizesOf(total: number, limit: number): number[] {
  return Array.from({ length: Math.ceil(total / limit) }, (_, page) => Math.min(limit, total - page * limit));
}

async function stored(ada: Caller, attachments: object[]) {
  await ada.post("/v1/messages", { instruction: "Store", attachments });
  return (await ada.get("/messages")).body.items[0].attachments;
}
