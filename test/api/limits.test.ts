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
