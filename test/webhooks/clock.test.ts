import { expect, test } from "bun:test";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { planAtStart, watchClock } from "../../src/jobs/clock.ts";
import { type HookDesk, hookDesk } from "../api/hook-desk.ts";
import { deliveriesOf } from "../support/webhook-receiver.ts";

const TEN_YEARS = 3_650 * 86_400;

/** A desk at which a delivery has failed once, while the clock was ten years ahead; its receiver works by now. */
async function putOff(): Promise<{ t: HookDesk; id: string }> {
  const t = await hookDesk();
  const { id } = await t.hook();
  t.answer(() => new Response("", { status: 500 }));
  await t.happen();
  await t.drain();
  const { db } = t.app;
  await db
    .updateTable("webhook_deliveries")
    .set((eb) => ({ next_attempt_at: eb("next_attempt_at", "+", TEN_YEARS) }))
    .execute();
  await db
    .updateTable("jobs")
    .set((eb) => ({ run_at: eb("run_at", "+", TEN_YEARS) }))
    .execute();
  t.answer(() => new Response());
  await t.drain();
  expect(t.received).toHaveLength(1);
  return { t, id };
}

test("what was put off in a future that is none is sent as soon as before the clock was set back", async () => {
  const { t, id } = await putOff();
  await using _t = t;
  let passed = 0;
  // More time passes than the clock shows.
  const app = { ...t.app, steadyNow: () => t.app.steadyNow() + passed };
  const look = watchClock(app, jobHandlers(app));
  await look();
  await t.drain();
  expect(t.received).toHaveLength(1);
  passed = TEN_YEARS;
  await look();
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", attempts: 1 }]);
  t.clock.advance("2m");
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
});

test("many small steps back of the clock use up no attempt", async () => {
  await using t = await hookDesk();
  const { id } = await t.hook();
  t.answer(() => new Response("", { status: 500 }));
  await t.happen();
  await t.drain();
  let passed = 0;
  const app = { ...t.app, steadyNow: () => t.app.steadyNow() + passed };
  const look = watchClock(app, jobHandlers(app));
  for (let step = 0; step < 20; step += 1) {
    passed += 120;
    await look();
    await t.drain();
  }
  // At once, and after 1, 5 and 30 minutes, of 40 that have passed.
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "pending", attempts: 4 }]);
});

test("what a wrong clock has put off for years is sent at the next start, and the rest at its time", async () => {
  const { t, id } = await putOff();
  await using _t = t;
  await t.app.write((tx) => planAtStart(t.app, tx, jobHandlers(t.app)));
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{ status: "delivered", attempts: 2 }]);

  t.answer(() => new Response("", { status: 500 }));
  await t.happen();
  await t.drain();
  await t.app.write((tx) => planAtStart(t.app, tx, jobHandlers(t.app)));
  await t.drain();
  expect(await deliveriesOf(t, id)).toMatchObject([{}, { status: "pending", attempts: 1 }]);
});
