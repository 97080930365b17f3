import { expect, test } from "bun:test";
import { sql } from "kysely";
import { readUsage } from "../../src/resources/billing/usage.ts";
import { testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { plansOf } from "../support/query-plans.ts";
import { storeMessages } from "./archive.ts";
import { deskOf, modelAt } from "./desk.ts";

const DAY = 86_400;
const NOTHING = { runs: 0, credits: 0, input_tokens: 0, output_tokens: 0 };

test("what ran is summed by day, source and inbox, the busiest first", async () => {
  await using t = await testApp();
  const { ada, inbox_id: desk } = await deskOf(t);
  const { body: other } = await ada.post("/inboxes", { label: "Reports" });
  const now = t.app.now();
  const run = { credits_charged: 1, input_tokens: 10, output_tokens: 2 };
  await storeMessages(t, ada.user, [
    { ...run, created: now, inbox_id: desk, source: "api" },
    { ...run, created: now, inbox_id: other.id, source: "email" },
    { ...run, created: now - DAY, inbox_id: other.id, source: "email" },
    { created: now - 2 * DAY, inbox_id: desk, source: "test", credits_charged: 0 },
    // Neither of these is a run that was done.
    { created: now, inbox_id: desk, state: "limited" },
    { created: now, inbox_id: desk, state: "failed", input_tokens: 5, output_tokens: 5 },
  ]);
  const { status, body } = await ada.get(`/usage?since=${now - 3 * DAY}&until=${now}`);
  expect([status, body]).toEqual([
    200,
    {
      since: now - 3 * DAY,
      until: now,
      storage: { bytes: expect.any(Number), limit_bytes: 100_000 * 1_048_576 },
      costs: {
        month: "2026-01",
        currency: "USD",
        cost: 0,
        monthly_budget: null,
        inboxes: [],
        connections: [],
      },
      totals: { runs: 4, credits: 3, input_tokens: 30, output_tokens: 6 },
      days: [
        { day: "2026-01-12", ...NOTHING },
        { day: "2026-01-13", ...NOTHING, runs: 1 },
        { day: "2026-01-14", runs: 1, credits: 1, input_tokens: 10, output_tokens: 2 },
        { day: "2026-01-15", runs: 2, credits: 2, input_tokens: 20, output_tokens: 4 },
      ],
      sources: [
        { source: "email", runs: 2, credits: 2, input_tokens: 20, output_tokens: 4 },
        expect.objectContaining({ runs: 1 }),
        expect.objectContaining({ runs: 1 }),
      ],
      inboxes: expect.arrayContaining([
        { inbox_id: desk, label: "Inbox", runs: 2, credits: 1, input_tokens: 10, output_tokens: 2 },
        { inbox_id: other.id, label: "Reports", runs: 2, credits: 2, input_tokens: 20, output_tokens: 4 },
      ]),
    },
  ]);
});

test("a run shows up with the tokens that its provider told, and stays when its inbox goes", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model));
  const { ada, inbox_id } = await deskOf(t);
  const { body: message } = await ada.post("/v1/messages", { instruction: "x" });
  await ada.post(`/inboxes/${inbox_id}/test`);
  const { body } = await ada.get("/usage");
  expect(body.totals).toMatchObject({ runs: 2, credits: 1 });
  expect(body.totals.input_tokens).toBeGreaterThanOrEqual(message.usage.input_tokens);
  expect(body.inboxes).toMatchObject([{ inbox_id, label: "Inbox", runs: 2 }]);
  await ada.delete(`/inboxes/${inbox_id}`);
  expect((await ada.get("/usage")).body.inboxes).toMatchObject([{ inbox_id: null, label: null, runs: 2 }]);
});

test("nothing of another account is counted", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  await storeMessages(t, ada.user, [{ credits_charged: 1 }]);
  expect((await bob.get("/usage")).body).toMatchObject({ totals: NOTHING, sources: [], inboxes: [] });
});

