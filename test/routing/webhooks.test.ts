import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { happens } from "../support/happens.ts";
import { forgetNotices } from "../support/notices.ts";
import {
  deliveriesOf,
  endpointOf,
  startRawReceiver,
  startReceiver,
  TO_LOOPBACK,
} from "../support/webhook-receiver.ts";
import { startClock } from "../support/own-time.ts";

const BACKOFF = [0, 60, 300, 1_800, 7_200, 28_800];

async function endpoint(owner: Caller, url: string): Promise<{ id: string; secret: string }> {
  const { status, body } = await owner.post("/v1/webhooks", { url, event_types: ["*"] });
  expect(status).toBe(201);
  return body;
}

/** Lets time pass in hops, with everything done that falls due, until no delivery waits any more. */
async function passTime(t: TestApp, span = "30s", hops = 2_000): Promise<void> {
  for (let hop = 0; hop < hops; hop += 1) {
    await t.drain();
    const waiting = await t.app.db
      .selectFrom("webhook_deliveries")
      .select("next_attempt_at")
      .where("status", "=", "pending")
      .orderBy("next_attempt_at")
      .executeTakeFirst();
    if (!waiting) return;
    t.clock.advance(span);
  }
  throw new Error("Deliveries still wait");
}

test("an event is delivered once, byte for byte, and verifies with standardwebhooks and with openssl", async () => {
  await using hooks = startReceiver(() => new Response("thanks\u0000\u0007"));
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id, secret } = await endpoint(owner, hooks.url);
  await forgetNotices(t.app);
  const event_id = await happens(t, owner);
  await t.drain();
  expect(hooks.received).toHaveLength(1);
  const [{ headers, body } = { headers: {} as Record<string, string>, body: "" }] = hooks.received;
  const event = await t.app.db.selectFrom("events").selectAll().executeTakeFirstOrThrow();
  expect(body).toBe(event.body);
  expect(headers["service-event-id"]).toBe(event_id);
  expect(headers["service-event-type"]).toBe("message.completed");
  expect(headers["service-delivery-attempt"]).toBe("1");
  expect(headers["content-type"]).toBe("application/json");
  expect(headers["user-agent"]).toMatch(/^Mailwright\//);

  // The library wants the signature to be of now, and the clock of this test stands still elsewhere.
  const now = Date.now;
  try {
    Date.now = t.clock.now;
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ id: event_id, livemode: true });
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
  } finally {
    Date.now = now;
  }
  const [, timestamp, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(headers["service-signature"] ?? "") ?? [];
  const signed = Buffer.from(`${timestamp}.${body}`);
  const command = ["openssl", "dgst", "-sha256", "-hmac", secret];
  const byHand = Bun.spawnSync(command, { stdin: signed }).stdout.toString();
  expect(byHand.trim().split(" ").at(-1)).toBe(v1 ?? "");

  expect(await deliveriesOf(t, id)).toMatchObject([
    {
      status: "delivered",
      attempts: 1,
      response_status: 200,
      response_body: "thanks",
      error: null,
      url: hooks.url,
      delivered_at: t.app.now(),
      next_attempt_at: null,
    },
  ]);
  expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
});

test("of a long result the first 200,000 characters are told, and that there is more", async () => {
  await using hooks = startReceiver();
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { secret } = await endpoint(owner, hooks.url);
  const cases: [string, string, true | undefined][] = [
    ["ü".repeat(200_000), "ü".repeat(200_000), undefined],
    ["ü".repeat(200_001), "ü".repeat(200_000), true],
    // The limit is in the middle of a character.
    [`${"x".repeat(199_999)}🌍 and more`, "x".repeat(199_999), true],
  ];
  for (const [result, told, truncated] of cases) {
    await happens(t, owner, { result });
    await t.drain();
    const { event, body, headers } = hooks.received.at(-1)!;
    const { object } = event.data;
    expect([object.result === told, object.result_truncated]).toEqual([true, truncated]);
    const signed = `${headers["webhook-timestamp"]}.${body}`;
    const v1 = new Bun.CryptoHasher("sha256", secret).update(signed).digest("hex");
    expect(headers["service-signature"]).toEndWith(`,v1=${v1}`);
  }
});

