import { describe, expect, test } from "bun:test";
import { until } from "../support/until.ts";
import { type HookDesk, hookDesk } from "./hook-desk.ts";

const EVENT_ID = /^evt_[0-9a-hjkmnp-tv-z]{26}$/;
/** One attempt, at once: what fails has failed. */
const ONE_ATTEMPT = { webhooks: { allow: ["127.0.0.1"], backoff: [0] } };

test("a delivery can be read with what was sent, but for its signature", async () => {
  await using t = await hookDesk();
  const { id } = await t.hook();
  const event_id = await t.happen();
  await t.drain();
  const [listed] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
  const { request, ...rest } = (await t.ada.get(`/v1/webhooks/${id}/deliveries/${listed.id}`)).body;
  expect(rest).toEqual(listed);
  const [received] = t.received;
  expect(request.body).toBe(received?.body);
  expect(received?.headers).toMatchObject(request.headers);
  expect(request.headers).toEqual({
    "content-type": "application/json",
    "service-event-id": event_id,
    "service-event-type": "message.completed",
    "service-delivery-attempt": "1",
    "webhook-id": event_id,
  });
  const other = await t.hook();
  expect((await t.ada.get(`/v1/webhooks/${other.id}/deliveries/${listed.id}`)).status).toBe(404);
  expect((await t.ada.get(`/v1/webhooks/${id}/deliveries/none`)).status).toBe(422);
});

