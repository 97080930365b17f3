import { expect, test } from "bun:test";
import { keepRateLimits } from "../../src/db/rate-limits.ts";
import { createRateLimiter } from "../../src/lib/rate-limit.ts";
import { testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";

test("an account's calls beyond its concurrent runs wait as jobs, and those of others do not", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  const asked = Promise.withResolvers<void>();
  await using model = startModelServer({
    reply: ({ messages }) => {
      if (!messages.some(({ content }) => content.includes("hangs"))) return "Quick.";
      asked.resolve();
      return gate;
    },
  });
  await using t = await testApp(modelAt(model, { plans: { team: { concurrent_routes: 1 } } }));
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  const first = ada.post("/v1/messages", { instruction: "This one hangs" });
  await asked.promise;
  const second = await ada.post("/v1/messages", { instruction: "Waits" }, { prefer: "wait=0" });
  expect([second.status, second.body.status]).toEqual([202, "processing"]);
  expect((await bob.post("/v1/messages", { instruction: "Quick" })).body.status).toBe("done");
  const draining = t.drain();
  open("At last.");
  expect((await first).body.status).toBe("done");
  await draining;
  await t.drain();
  expect((await ada.get(`/v1/messages/${second.body.message_id}`)).body.status).toBe("done");
});

test("0 concurrent runs is no limit", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model, { plans: { team: { concurrent_routes: 0 } } }));
  const { ada } = await deskOf(t);
  const calls = [1, 2, 3].map((n) => ada.post("/v1/messages", { instruction: `Call ${n}` }));
  expect((await Promise.all(calls)).map(({ body }) => body.status)).toEqual(["done", "done", "done"]);
});

test("the rest of the interface has its own limit for each key, which routing calls do not use up", async () => {
  await using t = await testApp({ llm: { kind: "demo" }, plans: { team: { api_per_minute: 3 } } });
  const { ada } = await deskOf(t);
  const bob = await t.as("bob@example.com");
  for (let index = 0; index < 5; index++)
    expect((await ada.post("/v1/messages", { instruction: `${index}` })).status).toBe(200);
  expect((await ada.get("/inboxes")).status).toBe(200);
  expect((await ada.get("/connections")).status).toBe(200);
  const refused = await ada.get("/messages");
  expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
    429,
    "rate_limited",
    "20",
  ]);
  expect((await bob.get("/messages")).status).toBe(200);
  t.clock.advance("20s");
  expect((await ada.get("/messages")).status).toBe(200);
});

test("what is sent to the routing endpoint and not taken counts too: bad bodies, refusals, and replays", async () => {
  const plans = { team: { api_per_minute: 4, route_per_minute: 2 } };
  await using t = await testApp({ llm: { kind: "demo" }, plans });
  const { ada } = await deskOf(t);
  const retried = () => ada.post("/v1/messages", { instruction: "x" }, { "idempotency-key": "k" });
  const unknown = { instruction: "x", inbox_id: Bun.randomUUIDv7() };
  const answers = [
    await retried(),
    await ada.post("/v1/messages", { instruction: 1 }),
    await ada.post("/v1/messages/", "{"),
    await retried(),
    await ada.post("/v1/messages", unknown),
    await retried(),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 422, 422, 200, 429, 429]);
  for (const { headers, body } of answers.slice(4)) {
    expect([body.code, headers.get("retry-after")]).toEqual(["rate_limited", "15"]);
    expect(headers.get("content-type")).toBe("application/problem+json");
  }
  expect((await ada.get("/messages")).body.items).toHaveLength(1);
  expect((await ada.get("/auth/me")).body.credits.used).toBe(1);
  t.clock.advance("15s");
  expect((await retried()).headers.get("idempotent-replayed")).toBe("true");
});

test("good calls meet the limit of their account first, with its headers, whatever the rest is allowed", async () => {
  const plans = { team: { api_per_minute: 1, route_per_minute: 3 } };
  await using t = await testApp({ llm: { kind: "demo" }, plans });
  const { ada } = await deskOf(t);
  const call = () => ada.post("/v1/messages", { instruction: "x" });
  for (let left = 2; left >= 0; left -= 1)
    expect((await call()).headers.get("ratelimit")).toStartWith(`"route";r=${left};`);
  const refused = await call();
  expect([refused.status, refused.headers.get("ratelimit"), refused.headers.get("retry-after")]).toEqual([
    429,
    '"route";r=0;t=60',
    "20",
  ]);
});

test("where there is no limit for calls, or none for the rest, there is none for replays either", async () => {
  for (const team of [{ route_per_minute: 0, api_per_minute: 1 }, { api_per_minute: 0 }]) {
    await using t = await testApp({ llm: { kind: "demo" }, plans: { team } });
    const { ada } = await deskOf(t);
    const calls = Array.from({ length: 300 }, () => ada.post("/v1/messages", { instruction: "" }));
    expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([422]));
  }
});

test("nobody gets round the limit of a key by making new ones", async () => {
  await using t = await testApp({ plans: { default: "free", free: { api_per_minute: 2 } } });
  let { key } = await t.as("ada@example.com");
  const renew = () => t.request("/auth/api-key", { method: "POST", headers: { "x-api-key": key } });
  for (let made = 0; made < 60; made += 1) {
    const { status, body } = await renew();
    expect(status).toBe(200);
    ({ key } = body);
  }
  const refused = await renew();
  expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
    429,
    "rate_limited",
    "60",
  ]);
  expect((await t.request("/auth/me", { headers: { "x-api-key": key } })).status).toBe(200);
});

test("a request without a living key is told that, however many there are", async () => {
  await using t = await testApp({ plans: { team: { api_per_minute: 1 } } });
  for (let index = 0; index < 5; index++) expect((await t.request("/inboxes")).status).toBe(401);
});

test("a limit by the hour is remembered over a restart, one by the minute need not be", async () => {
  await using t = await testApp();
  const { app } = t;
  const hourly = { limit: 2, window_seconds: 3_600 };
  const warn = (problem: unknown): never => {
    throw new Error("not saved", { cause: problem });
  };
  {
    await using _kept = await keepRateLimits(app, warn);
    expect(app.limiter.take("hour", hourly).ok).toBe(true);
    expect(app.limiter.take("hour", hourly).ok).toBe(true);
    app.limiter.take("minute", { limit: 60, window_seconds: 60 });
  }
  expect(await app.db.selectFrom("rate_limits").select("key").execute()).toEqual([{ key: "hour" }]);
  const limiter = createRateLimiter(app.nowMs);
  await using _again = await keepRateLimits({ ...app, limiter }, warn);
  expect(limiter.peek("hour", hourly)).toMatchObject({ ok: false, retry_after_seconds: 1_800 });
  t.clock.advance("30m");
  expect(limiter.take("hour", hourly).ok).toBe(true);
});