test("what nobody can sign is not sent, says so, and is delivered once there is a new secret", async () => {
  await using hooks = startReceiver();
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await t.app.db
    .updateTable("webhook_endpoints")
    .set({ sealed: new Uint8Array(80) })
    .execute();
  await happens(t, owner);
  await t.drain();
  const { body } = await owner.get(`/v1/webhooks/${id}/deliveries`);
  expect(body).toMatchObject([{ status: "pending", attempts: 1, error: "secret_unreadable" }]);
  expect(hooks.received).toEqual([]);
  expect((await owner.post(`/v1/webhooks/${id}/rotate-secret`)).status).toBe(200);
  t.clock.advance("66s");
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
});

test("what fails is tried six times over the whole schedule, under the same id, and then it has failed", async () => {
  await using hooks = startReceiver(() => new Response("no", { status: 410 }));
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  const event_id = await happens(t, owner);
  const begun = t.app.now();
  const times: number[] = [];
  hooks.answer = () => {
    times.push(t.app.now() - begun);
    return new Response("no", { status: 410 });
  };
  await passTime(t);
  expect(hooks.received.map(({ headers }) => headers["service-event-id"])).toEqual(Array(6).fill(event_id));
  expect(hooks.received.map(({ headers }) => headers["webhook-id"])).toEqual(Array(6).fill(event_id));
  expect(hooks.received.map(({ headers }) => headers["service-delivery-attempt"])).toEqual([
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
  ]);
  expect(new Set(hooks.received.map(({ body }) => body)).size).toBe(1);
  // Each is signed anew, for its own time.
  expect(new Set(hooks.received.map(({ headers }) => headers["service-signature"])).size).toBe(6);
  for (const [index, wait] of BACKOFF.entries()) {
    const gap = (times[index] ?? 0) - (times[index - 1] ?? 0);
    expect(gap).toBeGreaterThanOrEqual(wait * 0.9);
    expect(gap).toBeLessThanOrEqual(wait * 1.1 + 30);
  }
  const [delivery] = await deliveriesOf(t, id);
  expect(delivery).toMatchObject({
    status: "failed",
    attempts: 6,
    error: "http_410",
    response_status: 410,
    response_body: "no",
    next_attempt_at: null,
  });
  expect((await endpointOf(t, id)).consecutive_failures).toBe(1);
});

test("waits of parts of a second are whole ones in what the owner sees", async () => {
  await using hooks = startReceiver(() => new Response("", { status: 500 }));
  await using t = await testApp({ webhooks: { ...TO_LOOPBACK, backoff: [1.4, 2.6] } });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await happens(t, owner);
  const next = async (): Promise<number> => {
    await t.drain();
    return (await owner.get(`/v1/webhooks/${id}/deliveries`)).body[0].next_attempt_at - t.app.now();
  };
  expect(await next()).toBe(1);
  t.clock.advance("1s");
  expect([2, 3]).toContain(await next());
  t.clock.advance("3s");
  await t.drain();
  await owner.post(`/v1/webhooks/${id}/replay`, { since: 0 });
  expect(await next()).toBe(1);
});

test("an attempt and its next time are written down before the network call", async () => {
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const seen: unknown[] = [];
  await using hooks = startReceiver(async () => {
    seen.push(...(await t.app.db.selectFrom("webhook_deliveries").selectAll().execute()));
    return new Response();
  });
  await endpoint(owner, hooks.url);
  await happens(t, owner);
  const now = t.app.now();
  await t.drain();
  expect(seen).toMatchObject([
    { status: "pending", attempts: 1, last_attempt_at: now, next_attempt_at: now + 30 },
  ]);
});

test("500 and then 200: delivered at the second attempt, and the count of failures begins anew", async () => {
  await using hooks = startReceiver();
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await t.app.db.updateTable("webhook_endpoints").set({ consecutive_failures: 2 }).execute();
  hooks.answer = ({ headers }) =>
    new Response("", { status: headers["service-delivery-attempt"] === "1" ? 500 : 200 });
  await happens(t, owner);
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", attempts: 1, error: "http_500" }]);
  expect((await endpointOf(t, id)).consecutive_failures).toBe(2);
  t.clock.advance("66s");
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", attempts: 2, error: null }]);
  expect((await endpointOf(t, id)).consecutive_failures).toBe(0);
});

