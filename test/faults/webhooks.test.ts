import { expect, test } from "bun:test";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { account, house, inbox, type ServerProcess } from "./house.ts";
import { closing, untilIdle } from "./load.ts";

const CALLS = 40;
/** Left of the time that an interrupted attempt has: it is some seconds more than the time-out. */
const LEFT_SECONDS = 2;

test("kill -9 in the middle of deliveries loses no event, and repeats one only under the same id", async () => {
  const held = Promise.withResolvers<void>();
  await using hooks = startReceiver(async () => {
    await held.promise;
    return new Response();
  });
  await using at = await house({ webhooks: TO_LOOPBACK });
  const owner = await account(at, "ann@client.example");
  const call = (server: ServerProcess, path: string, body: object) =>
    fetch(`${server.http}${path}`, {
      method: "POST",
      headers: { "x-api-key": owner.api_key, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  {
    await using first = await at.start();
    await inbox(first, owner);
    expect((await call(first, "/v1/webhooks", { url: hooks.url, event_types: ["*"] })).status).toBe(201);
    const calls = Array.from({ length: CALLS }, () =>
      call(first, "/v1/messages", { instruction: "Say hello", async: true }),
    );
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(CALLS).fill(202));
    await hooks.reached(3);
    first.kill("SIGKILL");
    await first.exited;
  }
  const interrupted = hooks.received.map(({ headers }) => headers["webhook-id"] ?? "");
  held.resolve();
  using stopped = closing(at.database());
  // What was on its way counts as an attempt already; here its time is over.
  const pending =
    "update webhook_deliveries set next_attempt_at = 0 where status = 'pending' and attempts > 0";
  expect(stopped.db.prepare(pending).run().changes).toBeGreaterThanOrEqual(interrupted.length);

  await using second = await at.start();
  await untilIdle(at);
  const told = hooks.received.map(({ headers }) => headers["webhook-id"] ?? "");
  const events = stopped.db.prepare("select id from events").pluck().all() as string[];
  expect(events).toHaveLength(CALLS);
  expect(new Set(told)).toEqual(new Set(events));
  for (const id of interrupted) expect(told.filter((other) => other === id)).toHaveLength(2);
  expect(told).toHaveLength(CALLS + interrupted.length);
  expect(stopped.db.prepare("select distinct status from webhook_deliveries").pluck().all()).toEqual([
    "delivered",
  ]);
  second.kill("SIGTERM");
  await second.exited;
}, 60_000);

test("a restarted server makes an interrupted attempt again by itself, when its time is over, under the same id", async () => {
  await using hooks = startReceiver(() => new Promise(() => undefined));
  await using at = await house({ webhooks: TO_LOOPBACK });
  const owner = await account(at, "ann@client.example");
  const headers = { "x-api-key": owner.api_key, "content-type": "application/json" };
  {
    await using first = await at.start();
    await inbox(first, owner);
    for (const [path, body] of [
      ["/v1/webhooks", { url: hooks.url, event_types: ["*"] }],
      ["/v1/messages", { instruction: "Say hello" }],
    ] as const) {
      const answer = await fetch(`${first.http}${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(body),
      });
      expect(answer.ok).toBe(true);
    }
    await hooks.reached(1);
    first.kill("SIGKILL");
    await first.exited;
  }
  hooks.answer = () => new Response();
  using stopped = closing(at.database());
  const due = Math.floor(Date.now() / 1_000) + LEFT_SECONDS;
  const sooner =
    "update webhook_deliveries set next_attempt_at = ? where status = 'pending' and attempts = 1";
  expect(stopped.db.prepare(sooner).run(due).changes).toBe(1);

  await using second = await at.start();
  await hooks.reached(2);
  expect(Date.now() / 1_000).toBeGreaterThanOrEqual(due);
  await untilIdle(at);
  const [before, after] = hooks.received.map((one) => one.headers);
  expect(after?.["webhook-id"]).toBe(before?.["webhook-id"] ?? "");
  expect([before, after].map((one) => one?.["service-delivery-attempt"])).toEqual(["1", "2"]);
  expect(stopped.db.prepare("select status, attempts from webhook_deliveries").all()).toEqual([
    { status: "delivered", attempts: 2 },
  ]);
  second.kill("SIGTERM");
  await second.exited;
}, 60_000);