test("the last 30 days are the default, both ends included, and at most 366 days are given", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  const now = t.app.now();
  const ago = (seconds: number) => ({ created: now - seconds });
  await storeMessages(t, ada.user, [
    ago(367 * DAY),
    ago(366 * DAY),
    ago(30 * DAY + 1),
    ago(30 * DAY),
    ago(0),
    ago(-1),
  ]);
  const { body } = await ada.get("/usage");
  expect([body.since, body.until, body.totals.runs, body.days.length]).toEqual([now - 30 * DAY, now, 2, 31]);
  const year = await ada.get(`/usage?since=${now - 366 * DAY}`);
  expect([year.body.totals.runs, year.body.days.length]).toEqual([4, 367]);
  const past = await ada.get(`/usage?until=${now - 366 * DAY}`);
  expect([past.body.totals.runs, past.body.since]).toEqual([2, now - 396 * DAY]);
  expect((await ada.get("/usage?until=5")).body.days).toHaveLength(1);
});

test("a range that is too long, runs backwards or is no range is refused", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const now = t.app.now();
  const refusals: [query: string, code: string | undefined][] = [
    [`since=${now - 366 * DAY - 1}`, "range_too_long"],
    ["since=0&until=253402300799", "range_too_long"],
    [`since=${now + 1}`, "after_until"],
    ["since=20&until=10", "after_until"],
    ["since=-1", undefined],
    ["until=1.5", undefined],
    ["since=yesterday", undefined],
    ["until=999999999999999", undefined],
  ];
  for (const [query, code] of refusals) {
    const { status, body } = await ada.get(`/usage?${query}`);
    expect([query, status, body.code]).toEqual([query, 422, "validation_error"]);
    if (code !== undefined) expect(body.errors).toMatchObject([{ path: "query.since", code }]);
  }
  expect((await t.request("/usage")).status).toBe(401);
});

test("the sums are read from an index alone, however large the rows are", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const plans = await plansOf(t, () => readUsage(t.app, ada.user, {}));
  const sums = plans.filter(({ sql }) => sql.includes('from "messages"'));
  expect(sums.length).toBeGreaterThanOrEqual(1);
  for (const { lines } of sums)
    expect(lines[0]).toBe(
      "SEARCH messages USING COVERING INDEX messages_usage (user_id=? AND created>? AND created<?)",
    );
});

test("the sums of very many runs leave others their turn, and are whole, also of many within one second", async () => {
  await using t = await testApp();
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  const now = t.app.now();
  await storeMessages(t, ada.user, [{ credits_charged: 1, created: now - DAY }]);
  const columns = Object.keys(await t.app.db.selectFrom("messages").selectAll().executeTakeFirstOrThrow());
  const copied = columns.map((name) => {
    if (name === "id") return sql`id || n`;
    // Each twentieth second has a thousand runs, and one of them half of all.
    return name === "created" ? sql`${now} - iif(n % 2, 100, (n % 20) * 20)` : sql.ref(name);
  });
  await sql`with recursive count(n) as (select 1 union all select n + 1 from count where n < 40000)
    insert into messages (${sql.join(columns.map((name) => sql.ref(name)))})
    select ${sql.join(copied)} from messages, count where user_id = ${ada.user.id}`.execute(t.app.db);
  const ended: string[] = [];
  const asked = ["one", "another"].map(async (name) => {
    const { body } = await ada.get(`/usage?since=${now - 2 * DAY}&until=${now}`);
    ended.push(name);
    return body;
  });
  for (let other = 0; other < 3; other += 1) ended.push(`bob ${(await bob.get("/auth/me")).status}`);
  const bodies = await Promise.all(asked);
  expect(ended).toEqual(["bob 200", "bob 200", "bob 200", "one", "another"]);
  for (const { totals, days, sources } of bodies) {
    expect([totals.runs, totals.credits, sources[0].runs]).toEqual([40_001, 40_001, 40_001]);
    expect(days.map(({ runs }: { runs: number }) => runs)).toEqual([0, 1, 40_000]);
  }
});