describe("a test", () => {
  test("is one signed attempt, now, whose outcome is the answer and is listed", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook({ event_types: ["message.failed"] });
    t.answer(() => new Response("thanks", { status: 202 }));
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/test`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ event_id: body.delivery.event_id, status: "delivered" });
    expect(body.delivery).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      event_id: expect.stringMatching(EVENT_ID),
      event_type: "message.completed",
      message_id: null,
      livemode: false,
      status: "delivered",
      attempts: 1,
      max_attempts: 6,
      response_status: 202,
      response_body: "thanks",
      error: null,
      duration_ms: expect.any(Number),
      url: t.hook_url,
      created: t.app.now(),
      last_attempt_at: t.app.now(),
      next_attempt_at: null,
      delivered_at: t.app.now(),
    });
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toEqual([body.delivery]);
    const [received] = t.received;
    expect(received?.headers).toMatchObject({
      "content-type": "application/json",
      "service-event-id": body.event_id,
      "service-event-type": "message.completed",
      "service-delivery-attempt": "1",
      "service-signature": expect.stringMatching(/^t=\d+,v1=[0-9a-f]{64}$/),
    });
    expect(JSON.parse(received?.body ?? "")).toEqual({
      id: body.event_id,
      type: "message.completed",
      created: t.app.now(),
      livemode: false,
      data: {
        object: {
          message_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          conversation_id: null,
          source: "test",
          status: "done",
          result: expect.any(String),
          error: null,
          usage: null,
          subject: "Test event",
          created: t.app.now(),
          inbox_id: null,
          sender: "ada@example.com",
          tags: [],
          attachments: [],
          metadata: {},
        },
      },
    });
  });

  test("that fails says how, is not tried again, and does not count against the endpoint", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    t.answer(() => new Response("no", { status: 500 }));
    for (let count = 0; count < 6; count += 1) await t.ada.post(`/v1/webhooks/${id}/test`);
    const { body } = await t.ada.post(`/v1/webhooks/${id}/test`);
    expect(body).toMatchObject({
      status: "failed",
      delivery: { error: "http_500", response_status: 500, next_attempt_at: null, delivered_at: null },
    });
    t.clock.advance("2d");
    await t.drain();
    expect(t.received).toHaveLength(7);
    const [endpoint] = (await t.ada.get("/v1/webhooks")).body;
    expect(endpoint).toMatchObject({ enabled: true, consecutive_failures: 0 });
  });

  test("that succeeds forgives no earlier failures", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const failing = { consecutive_failures: 4 };
    await t.app.db.updateTable("webhook_endpoints").set(failing).where("id", "=", id).execute();
    await t.ada.post(`/v1/webhooks/${id}/test`);
    expect((await t.ada.get("/v1/webhooks")).body[0].consecutive_failures).toBe(4);
  });

  test("reaches an endpoint that is switched off, and leaves it off", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook({ enabled: false });
    expect((await t.ada.post(`/v1/webhooks/${id}/test`)).body.status).toBe("delivered");
    expect(t.received).toHaveLength(1);
    expect((await t.ada.get("/v1/webhooks")).body[0].enabled).toBe(false);
  });

  test("of a host that is nowhere is an outcome, not an error", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook({ url: "https://unknown.example.com/" });
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/test`);
    expect([status, body.status, body.delivery.error]).toEqual([200, "failed", "connection"]);
  });

  test("of a name that leads inside by now is not sent", async () => {
    await using t = await hookDesk();
    // Nobody remembers what the DNS did not know.
    t.dns.ttl = 0;
    const { id } = await t.hook({ url: "https://later.example.com/" });
    t.dns.set("later.example.com", "A", ["10.0.0.5"]);
    const { body } = await t.ada.post(`/v1/webhooks/${id}/test`);
    expect(body.delivery).toMatchObject({
      status: "failed",
      error: "blocked_address",
      response_status: null,
    });
  });

  test("of an endpoint that is deleted meanwhile is 404, and leaves nothing", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    t.answer(async () => {
      await t.ada.delete(`/v1/webhooks/${id}`);
      return new Response();
    });
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/test`);
    expect([status, body.code]).toEqual([404, "not_found"]);
    expect(await t.app.db.selectFrom("events").selectAll().execute()).toEqual([]);
  });

  test("may be made ten times in a minute, whatever the endpoint", async () => {
    await using t = await hookDesk();
    const [one, two] = [await t.hook(), await t.hook()];
    for (let count = 0; count < 10; count += 1)
      expect((await t.ada.post(`/v1/webhooks/${count % 2 ? one.id : two.id}/test`)).status).toBe(200);
    const eleventh = await t.ada.post(`/v1/webhooks/${one.id}/test`);
    expect([eleventh.status, eleventh.body.code]).toEqual([429, "rate_limited"]);
    expect(Number(eleventh.headers.get("retry-after"))).toBeGreaterThan(0);
    t.clock.advance("1m");
    expect((await t.ada.post(`/v1/webhooks/${one.id}/test`)).status).toBe(200);
  });
});

describe("the list of deliveries", () => {
  test("has the newest first, at most as many as asked for", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const events: string[] = [];
    for (let count = 0; count < 4; count += 1) {
      events.unshift(await t.happen());
      await t.drain();
    }
    const listed = async (query = "") =>
      (await t.ada.get(`/v1/webhooks/${id}/deliveries${query}`)).body.map(
        ({ event_id }: { event_id: string }) => event_id,
      );
    expect(await listed()).toEqual(events);
    expect(await listed("?limit=2")).toEqual(events.slice(0, 2));
  });

  test("takes a limit from 1 to 100", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    for (const limit of ["0", "101", "-1", "1.5", "many", ""]) {
      const { status, body } = await t.ada.get(`/v1/webhooks/${id}/deliveries?limit=${limit}`);
      expect([limit, status, body.errors?.[0].path]).toEqual([limit, 422, "query.limit"]);
    }
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries?limit=100`)).status).toBe(200);
  });

  test("goes back 30 days", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const { delivery } = (await t.ada.post(`/v1/webhooks/${id}/test`)).body;
    t.clock.advance("30d");
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toHaveLength(1);
    t.clock.advance("1s");
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toEqual([]);
    expect((await t.ada.post(`/v1/webhooks/${id}/deliveries/${delivery.id}/retry`)).status).toBe(404);
  });

  test("is of this endpoint alone", async () => {
    await using t = await hookDesk();
    const [one, two] = [await t.hook(), await t.hook()];
    const { delivery } = (await t.ada.post(`/v1/webhooks/${one.id}/test`)).body;
    expect((await t.ada.get(`/v1/webhooks/${two.id}/deliveries`)).body).toEqual([]);
    const elsewhere = await t.ada.post(`/v1/webhooks/${two.id}/deliveries/${delivery.id}/retry`);
    expect([elsewhere.status, elsewhere.body.code]).toEqual([404, "not_found"]);
  });
});

