import { expect, test } from "bun:test";
import { insertRow } from "../../src/db/prepared.ts";
import { createHttp } from "../../src/api.ts";
import { unzip } from "../support/unzip.ts";
import { startModelServer } from "../support/model-server.ts";
import { recallTurns } from "../../src/resources/conversations/conversations.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { storeConversations, storeMessages } from "./archive.ts";
import { deskOf, modelAt } from "./desk.ts";
import { openStream } from "./stream-reader.ts";

const DEMO = { llm: { kind: "demo" as const } };
/** See `lib/portions.ts`. */
const PORTION_BYTES = 1_048_576;
const LONG = "ä".repeat(200_000);

/** An account with one thread of `count` turns of 400 KB, oldest first. */
async function longThread(t: TestApp, count: number) {
  const { ada, inbox_id } = await deskOf(t);
  const [thread] = await storeConversations(t, ada.user, [{ inbox_id }]);
  const conversation_id = thread?.id ?? "";
  const rows = await storeMessages(
    t,
    ada.user,
    Array.from({ length: count }, (_, at) => ({ inbox_id, conversation_id, result: `${at} ${LONG}` })),
  );
  return { ada, conversation_id, rows, ids: rows.map(({ id }) => id) };
}

/** The longest that any query of the server gave meanwhile, in characters of its rows. */
async function longestRead(t: TestApp, act: () => Promise<unknown>): Promise<number> {
  const executor = t.app.db.getExecutor();
  const execute = executor.executeQuery;
  let longest = 0;
  executor.executeQuery = async (query) => {
    const result = await execute.call(executor, query);
    longest = Math.max(longest, Buffer.byteLength(JSON.stringify(result.rows)));
    return result as never;
  };
  try {
    await act();
  } finally {
    executor.executeQuery = execute;
  }
  return longest;
}

async function walk(caller: Caller, query: string): Promise<string[][]> {
  const pages: string[][] = [];
  let next: string | null = "";
  while (next !== null) {
    const { body } = await caller.get(`/messages?${query}${next && `&cursor=${next}`}`);
    pages.push(body.items.map(({ message_id }: { message_id: string }) => message_id));
    next = body.next_cursor;
  }
  return pages;
}

test("a page ends early where its results are long, and the next one goes on behind it", async () => {
  await using t = await testApp(DEMO);
  const { ada, ids, conversation_id } = await longThread(t, 5);
  const newest = ids.toReversed();
  const pages = [newest.slice(0, 2), newest.slice(2, 4), newest.slice(4)];
  expect(await walk(ada, "limit=100")).toEqual(pages);
  expect(await walk(ada, `conversation_id=${conversation_id}&limit=3`)).toEqual(pages);
  expect(await walk(ada, "q=ÄÄÄ&limit=100")).toEqual(pages);
  expect((await walk(ada, "limit=1")).flat()).toEqual(newest);
});

test("a page of short results is as long as it was asked to be", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const rows = await storeMessages(
    t,
    ada.user,
    Array.from({ length: 100 }, () => ({ result: "Short." })),
  );
  expect(await walk(ada, "limit=100")).toEqual([rows.map(({ id }) => id).toReversed()]);
});

test("one result that is longer than a page is a page", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const rows = await storeMessages(t, ada.user, [
    { result: "a" },
    { result: "x".repeat(3 * PORTION_BYTES) },
    { result: "b" },
  ]);
  expect(await walk(ada, "limit=100")).toEqual(rows.map(({ id }) => [id]).toReversed());
});

test("no list, thread, search or stream reads more than a portion at once, whatever there is", async () => {
  await using t = await testApp(DEMO);
  const { ada, conversation_id, rows } = await longThread(t, 12);
  const stream = await openStream(t, { "x-api-key": ada.key });
  const paths = ["/messages?limit=100", "/messages?q=zzz", `/conversations/${conversation_id}`];
  for (const path of paths)
    expect([path, (await longestRead(t, () => ada.get(path))) < 1.1 * PORTION_BYTES]).toEqual([path, true]);
  const told: string[] = [];
  const read = await longestRead(t, async () => {
    for (const { id } of rows) t.app.changes.tell(ada.user.id, id);
    while (told.length < rows.length) told.push((await stream.next())?.data.message_id);
  });
  expect(new Set(told)).toEqual(new Set(rows.map(({ id }) => id)));
  expect(read).toBeLessThan(1.1 * PORTION_BYTES);
  await stream.leave();
});

test("a search through more than it may read gives an early page, and finds what is behind it", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const [needle] = await storeMessages(t, ada.user, [
    { result: "a needle", tags: '["needle"]' },
    ...Array.from({ length: 40 }, () => ({ result: "x".repeat(PORTION_BYTES) })),
  ]);
  const pages = await walk(ada, "tag=needle");
  expect(pages).toEqual([[], [needle?.id ?? ""]]);
  // No more is read of each than is indexed.
  expect(await walk(ada, "q=needle")).toEqual([[needle?.id ?? ""]]);
});

