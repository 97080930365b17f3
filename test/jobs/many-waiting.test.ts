import { expect, test } from "bun:test";
import { enqueue, postponeJob } from "../../src/jobs/queue.ts";
import { finish, type Run, setUp } from "./work-room.ts";

type Options = Partial<Parameters<typeof enqueue<"route_message">>[2]>;

const WAITING = 1_100;

/** A worker that has not begun anything; `WAITING` jobs of one account and as said wait, and one of it behind them. */
async function room(route: Run, options: Options) {
  const t = await setUp({ route, slots: 16, target_slots: 2 });
  const share = { account: "ada", slots: null };
  await t.app.write(async (tx) => {
    const add = (message_id: string, more: Options): Promise<unknown> =>
      enqueue(t.app, tx, { kind: "route_message", payload: { message_id }, share, ...more });
    for (let n = 0; n < WAITING; n += 1) await add(`${n}`, options);
    await add("another", {});
  });
  return t;
}

test("the first of a conversation that was put off holds up nothing of its account, and is begun in its time", async () => {
  const begun: string[] = [];
  await using t = await room(
    async (app, job, signal) => {
      begun.push(job.payload.message_id);
      if (begun.length === 1)
        return app.write((tx) => postponeJob(tx, job, { run_at: app.now() + 60, error: "busy" }));
      // The others would all run one after the other, and show nothing.
      if (begun.length === 3)
        await app.write((tx) => tx.deleteFrom("jobs").where("status", "=", "pending").execute());
      await finish(app, job, signal);
    },
    { lane: "conversation" },
  );
  await t.worker.drain();
  expect(begun).toEqual(["0", "another"]);
  t.clock.advance("61s");
  await t.worker.drain();
  expect(begun).toEqual(["0", "another", "0"]);
});

test("what waits for a slow place holds up nothing else of its account", async () => {
  const slow = Promise.withResolvers<void>();
  const another = Promise.withResolvers<void>();
  await using t = await room(
    async (app, job, signal) => {
      if (job.payload.message_id === "another") another.resolve();
      else await slow.promise;
      await finish(app, job, signal);
    },
    { target: "slow.example" },
  );
  const drained = t.worker.drain();
  await another.promise;
  slow.resolve();
  await drained;
  expect(await t.jobs()).toEqual([]);
});
