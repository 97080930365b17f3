import { JOB_RULES } from "../../src/jobs/kinds.ts";
import { enqueue, finishJob, type Job, type Share } from "../../src/jobs/queue.ts";
import type { JobHandler, JobHandlers } from "../../src/jobs/run-job.ts";
import type { Use } from "../../src/jobs/shares.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { testApp, setWorker } from "../support/app.ts";

export type Run = JobHandler<"route_message">["run"];

export const finish: Run = (app, job) => app.write((tx) => finishJob(tx, job));

interface Kinds {
  route?: Run;
  send?: Run;
  slots?: number;
  bytes?: number;
  target_slots?: number;
  giveUp?: NonNullable<JobHandler<"route_message">["giveUp"]>;
  patience?: NonNullable<Parameters<typeof createWorker>[2]>["patience"];
  watch_ms?: number;
}

/** What a job of this share takes. */
export const use = (share: Share | null, weight = 0): Use => ({ share, weight, target: null });

/** A worker of its own over a fresh app; it works only when told to, or after `start`. */
export async function setUp({
  route = finish,
  send = finish,
  slots = 4,
  giveUp,
  patience,
  watch_ms,
  ...room
}: Kinds) {
  const t = await testApp();
  const others = Object.keys(JOB_RULES).map((kind) => [kind, { run: finish, slots }]);
  const handlers: JobHandlers = {
    ...(Object.fromEntries(others) as JobHandlers),
    route_message: { run: route, slots, ...room, ...(giveUp ? { giveUp } : {}) },
    send_mail: { run: send as unknown as JobHandler<"send_mail">["run"], slots },
  };
  const worker = createWorker(t.app, handlers, {
    ...(patience ? { patience } : {}),
    ...(watch_ms ? { watch_ms } : {}),
  });
  setWorker(t.app, worker);
  return {
    ...t,
    worker,
    add: (options: Partial<Parameters<typeof enqueue<"route_message">>[2]> = {}, name = "m") =>
      t.app.write((tx) =>
        enqueue(t.app, tx, { kind: "route_message", payload: { message_id: name }, ...options }),
      ),
    addMail: () =>
      t.app.write((tx) => enqueue(t.app, tx, { kind: "send_mail", payload: { outgoing_id: "o" } })),
    jobs: () => t.app.db.selectFrom("jobs").selectAll().orderBy("id").execute(),
    async [Symbol.asyncDispose]() {
      await worker[Symbol.asyncDispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

/** A handler that reports each job it is given and then waits to be let go. */
export function gate() {
  const begun: string[] = [];
  const jobs: Job[] = [];
  const waiting: (() => void)[] = [];
  let heard = Promise.withResolvers<void>();
  const run: Run = async (app, job, signal) => {
    begun.push(job.payload.message_id);
    jobs.push(job);
    const go = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => go.reject(signal.reason as Error));
    waiting.push(go.resolve);
    heard.resolve();
    heard = Promise.withResolvers();
    await go.promise;
    await finish(app, job, signal);
  };
  return {
    begun,
    jobs,
    run,
    open: () => waiting.shift()?.(),
    async count(wanted: number) {
      while (begun.length < wanted) await heard.promise;
    },
  };
}
