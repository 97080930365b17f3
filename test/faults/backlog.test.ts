import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { account, type House, house, inbox, type ServerProcess } from "./house.ts";
import { closing } from "./load.ts";
import { until } from "../support/until.ts";

/** `BACKLOG_DRAIN=1 bun test test/faults/backlog.test.ts` also waits for the last of them. */
const DRAIN = process.env["BACKLOG_DRAIN"] === "1";
const JOBS = 10_000;
const PROBES = 100;

test(
  "10,000 queued mails at a start keep nobody waiting: ready at once, new mail of others first, memory bounded",
  async () => {
    await using sink = await startSmtpSink({ starttls: false });
    await using at = await house({
      // As it is by default: of a share of their own.
      plans: { team: { credits: 1_000_000, route_per_minute: 0, inbound_per_hour: 0 } },
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [1, 1, 1] },
    });
    const [ann, bob] = [await account(at, "ann@client.example"), await account(at, "bob@other.example")];
    let to = { ann: "", bob: "" };
    {
      await using server = await at.start();
      to = { ann: await inbox(server, ann), bob: await inbox(server, bob) };
      expect((await at.cli("queue", "hold", "route_message")).code).toBe(0);
      await send(server, ann.email, to.ann);
      server.kill("SIGTERM");
      expect(await server.exited).toBe(0);
    }
    expect((await at.cli("queue", "release")).code).toBe(0);
    multiply(at);
    const began = performance.now();
    await using server = await at.start();
    const ready_ms = performance.now() - began;
    await send(server, bob.email, to.bob);
    const sent = performance.now();
    const answers = answeredTo(sink, bob.email);
    const slowest_ms = await probe(server);
    await answers;
    const answered_ms = performance.now() - sent;
    const left = waiting(at);
    expect(left).toBeGreaterThan(JOBS / 2);
    expect(ready_ms).toBeLessThan(5_000);
    expect(answered_ms).toBeLessThan(10_000);
    expect(slowest_ms).toBeLessThan(1_000);
    const memory_mb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))?.[1]);
    expect(memory_mb / 1_024).toBeLessThan(500);
    if (DRAIN) await until(() => waiting(at) === 0, 600_000);
    console.log(
      `backlog of ${JOBS}: ready after ${Math.round(ready_ms)} ms, a new mail of somebody else answered after ` +
        `${Math.round(answered_ms)} ms with ${left} still waiting, slowest /livez ${Math.round(slowest_ms)} ms, ` +
        `memory at most ${Math.round(memory_mb / 1_024)} MB${DRAIN ? `, all done after ${Math.round(performance.now() - began)} ms` : ""}`,
    );
  },
  DRAIN ? 300_000 : 120_000,
);

async function send(server: ServerProcess, from: string, to: string): Promise<void> {
  const raw = rawMail({ from, to, text: "Please sum up." });
  expect(await deliver(server.smtp, { from, to, raw })).toStartWith("250");
}

type Row = Record<string, unknown>;

/** Makes as many of the one mail that waits, each with a conversation and a reserve of its own. */
function multiply(at: House): void {
  using database = closing(at.database());
  const { db } = database;
  const one = (text: string) => db.prepare(text).get() as Row;
  const tables = ["conversations", "raw_mails", "messages", "ledger", "jobs"] as const;
  const insertOf = (table: string, row: object): ((row: object) => unknown) => {
    const names = Object.keys(row);
    const statement = db.prepare(
      `insert into ${table} (${names.join()}) values (${names.map((name) => `@${name}`).join()})`,
    );
    return (values) => statement.run(values);
  };
  const rows = {
    conversations: one("select * from conversations"),
    raw_mails: one("select * from raw_mails"),
    messages: one("select * from messages"),
    ledger: one("select * from ledger where kind = 'reserve'"),
    jobs: one("select * from jobs where kind = 'route_message'"),
  };
  const insert = Object.fromEntries(tables.map((table) => [table, insertOf(table, rows[table])]));
  db.transaction(() => {
    for (let count = 1; count < JOBS; count += 1) {
      const [id, conversation_id, raw_mail_id] = [1, 2, 3].map(() => Bun.randomUUIDv7());
      const own = { conversation_id, raw_mail_id, dedupe_key: null, rfc_message_id: `<copy-${count}@x>` };
      insert["conversations"]?.({ ...rows.conversations, id: conversation_id });
      insert["raw_mails"]?.({ ...rows.raw_mails, id: raw_mail_id });
      insert["messages"]?.({ ...rows.messages, id, ...own });
      const balance = (rows.ledger["balance"] as number) - count;
      insert["ledger"]?.({ ...rows.ledger, id: null, message_id: id, balance });
      const payload = JSON.stringify({ message_id: id });
      insert["jobs"]?.({ ...rows.jobs, id: Bun.randomUUIDv7(), lane: conversation_id, payload });
    }
  })();
}

/** Resolves when a mail to `email` has been handed over. */
async function answeredTo(sink: Awaited<ReturnType<typeof startSmtpSink>>, email: string): Promise<void> {
  while (!(await sink.next()).rcpt_to.includes(email));
}

/** Milliseconds of the slowest of some answers that cost nothing: what the event loop keeps others waiting for. */
async function probe(server: ServerProcess): Promise<number> {
  let slowest = 0;
  for (let count = 0; count < PROBES; count += 1) {
    const began = performance.now();
    expect((await fetch(`${server.http}/livez`)).status).toBe(200);
    slowest = Math.max(slowest, performance.now() - began);
    await Bun.sleep(5);
  }
  return slowest;
}

function waiting(at: House): number {
  using database = closing(at.database());
  return database.db
    .prepare("select count(*) from jobs where kind = 'route_message' and status = 'pending'")
    .pluck()
    .get() as number;
}
