import { expect, test } from "bun:test";
import { retryJob } from "../../src/operation/admin/change-job.ts";
import { hookDesk } from "../api/hook-desk.ts";

const WAITING = 4_000;

test("what waits at an endpoint is brought forward some at a time when its job is tried at once", async () => {
  await using t = await hookDesk({ webhooks: { allow: ["127.0.0.1"], backoff: [0, 3_600] } });
  await t.hook();
  t.answer(() => new Response(null, { status: 503 }));
  await t.happen();
  await t.drain();
  const deliveries = () => t.app.db.selectFrom("webhook_deliveries");
  const [delivery] = await deliveries().selectAll().execute();
  if (!delivery) throw new Error("there is no delivery");
  const copies = Array.from({ length: WAITING - 1 }, () => ({ ...delivery, id: t.app.newId() }));
  while (copies.length > 0)
    await t.app.db.insertInto("webhook_deliveries").values(copies.splice(0, 500)).execute();
  const job = await t.app.db
    .selectFrom("jobs")
    .select("id")
    .where("kind", "=", "deliver_webhooks")
    .executeTakeFirstOrThrow();
  const due = async () => {
    const found = deliveries().select("id").where("next_attempt_at", "<=", t.app.now());
    return (await found.execute()).length;
  };
  const seen = new Set<number>();
  const retried: string[] = [];
  const retrying = retryJob(t.app, job.id).then(({ id }) => retried.push(id));
  while (retried.length === 0) {
    seen.add(await due());
    await Bun.sleep(0);
  }
  await retrying;
  expect(retried).toEqual([job.id]);
  // Others see it half done.
  expect([...seen].filter((count) => count > 0 && count < WAITING)).not.toEqual([]);
  expect(await due()).toBe(WAITING);
});
