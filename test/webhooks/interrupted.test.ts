import { expect, test } from "bun:test";
import { hookDesk } from "../api/hook-desk.ts";
import { forgetNotices } from "../support/notices.ts";
import { deliveriesOf, startReceiver } from "../support/webhook-receiver.ts";

/** As often as a server may end in the middle of a job before the job is given up. */
const ENDED_TOO_OFTEN = { attempts: 20 };

test("when the server ended too often at an endpoint, what has attempts left is sent later, and the rest has failed", async () => {
  await using t = await hookDesk();
  const { id } = await t.hook();
  t.answer(() => new Response("", { status: 500 }));
  await t.happen();
  await t.happen();
  await t.drain();
  const [used_up, other] = await deliveriesOf(t, id);
  const rows = t.app.db.updateTable("webhook_deliveries").set({ attempts: 6 });
  await rows.where("id", "=", used_up?.id ?? "").execute();
  await t.app.db.updateTable("jobs").set(ENDED_TOO_OFTEN).execute();
  t.clock.advance("66s");
  await t.drain();
  expect(t.received).toHaveLength(2);
  expect((await t.ada.get(`/v1/webhooks/${id}/deliveries`)).body).toMatchObject([
    { id: other?.id, status: "pending", attempts: 1 },
    { id: used_up?.id, status: "failed", error: "interrupted", attempts: 6, next_attempt_at: null },
  ]);
  t.answer(() => new Response());
  t.clock.advance("1h");
  await t.drain();
  expect(t.received.map(({ headers }) => headers["service-delivery-attempt"])).toEqual(["1", "1", "2"]);
  expect((await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 })).body).toEqual({ replayed: 1 });
  await t.drain();
  expect((await deliveriesOf(t, id)).map(({ status }) => status)).toEqual(["delivered", "delivered"]);
});

test("an event is told of even when the server ended too often before its deliveries were made", async () => {
  await using t = await hookDesk();
  const { id } = await t.hook();
  const event_id = await t.happen();
  await t.app.db.updateTable("jobs").set(ENDED_TOO_OFTEN).execute();
  await t.drain();
  expect(t.received.map(({ headers }) => headers["service-event-id"])).toEqual([event_id]);
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered" }]);
});

test("a server that stops ends what is on its way, and begins nothing more of a long queue", async () => {
  const held = Promise.withResolvers<void>();
  await using hooks = startReceiver(async () => {
    await held.promise;
    return new Response();
  });
  await using t = await hookDesk();
  const { id } = await t.hook({ url: hooks.url, enabled: false });
  for (let count = 0; count < 60; count += 1) await t.happen();
  await t.drain();
  await t.ada.patch(`/v1/webhooks/${id}`, { enabled: true });
  await forgetNotices(t.app);
  await t.ada.post(`/v1/webhooks/${id}/replay`, { since: 0 });
  const drained = t.drain();
  await hooks.reached(5);
  const stopped = t.app.worker?.[Symbol.asyncDispose]();
  held.resolve();
  await Promise.all([stopped, drained]);
  expect(hooks.received).toHaveLength(5);
  const left = (await deliveriesOf(t, id)).map(({ status, attempts }) => `${status} ${attempts}`);
  expect(left).toEqual([...Array<string>(5).fill("delivered 1"), ...Array<string>(55).fill("pending 0")]);
  const jobs = await t.app.db.selectFrom("jobs").select(["kind", "status"]).execute();
  expect(jobs).toEqual([{ kind: "deliver_webhooks", status: "pending" }]);
});

test("what is on its way is not sent again while the server waits for the answer, though it stood still for longer than that may take", async () => {
  const held = Promise.withResolvers<void>();
  await using hooks = startReceiver(async () => {
    await held.promise;
    return new Response();
  });
  await using t = await hookDesk();
  const { id } = await t.hook({ url: hooks.url });
  const first = await t.happen();
  const drained = t.drain();
  await hooks.reached(1);
  t.clock.advance("1m");
  const second = await t.happen();
  const told = t.drain();
  await hooks.reached(2);
  held.resolve();
  await Promise.all([drained, told]);
  expect(hooks.received.map(({ headers }) => headers["service-event-id"])).toEqual([first, second]);
  expect(await deliveriesOf(t, id)).toMatchObject([
    { status: "delivered", attempts: 1 },
    { status: "delivered", attempts: 1 },
  ]);
});