describe("sending one again", () => {
  test("answers 202, and the same event is sent with all its attempts ahead", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id } = await t.hook();
    t.answer(() => new Response("no", { status: 500 }));
    const event_id = await t.happen();
    await t.drain();
    const [failed] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    expect(failed).toMatchObject({ event_id, status: "failed", attempts: 1, error: "http_500" });
    t.answer(() => new Response());
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/deliveries/${failed.id}/retry`);
    expect(status).toBe(202);
    expect(body).toEqual({
      ...failed,
      status: "pending",
      attempts: 0,
      response_status: null,
      response_body: null,
      error: null,
      duration_ms: null,
      last_attempt_at: null,
      next_attempt_at: t.app.now(),
    });
    await t.drain();
    const [now] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    expect(now).toMatchObject({ id: failed.id, event_id, status: "delivered", attempts: 1 });
    const [first, second] = t.received;
    expect([second?.body, second?.headers["service-event-id"]]).toEqual([first?.body, event_id]);
  });

  test("is possible with one that was acknowledged, and with a test", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const { delivery } = (await t.ada.post(`/v1/webhooks/${id}/test`)).body;
    expect((await t.ada.post(`/v1/webhooks/${id}/deliveries/${delivery.id}/retry`)).status).toBe(202);
    await t.drain();
    expect(t.received).toHaveLength(2);
    expect(t.received[1]?.body).toBe(t.received[0]!.body);
  });

  test("goes to where the endpoint is now", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook({ url: "https://unknown.example.com/" });
    const { delivery } = (await t.ada.post(`/v1/webhooks/${id}/test`)).body;
    await t.ada.patch(`/v1/webhooks/${id}`, { url: t.hook_url });
    const { body } = await t.ada.post(`/v1/webhooks/${id}/deliveries/${delivery.id}/retry`);
    expect(body.url).toBe(t.hook_url);
    await t.drain();
    expect(t.received).toHaveLength(1);
  });

  test("has one tried now that waits for its next attempt, which counts", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    t.answer(() => new Response(null, { status: 503 }));
    await t.happen();
    await t.drain();
    const [pending] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    expect(pending).toMatchObject({ status: "pending", attempts: 1, error: "http_503" });
    t.answer(() => new Response());
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/deliveries/${pending.id}/retry`);
    expect([status, body]).toEqual([202, { ...pending, next_attempt_at: t.app.now() }]);
    await t.drain();
    const [now] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    expect(now).toMatchObject({ status: "delivered", attempts: 2 });
  });

  test("is refused with 409 while an attempt is on its way", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const answer = Promise.withResolvers<Response>();
    t.answer(() => answer.promise);
    await t.happen();
    const draining = t.drain();
    await until(() => t.received.length === 1);
    const [pending] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/deliveries/${pending.id}/retry`);
    expect([status, body.code]).toEqual([409, "conflict"]);
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toEqual([pending]);
    answer.resolve(new Response());
    await draining;
    expect(t.received).toHaveLength(1);
  });

  test("twice at the same time is done once", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const { delivery } = (await t.ada.post(`/v1/webhooks/${id}/test`)).body;
    const path = `/v1/webhooks/${id}/deliveries/${delivery.id}/retry`;
    const answers = await Promise.all([t.ada.post(path), t.ada.post(path)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([202, 409]);
    await t.drain();
    expect(t.received).toHaveLength(2);
  });

  test("is refused with 409 while the endpoint is off", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook({ enabled: false });
    const { delivery } = (await t.ada.post(`/v1/webhooks/${id}/test`)).body;
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/deliveries/${delivery.id}/retry`);
    expect([status, body.code]).toEqual([409, "conflict"]);
    expect(body.fix).toContain("Switch it on first");
  });

  test("names an id that is none with 422, and one that nobody has with 404", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    const malformed = await t.ada.post(`/v1/webhooks/${id}/deliveries/nonsense/retry`);
    expect([malformed.status, malformed.body.errors[0].path]).toEqual([422, "path.delivery_id"]);
    const unknown = await t.ada.post(`/v1/webhooks/${id}/deliveries/${Bun.randomUUIDv7()}/retry`);
    expect([unknown.status, unknown.body.detail]).toEqual([404, "There is no such delivery."]);
  });
});

