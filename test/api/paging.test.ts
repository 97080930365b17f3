import { expect, test } from "bun:test";
import fc from "fast-check";
import type { MessageState } from "../../src/db/schema.ts";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { plansOf, queriesOf } from "../support/query-plans.ts";
import { storeConversations, storeMessages } from "./archive.ts";
import { deskOf } from "./desk.ts";

const DEMO = {
  llm: { kind: "demo" as const },
  plans: { team: { route_per_minute: 0, api_per_minute: 0 } },
};
/** See `resources/messages/list.ts`. */
const MAX_LOOKED_AT = 2_000;

const SHOWN_AS: Record<MessageState, string> = {
  received: "received",
  done: "done",
  failed: "failed",
  limited: "limited",
  rejected: "rejected",
  skipped: "rejected",
};
const STATES = Object.keys(SHOWN_AS) as MessageState[];
const SOURCES = ["email", "api", "test"] as const;

test("no page scans a table or sorts: every query of it searches along an index", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const { body: call } = await ada.post("/v1/messages", { instruction: "x" });
  await ada.post("/v1/messages", { instruction: "y" });
  const conversation = `conversation_id=${call.conversation_id}`;
  const cursors = {
    messages: (await ada.get("/messages?limit=1")).body.next_cursor,
    conversations: (await ada.get("/conversations?limit=1")).body.next_cursor,
  };
  const paths: [string, string][] = [
    ["/messages", "messages_user_id_id"],
    [`/messages?cursor=${cursors.messages}`, "messages_user_id_id"],
    ["/messages?since=1&until=253402300799", "messages_user_id_id"],
    ["/messages?source=api", "messages_user_id_id"],
    ["/messages?status=done", "messages_user_id_id"],
    ["/messages?status=failed", "messages_user_id_state_id"],
    ["/messages?status=rejected", "messages_user_id_state_id"],
    ["/messages?status=received&source=api&since=1", "messages_user_id_state_id"],
    [`/messages?inbox_id=${inbox_id}`, "messages_inbox_id_id"],
    [`/messages?inbox_id=${inbox_id}&status=failed&source=api`, "messages_inbox_id_id"],
    [`/messages?${conversation}`, "messages_conversation_id_id"],
    [`/messages?${conversation}&inbox_id=${inbox_id}&status=done`, "messages_conversation_id_id"],
    ["/conversations", "conversations_user_id_last_at_id"],
    [`/conversations?cursor=${cursors.conversations}`, "conversations_user_id_last_at_id"],
    [`/conversations/${call.conversation_id}`, "messages_conversation_id_id"],
  ];
  for (const [path, index] of paths) {
    const plans = await plansOf(t, () => ada.get(path));
    const lines = plans.flatMap((plan) => plan.lines);
    expect([path, lines.filter((line) => /\bSCAN\b|TEMP B-TREE/.test(line))]).toEqual([path, []]);
    // Rows that are named by their ids apart: what is searched for is searched along this one index alone.
    const searches = plans.filter(({ sql }) => !sql.includes('"id" in ('));
    const used = searches.flatMap((plan) => plan.lines).join("\n");
    const table =
      path.startsWith("/conversations?") || path === "/conversations" ? "conversations" : "messages";
    const indexes = [...used.matchAll(new RegExp(`SEARCH ${table} USING (?:COVERING )?INDEX (\\w+)`, "g"))];
    expect([path, new Set(indexes.map((found) => found[1]))]).toEqual([path, new Set([index])]);
  }
});

test("the rows of a page, and no others, are read in full", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  await storeMessages(
    t,
    ada.user,
    Array.from({ length: 30 }, () => ({ source: "api" as const })),
  );
  const queries = await queriesOf(t, () => ada.get("/messages?limit=3&source=api"));
  const reading = queries.filter(({ sql }) => /select \*.* from "messages"/.test(sql));
  expect(reading).toHaveLength(1);
  expect(reading[0]?.sql).toMatch(/"id" in \(\S+, \S+, \S+\)/);
  for (const { sql } of queries.filter((query) => !reading.includes(query)))
    expect(sql).not.toMatch(/"(result|steps|instruction|command)"/);
});

