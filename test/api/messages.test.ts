import { expect, test } from "bun:test";
import { type Answer, type Caller, testApp } from "../support/app.ts";
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
    "null",
    "",
  ]) {
    const answer = await ada.get(`/messages?cursor=${cursor}`);
    expect([cursor, answer.status, answer.body.code]).toEqual([cursor, 422, "invalid_cursor"]);
  }
  await ada.post("/v1/messages", { instruction: "x" });
  const bob = await t.as("bob@example.com");
  expect((await bob.get(`/messages?cursor=${encoded(["~"])}`)).body.items).toEqual([]);
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
