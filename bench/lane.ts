/**
 * How fast jobs are enqueued and claimed while many wait in one conversation: `bun bench/lane.ts [--waiting 100000]`. All is
 * done in transactions of 200, so that the disk does not matter.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type App, createApp } from "../src/app.ts";
import { defaultConfig } from "../src/config/config.ts";
import type { Db } from "../src/db/database.ts";
import { claimPending } from "../src/jobs/claim.ts";
import { enqueue, finishJob, type Job } from "../src/jobs/queue.ts";
import { createKeptMemory } from "../src/jobs/kept-memory.ts";
import { createUses } from "../src/jobs/shares.ts";
import { createTurns } from "../src/jobs/turns.ts";
import { createLog } from "../src/lib/log.ts";

const { values } = parseArgs({ options: { waiting: { type: "string", default: "100000" } } });
const WAITING = Number(values.waiting);
const AT_ONCE = 200;
const COUNT = 20_000;
const LONG_ENOUGH_MS = 10_000;
const turns = createTurns();
const ROOM = { slots: 16, bytes: Infinity, target_slots: Infinity };

const dir = await mkdtemp(join(tmpdir(), "mailwright-lane-"));
await using _folder = { [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
await using app = await createApp(defaultConfig({ data: { dir }, security: { master_key: "" } }), {
  log: createLog({ level: "warn", format: "text" }),
});

await told("enqueued, each in a lane of its own", COUNT, (tx, n) => add(app, tx, `${n}`));
await told("claimed and ended, each alone in its lane", COUNT, (tx) => claimAndEnd(app, tx));
await told("enqueued, all in one lane", WAITING, (tx) => add(app, tx, "one"));
await told("claimed and ended in that lane", COUNT, (tx) => claimAndEnd(app, tx));
await told("enqueued, claimed and ended beside it", COUNT, besideIt);
await app.write((tx) => claimed(app, tx));
await told("the same while the first of that lane runs", COUNT, besideIt);

function add(to: App, tx: Db, lane: string, account = "ada"): Promise<unknown> {
  const share = { account, slots: null };
  return enqueue(to, tx, { kind: "route_message", payload: { message_id: "m" }, lane, share });
}

async function besideIt(tx: Db, n: number): Promise<void> {
  await add(app, tx, `${n}`, "bob");
  await claimAndEnd(app, tx);
}

async function claimed(of: App, tx: Db): Promise<Job[]> {
  const uses = createUses();
  const options = { now: of.now(), leaseEnd: of.steadyAfter, limit: 1, free: 1, room: ROOM };
  return (await claimPending(tx, "route_message", { ...options, uses, turns, kept: createKeptMemory(uses) }))
    .jobs;
}

async function claimAndEnd(of: App, tx: Db): Promise<void> {
  for (const job of await claimed(of, tx)) await finishJob(tx, job);
}

/** Stops after a while: one that is slow is told by fewer. */
async function told(what: string, count: number, work: (tx: Db, n: number) => Promise<unknown>) {
  const began = performance.now();
  const until = what.startsWith("enqueued, ") ? Infinity : began + LONG_ENOUGH_MS;
  let done = 0;
  const isOver = (): boolean => done >= count || performance.now() >= until;
  while (!isOver())
    await app.write(async (tx) => {
      for (let n = 0; n < AT_ONCE && !isOver(); n += 1) await work(tx, (done += 1));
    });
  const seconds = (performance.now() - began) / 1_000;
  console.log(`${Math.round(done / seconds)} a second: ${what} (${done} in ${seconds.toFixed(1)} s)`);
}