test("Retry-After of a 429 or a 503 is waited for, up to a day, and that of others is not", async () => {
  await using hooks = startReceiver();
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  const cases: [number, string, number, number][] = [
    [429, "600", 600, 600],
    [503, "9999999", 86_400, 86_400],
    [429, "1", 54, 66],
    [500, "600", 54, 66],
    [429, "soon", 54, 66],
  ];
  for (const [status, value, least, most] of cases) {
    hooks.answer = () => new Response("", { status, headers: { "retry-after": value } });
    await happens(t, owner);
    await t.drain();
    const delivery = (await deliveriesOf(t, id)).at(-1);
    const wait = (delivery?.next_attempt_at ?? 0) - t.app.now();
    expect([status, value, wait >= least && wait <= most]).toEqual([status, value, true]);
  }
});

test("a redirect is not followed, and is a failure", async () => {
  await using other = startReceiver();
  await using hooks = startReceiver(() => Response.redirect(other.url, 307));
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await happens(t, owner);
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", error: "http_307" }]);
  expect(other.received).toEqual([]);
});

test("receivers that hang, close, or answer nonsense are failures that say so", async () => {
  await using hanging = await startRawReceiver(() => undefined);
  await using closing = await startRawReceiver((socket) => socket.destroy());
  await using nonsense = await startRawReceiver((socket) => socket.end("220 mail.example ESMTP\r\n\r\n"));
  await using t = await testApp({ webhooks: { ...TO_LOOPBACK, timeout_seconds: 1 } });
  const owner = await t.as("ada@example.com");
  const ids = [];
  // Nobody listens at the last one.
  for (const url of [hanging.url, closing.url, nonsense.url, "http://127.0.0.1:1/"])
    ids.push((await endpoint(owner, url)).id);
  await happens(t, owner);
  await t.drain();
  const errors = await Promise.all(ids.map(async (id) => (await deliveriesOf(t, id))[0]?.error));
  expect(errors).toEqual(["timeout", "connection", "connection", "connection"]);
});

test("once a 2xx is there, it is delivered: with a gigabyte, a trickle or a broken body after it", async () => {
  let sent = 0;
  await using endless = await startRawReceiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n");
    const block = Buffer.alloc(65_536, "x");
    const more = (): void => {
      let room = true;
      while (room && !socket.destroyed) {
        room = socket.write(block);
        sent += block.length;
      }
    };
    socket.on("drain", more);
    more();
  });
  await using trickle = await startRawReceiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
    const timer = setInterval(() => socket.write("."), 50);
    socket.on("close", () => clearInterval(timer));
  });
  await using broken = await startRawReceiver((socket) =>
    socket.end("HTTP/1.1 201 Created\r\ncontent-length: 1000\r\n\r\nhalf of"),
  );
  await using t = await testApp({
    plans: { default: "team" },
    webhooks: { ...TO_LOOPBACK, timeout_seconds: 1 },
  });
  const owner = await t.as("ada@example.com");
  const ids = [];
  for (const { url } of [endless, trickle, broken]) ids.push((await endpoint(owner, url)).id);
  await happens(t, owner);
  await t.drain();
  const all = await Promise.all(ids.map(async (id) => (await deliveriesOf(t, id))[0]));
  expect(all.map((one) => one?.status)).toEqual(["delivered", "delivered", "delivered"]);
  expect(all[0]?.response_body).toBe("x".repeat(1_000));
  expect(all[2]?.response_body).toBe("half of");
  expect(sent).toBeLessThan(20_000_000);
});

test("a name that points inwards when it is dialled is never dialled", async () => {
  await using inside = startReceiver();
  await using dns = await startDnsServer({ "hooks.example": { A: ["93.184.216.34"] } });
  await using t = await testApp({ dns: { servers: [dns.address] } });
  const owner = await t.as("ada@example.com");
  dns.ttl = 0;
  const { id } = await endpoint(owner, `https://hooks.example:${new URL(inside.url).port}/`);
  dns.set("hooks.example", "A", ["127.0.0.1"]);
  await happens(t, owner);
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", error: "blocked_address" }]);
  expect(inside.received).toEqual([]);
});

