import { expect, test } from "bun:test";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { account, house, inbox, type ServerProcess } from "./house.ts";
import { closing, untilIdle } from "./load.ts";

const CALLS = 40;
const IDLE_MS = 20_000;

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
  await untilIdle(at, IDLE_MS);
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