test("walking the pages gives exactly what the filters say, whatever there is", async () => {
  await using t = await testApp(DEMO);
  const moment = t.app.now();
  const inboxes = fc.integer({ min: 0, max: 2 });
  const message = fc.record({
    state: fc.constantFrom(...STATES),
    source: fc.constantFrom(...SOURCES),
    inbox: inboxes,
    conversation: fc.integer({ min: 0, max: 1 }),
    second: fc.integer({ min: 0, max: 4 }),
  });
  const filters = fc.record(
    {
      status: fc.constantFrom(...new Set(Object.values(SHOWN_AS))),
      source: fc.constantFrom(...SOURCES),
      inbox: inboxes,
      conversation: fc.tuple(inboxes, fc.integer({ min: 0, max: 1 })),
      since: fc.integer({ min: -1, max: 5 }),
      until: fc.integer({ min: -1, max: 5 }),
    },
    { requiredKeys: [] },
  );
  let account = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { maxLength: 25 }),
      fc.array(filters, { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 9 }),
      async (messages, searches, limit) => {
        const ada = await t.as(`ada${(account += 1)}@example.com`);
        const desks: { inbox_id: string; conversations: string[] }[] = [];
        for (let number = 0; number < 3; number++) {
          const inbox_id = (await ada.post("/inboxes", {})).body.id as string;
          const threads = await storeConversations(t, ada.user, [{ inbox_id }, { inbox_id }]);
          desks.push({ inbox_id, conversations: threads.map(({ id }) => id) });
        }
        const rows = await storeMessages(
          t,
          ada.user,
          messages
            .toSorted((one, other) => one.second - other.second)
            .map(({ state, source, inbox, conversation, second }) => ({
              state,
              source,
              created: moment + second,
              inbox_id: desks[inbox]?.inbox_id ?? null,
              conversation_id: desks[inbox]?.conversations[conversation] ?? null,
            })),
        );
        for (const { status, source, inbox, conversation, since, until } of searches) {
          const wanted = {
            status,
            source,
            inbox_id: inbox === undefined ? undefined : desks[inbox]?.inbox_id,
            conversation_id: conversation && desks[conversation[0]]?.conversations[conversation[1]],
            since: since === undefined ? undefined : moment + since,
            until: until === undefined ? undefined : moment + until,
          };
          const found = rows
            .filter(
              (row) =>
                (status === undefined || SHOWN_AS[row.state] === status) &&
                (source === undefined || row.source === source) &&
                (wanted.inbox_id === undefined || row.inbox_id === wanted.inbox_id) &&
                (wanted.conversation_id === undefined || row.conversation_id === wanted.conversation_id) &&
                row.created >= (wanted.since ?? 0) &&
                row.created <= (wanted.until ?? Number.POSITIVE_INFINITY),
            )
            .map(({ id }) => id);
          const pages = await walk(ada, `/messages?${queryOf({ ...wanted, limit })}`, "message_id");
          expect(pages.flat()).toEqual(found.toReversed());
          expect(pages.every((page, at) => page.length === limit || at === pages.length - 1)).toBe(true);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("a search that finds little looks at a bounded number of messages a page, and still finds all", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const many = 2 * MAX_LOOKED_AT + 500;
  const rows = await storeMessages(
    t,
    ada.user,
    Array.from(
      { length: many },
      (_, at) => ({ inbox_id, source: at % 2_000 === 7 ? "test" : "email" }) as const,
    ),
  );
  const rare = rows.filter((row) => row.source === "test").map(({ id }) => id);
  for (const path of ["/messages?source=test", `/messages?source=test&inbox_id=${inbox_id}`]) {
    const pages = await walk(ada, path, "message_id");
    expect(pages.flat()).toEqual(rare.toReversed());
    expect(pages.map((page) => page.length)).toEqual([1, 1, 1]);
  }
  const none = await walk(ada, "/messages?source=api", "message_id");
  expect(none).toEqual([[], [], []]);
  // What an index of its own answers is never short.
  expect(await walk(ada, "/messages?status=failed", "message_id")).toEqual([[]]);
  const dense = await walk(ada, "/messages?source=email&limit=100", "message_id");
  expect(dense.flat()).toEqual(
    rows
      .filter((row) => row.source === "email")
      .map(({ id }) => id)
      .toReversed(),
  );
});

test("since and until are seconds that both belong to the range", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const first = t.app.now();
  const subjects = ["a", "b", "c"];
  for (const instruction of subjects) {
    await ada.post("/v1/messages", { instruction });
    t.clock.advance("400ms");
    await ada.post("/v1/messages", { instruction: `${instruction}+` });
    t.clock.advance("600ms");
  }
  const found = async (query: string): Promise<string[]> =>
    (await ada.get(`/messages?${query}`)).body.items.map(({ subject }: { subject: string }) => subject);
  expect(await found(`since=${first + 1}`)).toEqual(["c+", "c", "b+", "b"]);
  expect(await found(`until=${first + 1}`)).toEqual(["b+", "b", "a+", "a"]);
  expect(await found(`since=${first + 1}&until=${first + 1}`)).toEqual(["b+", "b"]);
  expect(await found(`since=${first + 2}&until=${first}`)).toEqual([]);
  expect(await found("since=253402300799")).toEqual([]);
  expect(await found("until=0")).toEqual([]);
});

test("filters on what is another user's, or nobody's, give an empty page", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const { body: call } = await ada.post("/v1/messages", { instruction: "x" });
  const bob = await t.as("bob@example.com");
  const { body: own } = await bob.post("/inboxes", {});
  await bob.post("/v1/messages", { instruction: "y" });
  for (const query of [
    `inbox_id=${inbox_id}`,
    `inbox_id=${Bun.randomUUIDv7()}`,
    `inbox_id=${inbox_id}&status=done&source=api`,
    `conversation_id=${call.conversation_id}`,
    `conversation_id=${Bun.randomUUIDv7()}`,
    `conversation_id=${call.conversation_id}&inbox_id=${own.id}`,
    `conversation_id=${call.conversation_id}&inbox_id=${inbox_id}&status=done`,
  ])
    expect([query, (await bob.get(`/messages?${query}`)).body]).toEqual([
      query,
      { items: [], next_cursor: null },
    ]);
  expect(
    (await ada.get(`/messages?conversation_id=${call.conversation_id}&inbox_id=${inbox_id}`)).body.items,
  ).toHaveLength(1);
});