test("three failed deliveries in a row warn the owner, five switch the endpoint off, and both are told once", async () => {
  await using hooks = startReceiver(() => new Response("", { status: 500 }));
  await using t = await testApp({ webhooks: { ...TO_LOOPBACK, backoff: [0, 10] } });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  const subjects = async () =>
    (await t.app.db.selectFrom("outgoing_mails").select("raw").orderBy("id").execute()).map(({ raw }) =>
      /^Subject: (.*)$/m.exec(Buffer.from(raw ?? "").toString())?.[1]?.trim(),
    );
  const failOnce = async (): Promise<void> => {
    await happens(t, owner);
    await passTime(t);
  };
  await failOnce();
  await failOnce();
  expect(await subjects()).toEqual([]);
  await failOnce();
  expect(await subjects()).toEqual(["Your webhook at 127.0.0.1:" + new URL(hooks.url).port + " is failing"]);
  expect(await endpointOf(t, id)).toMatchObject({ enabled: 1, consecutive_failures: 3 });
  await failOnce();
  await happens(t, owner);
  await happens(t, owner);
  await passTime(t);
  expect(await endpointOf(t, id)).toMatchObject({
    enabled: 0,
    disabled_reason: "5 deliveries in a row failed at every attempt, the last one with http_500.",
  });
  expect((await subjects()).slice(1)).toEqual([
    "Your webhook at 127.0.0.1:" + new URL(hooks.url).port + " was switched off",
  ]);
  const count = hooks.received.length;

  // While it is off, what happens is listed, and nothing is sent.
  await happens(t, owner);
  await passTime(t);
  expect(hooks.received).toHaveLength(count);
  expect((await deliveriesOf(t, id)).at(-1)).toMatchObject({
    status: "failed",
    attempts: 0,
    error: "endpoint_disabled",
  });

  const { body } = await owner.patch(`/v1/webhooks/${id}`, { enabled: true });
  expect(body).toMatchObject({ enabled: true, consecutive_failures: 0, disabled_reason: null });
  hooks.answer = () => new Response();
  await happens(t, owner);
  await t.drain();
  expect((await deliveriesOf(t, id)).at(-1)).toMatchObject({ status: "delivered" });
});

test("what still waits when an endpoint is switched off by its failures is listed as failed, too", async () => {
  await using hooks = startReceiver(() => new Response("", { status: 500 }));
  await using t = await testApp({ webhooks: { ...TO_LOOPBACK, backoff: [0, 3_600], disable_after: 1 } });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await happens(t, owner);
  await t.drain();
  t.clock.advance("50m");
  await happens(t, owner);
  await t.drain();
  t.clock.advance("20m");
  await t.drain();
  expect((await deliveriesOf(t, id)).map(({ status, error }) => `${status} ${error}`)).toEqual([
    "failed http_500",
    "failed endpoint_disabled",
  ]);
  expect(
    await t.app.db.selectFrom("jobs").select("kind").where("kind", "=", "deliver_webhooks").execute(),
  ).toEqual([]);
});

test("an endpoint gets at most five at a time, and a hundred all the same", async () => {
  await using hooks = startReceiver(async () => {
    await Bun.sleep(1);
    return new Response();
  });
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  const ids = await Promise.all(Array.from({ length: 100 }, () => happens(t, owner)));
  await t.drain();
  expect(hooks.received.map(({ event }) => event.id).toSorted()).toEqual(ids.toSorted());
  expect(hooks.most_at_once).toBeLessThanOrEqual(5);
  expect(hooks.most_at_once).toBeGreaterThan(1);
  expect(new Set((await deliveriesOf(t, id)).map(({ status }) => status))).toEqual(new Set(["delivered"]));
});

test("of 500 endpoints of which half hang, the other half is served at once, and so are models", async () => {
  await using hooks = startReceiver();
  await using hanging = await startRawReceiver(() => undefined);
  await using t = await testApp({
    plans: { default: "team", team: { webhooks: 500 } },
    webhooks: TO_LOOPBACK,
  });
  const owner = await t.as("ada@example.com");
  const first = await endpoint(owner, hooks.url);
  const row = await endpointOf(t, first.id);
  const url = hanging.url;
  // One secret for all of them, sealed for the first one, which would be too slow otherwise.
  for (let index = 1; index < 500; index += 1) {
    const id = Bun.randomUUIDv7();
    const sealed = t.app.secrets.seal(t.app.secrets.open(row.sealed, row.id), id);
    const more = { ...row, id, sealed, url: index % 2 === 0 ? hooks.url : url };
    await t.app.db.insertInto("webhook_endpoints").values(more).execute();
  }
  using clock = startClock();
  await happens(t, owner);
  await happens(t, owner);
  const drained = t.drain();
  await hooks.reached(500);
  const took = clock.ms();
  // They all hang, and still a call that has nothing to do with it gets through.
  expect((await fetch(hooks.url, { method: "POST", body: "{}" })).status).toBe(204);
  expect(took).toBeLessThan(5_000);
  await hanging[Symbol.asyncDispose]();
  await drained;
  expect(hanging.connections).toBe(500);
});

