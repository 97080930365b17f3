import { rmSync } from "node:fs";
import { join } from "node:path";
import { createVerifiedUser } from "../src/resources/accounts/accounts.ts";
import { type App, createApp } from "../src/app.ts";
import { defaultConfig } from "../src/config/config.ts";
import type { Db } from "../src/db/database.ts";
import { insertRow } from "../src/db/prepared.ts";
import { jobHandlers } from "../src/operation/jobs.ts";
import { createWorker } from "../src/jobs/worker.ts";
import { createLog } from "../src/lib/log.ts";
import { type EventObject, eventRow, recordEvent } from "../src/resources/webhooks/events.ts";
import { deliverLater } from "../src/resources/webhooks/fan-out.ts";
import { mintSecret, sealSecrets } from "../src/resources/webhooks/secrets.ts";
import { sign } from "../src/resources/webhooks/signature.ts";
import {
  interleave,
  noteFigure,
  roundsOf,
  noteRatio,
  percentile,
  printResults,
  printSettings,
  startScript,
  temporaryFolder,
} from "./support.ts";

/** Deliveries that wait in the database, signed, recorded and sent, against a bare `fetch` loop to the same receiver. */
const ROUNDS = roundsOf(9);
const WARM_UP = 8;
const ENDPOINTS = 20;
const DELIVERIES = 6_000;
/** Deliveries that are queued in one transaction. */
const AT_ONCE = 500;
/** As many as this server has under way: five for each endpoint. */
const IN_FLIGHT = 5 * ENDPOINTS;
/** For the time from an event to its first attempt. */
const EVENTS_PER_SECOND = 200;
const EVENTS = 1_000;

const object: EventObject = {
  message_id: Bun.randomUUIDv7(),
  conversation_id: Bun.randomUUIDv7(),
  source: "email",
  status: "done",
  result: "The invoice is from Northwind, 42 EUR, due on the 14th. ".repeat(10),
  error: null,
  usage: { input_tokens: 1_200, output_tokens: 150 },
  subject: "Invoice 4711",
  created: 1_767_225_600,
  inbox_id: Bun.randomUUIDv7(),
  sender: "ada@example.com",
  tags: [],
  attachments: [],
  metadata: {},
};

const dir = temporaryFolder();
using folder = new DisposableStack();
folder.defer(() => rmSync(dir, { recursive: true, force: true }));
await using receiver = await startScript("webhook-receiver.ts");
const url = `http://127.0.0.1:${receiver.port}/hook`;
await using app = await createApp(
  defaultConfig({
    data: { dir },
    database: { url: `sqlite:${join(dir, "mailwright.db")}` },
    plans: { default: "team" },
    webhooks: { allow: ["127.0.0.1"] },
  }),
  { log: createLog({ level: "warn", format: "text" }) },
);
await using worker = createWorker(app, jobHandlers(app));
Object.assign(app, { worker });
worker.start();
const user = await createVerifiedUser(app, { email: "ada@client.example" });
const many = await accountWith(app, user.id, ENDPOINTS);
printSettings({
  rounds: ROUNDS,
  deliveries: `${DELIVERIES} in each round, over ${ENDPOINTS} endpoints`,
  ours: "two HMACs, the attempt and its outcome in synced commits",
  theirs: `fetch of one signed request, ${IN_FLIGHT} in flight as on our side`,
});

const row = eventRow(app, { user_id: user.id, type: "message.completed", livemode: true, object });
// The first rounds mostly compile: a server does that once in its life.
for (let round = 0; round < WARM_UP; round += 1) {
  await deliver();
  await bare();
}
const rates = await interleave(ROUNDS, deliver, bare);
noteRatio(`deliveries, ${ENDPOINTS} endpoints`, rates, "/s");