test.each([
  ["status=nonsense", "query.status"],
  ["status=skipped", "query.status"],
  ["status=", "query.status"],
  ["source=fax", "query.source"],
  ["inbox_id=x", "query.inbox_id"],
  ["inbox_id=", "query.inbox_id"],
  ["conversation_id=null", "query.conversation_id"],
  ["since=yesterday", "query.since"],
  ["since=-1", "query.since"],
  ["until=1.5", "query.until"],
  ["until=253402300800", "query.until"],
  ["until=1e400", "query.until"],
])("the filter %s is refused by its name", async (query, path) => {
  await using t = await testApp(DEMO);
  const ada = await t.as("ada@example.com");
  const { status, body } = await ada.get(`/messages?${query}`);
  expect([status, body.code, body.errors[0].path]).toEqual([422, "validation_error", path]);
});

test.each(["/messages?since=yesterday", "/usage?until=2026-03-01"])(
  "%s is told what a moment is",
  async (path) => {
    await using t = await testApp(DEMO);
    const ada = await t.as("ada@example.com");
    expect((await ada.get(path)).body.errors[0].message).toBe(
      "must be a moment in whole seconds since 1970 in UTC, such as 1768478400 for 2026-01-15T12:00:00Z; `date -d yesterday +%s` prints one",
    );
  },
);

test("a filter that is not known is ignored", async () => {
  await using t = await testApp(DEMO);
  const ada = await t.as("ada@example.com");
  expect((await ada.get("/messages?colour=red")).status).toBe(200);
});

test("each list refuses the cursors of the other", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  for (let turn = 0; turn < 2; turn++) await ada.post("/v1/messages", { instruction: "x" });
  const messages = (await ada.get("/messages?limit=1")).body.next_cursor as string;
  const conversations = (await ada.get("/conversations?limit=1")).body.next_cursor as string;
  for (const path of [`/messages?cursor=${conversations}`, `/conversations?cursor=${messages}`]) {
    const { status, body } = await ada.get(path);
    expect([path, status, body.code]).toEqual([path, 422, "invalid_cursor"]);
  }
});

test.each(["/messages", "/conversations"])("pages of %s are whole while more arrives", async (path) => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const key = path === "/messages" ? "message_id" : "id";
  for (let turn = 0; turn < 9; turn++) {
    await ada.post("/v1/messages", { instruction: "before" });
    if (turn % 3 === 0) t.clock.advance("1s");
  }
  const before = (await walk(ada, `${path}?limit=100`, key)).flat();
  const seen: string[] = [];
  let next: string | null = "";
  while (next !== null) {
    const { body } = await ada.get(`${path}?limit=2${next && `&cursor=${next}`}`);
    seen.push(...body.items.map((item: Record<string, string>) => item[key]));
    next = body.next_cursor;
    await ada.post("/v1/messages", { instruction: "meanwhile" });
  }
  expect(seen).toEqual(before);
});

/** The ids of each page. */
async function walk(caller: Caller, path: string, key: string): Promise<string[][]> {
  const pages: string[][] = [];
  let next: string | null = "";
  while (next !== null) {
    const joint: string = path.includes("?") ? "&" : "?";
    const answer: Answer = await caller.get(next === "" ? path : `${path}${joint}cursor=${next}`);
    expect([path, answer.status]).toEqual([path, 200]);
    pages.push(answer.body.items.map((item: Record<string, string>) => item[key]));
    next = answer.body.next_cursor;
  }
  return pages;
}

function queryOf(values: Record<string, unknown>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => `${name}=${String(value)}`).join("&");
}
