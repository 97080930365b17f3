import { describe, expect, test } from "bun:test";
import { type HookDesk, hookDesk } from "../api/hook-desk.ts";
import { deliveriesOf, endpointOf, startRawReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { startClock } from "../support/own-time.ts";

const ONE_ATTEMPT = { webhooks: { ...TO_LOOPBACK, backoff: [0] } };
/** Of `webhooks.backoff`, as it is without a word about it. */
const SCHEDULE_SECONDS = 60 + 300 + 1_800 + 7_200 + 28_800;

const failure = () => new Response("no", { status: 500 });

/** The last words of the subjects of the letters so far. */
async function letters(t: HookDesk): Promise<(string | undefined)[]> {
  const rows = await t.app.db.selectFrom("outgoing_mails").select("raw").orderBy("id").execute();
  return rows.map(({ raw }) => {
    const text = Buffer.from(raw ?? "").toString();
    return /^Subject: Your webhook at \S+ (.*)$/m.exec(text)?.[1]?.trim();
  });
}

describe("what an owner is told", () => {
  test("is the warning and the end, also when the third and the fifth failure come in one turn", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id } = await t.hook();
    t.answer(failure);
    for (let count = 0; count < 5; count += 1) await t.happen();
    await t.drain();
    expect(t.received).toHaveLength(5);
    expect(await endpointOf(t, id)).toMatchObject({ enabled: 0, consecutive_failures: 5 });
    expect(await letters(t)).toEqual(["is failing", "was switched off"]);
  });

  test("is nothing while a success comes between: it begins the count anew", async () => {
    await using t = await hookDesk(ONE_ATTEMPT);
    const { id } = await t.hook();
    const counts: number[] = [];
    for (const answer of [failure, failure, () => new Response(), failure, failure, failure]) {
      t.answer(answer);
      await t.happen();
      await t.drain();
      counts.push((await endpointOf(t, id)).consecutive_failures);
      expect(await letters(t)).toEqual(counts.length < 6 ? [] : ["is failing"]);
    }
    expect(counts).toEqual([1, 2, 0, 1, 2, 3]);
  });

  test("comes after the whole schedule: five events, six attempts each, over ten and a half hours", async () => {
    await using t = await hookDesk();
    const { id } = await t.hook();
    t.answer(failure);
    const ids: string[] = [];
    for (let count = 0; count < 5; count += 1) ids.push(await t.happen());
    const began = t.app.now();
    while ((await endpointOf(t, id)).enabled === 1) {
      await t.drain();
      const [next] = await t.app.db
        .selectFrom("jobs")
        .select("run_at")
        .where("kind", "=", "deliver_webhooks")
        .execute();
      if (next) t.clock.advance(`${next.run_at - t.app.now()}s`);
    }
    const took = t.app.now() - began;
    expect(took).toBeGreaterThan(SCHEDULE_SECONDS * 0.9);
    expect(took).toBeLessThan(SCHEDULE_SECONDS * 1.1);
    for (const event_id of ids)
      expect(
        t.received
          .filter(({ headers }) => headers["webhook-id"] === event_id)
          .map(({ headers }) => headers["service-delivery-attempt"]),
      ).toEqual(["1", "2", "3", "4", "5", "6"]);
    const used_up = { status: "failed", attempts: 6, error: "http_500", next_attempt_at: null };
    const deliveries = await deliveriesOf(t, id);
    expect(deliveries).toHaveLength(5);
    for (const delivery of deliveries) expect(delivery).toMatchObject(used_up);
    expect(await letters(t)).toEqual(["is failing", "was switched off"]);
    // Nothing is left to be done, however long one waits.
    t.clock.advance("30d");
    await t.drain();
    expect(t.received).toHaveLength(30);
  });
});

describe("an answer", () => {
  test("is a failure after the time for all of it, however steadily its head trickles in", async () => {
    await using trickle = await startRawReceiver((socket) => {
      const head = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-much: " + "more ".repeat(1_000);
      let sent = 0;
      const timer = setInterval(() => socket.write(head.charAt(sent++)), 10);
      socket.on("close", () => clearInterval(timer));
    });
    await using t = await hookDesk({ webhooks: { ...TO_LOOPBACK, timeout_seconds: 1 } });
    const { id } = await t.hook({ url: trickle.url });
    await t.happen();
    using clock = startClock();
    await t.drain();
    expect(clock.ms()).toBeLessThan(3_000);
    const [delivery] = await deliveriesOf(t, id);
    expect(delivery).toMatchObject({ status: "pending", error: "timeout", response_status: null });
    expect(delivery?.duration_ms).toBeGreaterThanOrEqual(990);
  });

  test("says its status whatever stands in its Retry-After", async () => {
    const waits = ["-5", "1e9", "soon", "", "\u00ff", "9".repeat(400)];
    const left = [...waits];
    await using odd = await startRawReceiver((socket) =>
      socket.end(`HTTP/1.1 503 Busy\r\nRetry-After: ${left.shift()}\r\ncontent-length: 0\r\n\r\n`),
    );
    await using t = await hookDesk();
    const { id } = await t.hook({ url: odd.url });
    for (const _ of waits) {
      await t.happen();
      await t.drain();
    }
    const statuses = (await deliveriesOf(t, id)).map((one) => [one.error, one.response_status]);
    expect(statuses).toEqual(waits.map(() => ["http_503", 503]));
  });

  test("with a bare LF or a NUL in its Retry-After is one more failed attempt, and the next one comes", async () => {
    const left = ["30\nX-More: 1", "\u0000", "1"];
    await using odd = await startRawReceiver((socket) =>
      socket.end(`HTTP/1.1 503 Busy\r\nRetry-After: ${left.shift()}\r\ncontent-length: 0\r\n\r\n`),
    );
    await using t = await hookDesk({ webhooks: { ...TO_LOOPBACK, backoff: [0, 60, 60] } });
    const { id } = await t.hook({ url: odd.url });
    await t.happen();
    for (const attempts of [1, 2]) {
      await t.drain();
      expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", attempts }]);
      t.clock.advance("66s");
    }
    await t.drain();
    expect(await deliveriesOf(t, id)).toMatchObject([{ status: "failed", error: "http_503" }]);
  });
});