test("a thread shows its newest turns, as many as fit, and always one", async () => {
  await using t = await testApp(DEMO);
  const { ada, conversation_id, ids } = await longThread(t, 5);
  const shown = async () => {
    const { body } = await ada.get(`/conversations/${conversation_id}`);
    return body.turns.map(({ message_id }: { message_id: string }) => message_id);
  };
  expect(await shown()).toEqual(ids.slice(-2));
  await storeMessages(t, ada.user, [{ conversation_id, result: "x".repeat(3 * PORTION_BYTES) }]);
  expect(await shown()).toHaveLength(1);
});

test("a run reads no more than the ends of replies that are too long to be reminded of", async () => {
  await using t = await testApp(DEMO);
  const { ada, conversation_id } = await longThread(t, 20);
  const [short, now] = await storeMessages(t, ada.user, [
    { conversation_id, instruction: "Say it", result: "ä".repeat(20_000) },
    { conversation_id, state: "received" },
  ]);
  if (!short || !now) throw new Error("Nothing was stored");
  const read = await longestRead(t, async () => {
    expect((await recallTurns(t.app.db, now)).at(-1)).toEqual({ instruction: "Say it", reply: short.result });
  });
  expect(read).toBeLessThan(600_000);
});

test("a result is kept up to 1 MB, and says where it was cut", async () => {
  const fitting = "ä".repeat(PORTION_BYTES / 2);
  await using model = startModelServer({
    reply: ({ messages }) => (messages.at(-1)?.content.includes("more") ? `${fitting}👋` : fitting),
  });
  await using t = await testApp(modelAt(model));
  const { ada } = await deskOf(t);
  const { body: whole } = await ada.post("/v1/messages", { instruction: "Fill it" });
  expect([whole.result === fitting, whole.steps]).toEqual([true, []]);
  const { body: cut } = await ada.post("/v1/messages", { instruction: "Fill it, and more" });
  const words = "The result was cut here: at most 1 MB of one is kept.";
  expect(cut.result === `${fitting}\n\n${words}`).toBe(true);
  expect(cut.steps).toMatchObject([{ type: "warning", output: words }]);
  const { body: kept } = await ada.get(`/v1/messages/${cut.message_id}`);
  expect(kept.result === cut.result).toBe(true);
});

test("all contexts come whole in one list, of which no more than a portion is read at once", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const made: object[] = [];
  for (let at = 0; at < 12; at += 1)
    made.push(
      (
        await ada.post("/contexts", {
          title: `T${at}`,
          kind: "knowledge",
          body: `${at} ${LONG.slice(0, 125_000)}`,
        })
      ).body,
    );
  const bob = await t.as("bob@example.com");
  let list: unknown;
  const read = await longestRead(t, async () => (list = (await ada.get("/contexts")).body));
  expect(JSON.stringify(list) === JSON.stringify(made)).toBe(true);
  expect(read).toBeLessThan(1.1 * PORTION_BYTES);
  expect((await bob.get("/contexts")).body).toEqual([]);
});

test("an export holds all long texts, and reads no more than a portion at once", async () => {
  await using t = await testApp(DEMO);
  const { ada, ids } = await longThread(t, 12);
  await ada.post("/contexts", { title: "Voice", kind: "knowledge", body: "Plain words." });
  const body = `{"a":"${LONG}"}`;
  const event = { user_id: ada.user.id, type: "message.completed" as const, message_id: null, livemode: 1 };
  await t.app.write(async (tx) => {
    for (const id of ids)
      await insertRow(tx, "events", { ...event, id: `evt_${id}`, body, created: t.app.now() });
  });
  const http = createHttp(t.app, { ready: async () => ({}) });
  let archive = Buffer.alloc(0);
  const read = await longestRead(t, async () => {
    const request = new Request("http://mw.test/auth/export", { headers: { "x-api-key": ada.key } });
    archive = Buffer.from(await (await http.handle(request)).arrayBuffer());
  });
  const files = await unzip(archive);
  const lines = (name: string) => files.get(name)?.toString().trim().split("\n") ?? [];
  expect(lines("messages.jsonl").map((line) => JSON.parse(line).message_id)).toEqual(ids);
  expect(lines("messages.jsonl").every((line) => line.includes(LONG))).toBe(true);
  expect(lines("events.jsonl")).toEqual(ids.map(() => body));
  expect(read).toBeLessThan(1.1 * PORTION_BYTES);
});

test("a run reads only those of many contexts that it has room for, and says so of the others", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  for (let at = 0; at < 12; at += 1)
    await ada.post("/contexts", { title: `T${at}`, kind: "instruction", body: "ä".repeat(20_000) });
  let steps: { output: string }[] = [];
  const read = await longestRead(t, async () => {
    steps = (await ada.post("/v1/messages", { instruction: "Say hello" })).body.steps;
  });
  const told = ["given to the model", "was cut", "left out"].map(
    (word) => steps.filter(({ output }) => output.includes(word)).length,
  );
  expect(told).toEqual([2, 1, 9]);
  expect(read).toBeLessThan(200_000);
});