describe("sending again all that failed", () => {
  test("leaves out what was delivered, what is older, and tests", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id } = await t.hook();
    await t.happen();
    await t.drain();
    t.answer(() => new Response(null, { status: 500 }));
    await t.happen();
    await t.drain();
    await t.ada.post(`/v1/webhooks/${id}/test`);
    t.clock.advance("1h");
    const since = t.app.now();
    const wanted = [await t.happen(), await t.happen("message.failed")];
    await t.drain();
    t.answer(() => new Response());
    t.received.length = 0;
    const counts = async () => (await t.ada.get(`/v1/webhooks/${id}/counts`)).body;
    expect(await counts()).toEqual({ failed: 3, pending: 0, retrying: 0 });
    const { status, body } = await t.ada.post(`/v1/webhooks/${id}/replay`, { since });
    expect([status, body]).toEqual([202, { replayed: 2 }]);
    expect(await counts()).toEqual({ failed: 1, pending: 2, retrying: 0 });
    await t.drain();
    expect(idsOf(t)).toEqual(wanted.sort());
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 1 });
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 0 });
  });

  test("brings what an endpoint missed while it was off", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    await t.ada.patch(`/v1/webhooks/${id}`, { enabled: false });
    const missed = [await t.happen(), await t.happen()];
    await t.drain();
    expect(t.received).toEqual([]);
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toMatchObject([
      { status: "failed", error: "endpoint_disabled", attempts: 0 },
      { status: "failed", error: "endpoint_disabled", attempts: 0 },
    ]);
    const off = await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 });
    expect([off.status, off.body.code]).toEqual([409, "conflict"]);
    await t.ada.patch(`/v1/webhooks/${id}`, { enabled: true });
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 2 });
    await t.drain();
    expect(idsOf(t)).toEqual(missed.sort());
  });

  test("touches no other endpoint", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const [one, two] = [await t.hook(), await t.hook()];
    t.answer(() => new Response(null, { status: 500 }));
    await t.happen();
    await t.drain();
    expect((await t.ada.post(`/v1/webhooks/${one.id}/replay`, { since: 0 })).body).toEqual({ replayed: 1 });
    const [other] = (await t.ada.get(`/v1/webhooks/${two.id}/deliveries`)).body;
    expect(other.status).toBe("failed");
  });

  test("begins at a unix second", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    for (const [since, code] of [
      [undefined, "missing"],
      [null, "invalid"],
      ["0", "invalid"],
      [1.5, "invalid"],
      [-1, "too_small"],
      [253_402_300_800, "too_large"],
    ]) {
      const { status, body } = await t.ada.post(`/v1/webhooks/${id}/replay`, { since });
      expect([since, status, body.errors?.[0].path, body.errors?.[0].code]).toEqual([
        since,
        422,
        "body.since",
        code,
      ]);
    }
  });
});

describe("what waits for another attempt", () => {
  async function waiting(t: HookDesk): Promise<string> {
    const { id } = await t.hook();
    t.answer(() => new Response(null, { status: 500 }));
    await t.happen();
    await t.drain();
    t.answer(() => new Response());
    t.received.length = 0;
    return id;
  }

  test("goes with a deleted endpoint, and so does its job", async () => {
    await using t = await hookDesk();
    const id = await waiting(t);
    expect((await t.ada.delete(`/v1/webhooks/${id}`)).status).toBe(204);
    expect(await t.app.db.selectFrom("webhook_deliveries").selectAll().execute()).toEqual([]);
    expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
    t.clock.advance("1d");
    await t.drain();
    expect(t.received).toEqual([]);
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).status).toBe(404);
    expect((await t.ada.delete(`/v1/webhooks/${id}`)).status).toBe(404);
  });

  test("has failed once its endpoint is switched off, and stays so when it is on again", async () => {
    await using t = await hookDesk();
    const id = await waiting(t);
    await t.ada.patch(`/v1/webhooks/${id}`, { enabled: false });
    const [ended] = (await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body;
    expect(ended).toMatchObject({ status: "failed", error: "endpoint_disabled", next_attempt_at: null });
    await t.ada.patch(`/v1/webhooks/${id}`, { enabled: true });
    t.clock.advance("1d");
    await t.drain();
    expect(t.received).toEqual([]);
    expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 1 });
    await t.drain();
    expect(t.received).toHaveLength(1);
  });

  test("goes to the new address of its endpoint", async () => {
    await using t = await hookDesk();
    const id = await waiting(t);
    const url = `${t.hook_url}/new`;
    await t.ada.patch(`/v1/webhooks/${id}`, { url });
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body[0].url).toBe(url);
    t.clock.advance("2m");
    await t.drain();
    expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body[0]).toMatchObject({
      status: "delivered",
      attempts: 2,
      url,
    });
  });
});

function idsOf(t: HookDesk): (string | undefined)[] {
  return t.received.map(({ headers }) => headers["service-event-id"]).sort();
}