// Each event goes to one endpoint of an account of its own, as most do.
const owners: string[] = [];
for (let index = 0; index < ENDPOINTS; index += 1) {
  const owner = await createVerifiedUser(app, { email: `user${index}@client.example` });
  await accountWith(app, owner.id, 1);
  owners.push(owner.id);
}
const delays: { p50: number; p99: number }[] = [];
for (let round = 0; round < ROUNDS; round += 1) delays.push(await delay());
noteFigure(
  `event to first attempt, ${EVENTS_PER_SECOND}/s, p50`,
  delays.map(({ p50 }) => p50),
  "ms",
);
noteFigure(
  `event to first attempt, ${EVENTS_PER_SECOND}/s, p99`,
  delays.map(({ p99 }) => p99),
  "ms",
);
printResults();

async function accountWith(at: App, user_id: string, endpoints: number) {
  const rows = Array.from({ length: endpoints }, () => {
    const id = Bun.randomUUIDv7();
    return {
      id,
      user_id,
      url,
      event_types: JSON.stringify(["message.completed"]),
      enabled: 1,
      sealed: sealSecrets(at, id, { secret: mintSecret(), old_secret: null }),
      old_secret_until: null,
      consecutive_failures: 0,
      disabled_reason: null,
      description: null,
      deleted_at: null,
      created: at.now(),
      updated: at.now(),
    };
  });
  await at.db.insertInto("webhook_endpoints").values(rows).execute();
  return rows;
}

/** Deliveries per second, from the commit that has them wait to the one that writes the last of them down. */
async function deliver(): Promise<number> {
  const held = app.worker;
  // Nobody is woken before all are there.
  Object.assign(app, { worker: undefined });
  for (let made = 0; made < DELIVERIES; made += AT_ONCE) await app.write((tx) => queueSome(tx, made));
  Object.assign(app, { worker: held });
  const started = performance.now();
  worker.wake("deliver_webhooks");
  await nothingWaits();
  return DELIVERIES / ((performance.now() - started) / 1_000);
}

async function queueSome(tx: Db, made: number): Promise<void> {
  for (let index = made; index < made + AT_ONCE; index += 1) {
    const event = eventRow(app, { user_id: user.id, type: "message.completed", livemode: true, object });
    await insertRow(tx, "events", event);
    const endpoint = many[index % many.length];
    if (endpoint) await deliverLater(app, tx, { event, endpoint });
  }
}

/** A finished endpoint has no job any more. */
async function nothingWaits(): Promise<void> {
  for (;;) {
    const jobs = await app.db.selectFrom("jobs").select("id").execute();
    if (jobs.length === 0) return;
    // Looking often all the time takes a tenth of what is measured; they end nearly together.
    await Bun.sleep(jobs.length < ENDPOINTS ? 1 : 20);
  }
}

async function bare(): Promise<number> {
  const { id, type, body } = row;
  const headers = sign([mintSecret()], { id, type, body, timestamp: app.now(), attempt: 1 });
  let left = DELIVERIES;
  const started = performance.now();
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await fetch(url, { method: "POST", headers, body });
      await answer.arrayBuffer();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, loop));
  return DELIVERIES / ((performance.now() - started) / 1_000);
}

/** Milliseconds from the commit of an event to its arrival at the receiver. */
async function delay(): Promise<{ p50: number; p99: number }> {
  const begun = new Map<string, number>();
  const started = performance.now();
  for (let index = 0; index < EVENTS; index += 1) {
    const wait = started + (index * 1_000) / EVENTS_PER_SECOND - performance.now();
    if (wait > 0) await Bun.sleep(wait);
    const user_id = owners[index % owners.length] ?? "";
    const event = { user_id, type: "message.completed", livemode: true, object: async () => object } as const;
    void app
      .write((tx) => recordEvent(app, tx, event))
      .then((id) => begun.set(id ?? "", performance.timeOrigin + performance.now()));
  }
  await nothingWaits();
  const answer = await fetch(url);
  const arrived = (await answer.json()) as Record<string, number>;
  const times = [...begun].map(([id, at]) => (arrived[id] ?? Number.NaN) - at);
  return { p50: percentile(times, 0.5), p99: percentile(times, 0.99) };
}