test("an event that comes while another attempt hangs does not wait for it", async () => {
  let held: ((answer: Response) => void) | undefined;
  await using hooks = startReceiver(() => new Promise((resolve) => (held = resolve)));
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  await happens(t, owner);
  const first = t.drain();
  await hooks.reached(1);
  const release = held;
  hooks.answer = () => new Response();
  await happens(t, owner);
  const second = t.drain();
  await hooks.reached(2);
  release?.(new Response());
  await Promise.all([first, second]);
  expect((await deliveriesOf(t, id)).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
});

test("a delivery that waits when its account is deleted is never made", async () => {
  await using hooks = startReceiver(() => new Response("", { status: 503 }));
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  await endpoint(owner, hooks.url);
  await happens(t, owner);
  await t.drain();
  expect(hooks.received).toHaveLength(1);
  await t.app.db.deleteFrom("users").where("id", "=", owner.user.id).execute();
  t.clock.advance("1d");
  await t.drain();
  expect(hooks.received).toHaveLength(1);
  expect(
    await t.app.db.selectFrom("jobs").select("id").where("kind", "=", "deliver_webhooks").execute(),
  ).toEqual([]);
  for (const table of ["events", "webhook_endpoints", "webhook_deliveries"] as const)
    expect(await t.app.db.selectFrom(table).selectAll().execute()).toEqual([]);
});

test("an endpoint that has moved gets what waits at its new address; one that was deleted gets nothing", async () => {
  await using before = startReceiver(() => new Response("", { status: 500 }));
  await using after = startReceiver();
  await using t = await testApp({ webhooks: TO_LOOPBACK });
  const owner = await t.as("ada@example.com");
  const [moved, deleted] = [await endpoint(owner, before.url), await endpoint(owner, before.url)];
  await happens(t, owner);
  await t.drain();
  await owner.patch(`/v1/webhooks/${moved.id}`, { url: after.url });
  await owner.delete(`/v1/webhooks/${deleted.id}`);
  t.clock.advance("66s");
  await t.drain();
  expect(before.received).toHaveLength(2);
  expect(after.received).toHaveLength(1);
  expect(await deliveriesOf(t, moved.id)).toMatchObject([{ status: "delivered", url: after.url }]);
});

test("an attempt whose outcome was never written is made again under the same id, and counts as a sixth at most", async () => {
  await using hooks = startReceiver();
  await using t = await testApp({ webhooks: { ...TO_LOOPBACK, backoff: [0, 10] } });
  const owner = await t.as("ada@example.com");
  const { id } = await endpoint(owner, hooks.url);
  const event_id = await happens(t, owner);
  // As a server leaves it that was killed in the middle of the last attempt.
  await t.app.write(async (tx) => {
    const row = {
      id: Bun.randomUUIDv7(),
      endpoint_id: id,
      event_id,
      status: "pending" as const,
      attempts: 2,
    };
    const empty = { response_status: null, response_body: null, error: null, duration_ms: null };
    const times = { created: t.app.now(), last_attempt_at: t.app.now(), delivered_at: null };
    const url = hooks.url;
    await tx
      .insertInto("webhook_deliveries")
      .values({ ...row, ...empty, ...times, url, next_attempt_at: t.app.now() + 75 })
      .execute();
  });
  await t.drain();
  t.clock.advance("75s");
  await t.drain();
  expect(hooks.received.map(({ headers }) => headers["webhook-id"])).toEqual([event_id, event_id]);
  expect((await deliveriesOf(t, id)).map(({ status, attempts }) => ({ status, attempts }))).toContainEqual({
    status: "delivered",
    attempts: 2,
  });
});
