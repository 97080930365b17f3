import { describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { type App, createApp } from "../../src/app.ts";
import type { Config } from "../../src/config/config.ts";
import { openSealed } from "../../src/resources/connections/sealed.ts";
import { createLog } from "../../src/lib/log.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { createHttp } from "../../src/api.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { takeOver } from "../../src/serve.ts";
import { chanceFrom, seedFrom } from "../support/chance.ts";
import { KILL_POINTS, KILLED, listed } from "../support/kill-points.ts";
import { leftOver } from "../support/mail-files.ts";
import { isTest } from "../support/named-tests.ts";
import { type Kind, placesInSource, placesOf } from "../support/places.ts";
import { CALL, CALL_KEY, type Given, KEPT, type Life, live, type Moment } from "./kill-scenario.ts";
import { closing } from "./load.ts";

/** `EVERY_STEP=1` for all moments; each run takes one in so many, beginning by chance, and says with which seed. */
const STRIDE = process.env["EVERY_STEP"] === undefined ? 8 : 1;
/** What waits for a moment of its own is due after these, in milliseconds. */
const PASSING = [0, 130_000, 700_000];

const KINDS = Object.keys(KILL_POINTS) as Kind[];
const places = await placesInSource();

test.each(KINDS)(
  "every %s in the sources is in the list of kill points, with what is known of a kill there",
  async (kind) => {
    const inSource = places.filter((place) => place.kind === kind).map(({ name }) => name);
    expect(Object.values(KILL_POINTS[kind]).flat().toSorted()).toEqual(inSource.toSorted());
    const named = Object.keys(KILL_POINTS[kind]).filter((way) => way.startsWith("test/"));
    const found = await Promise.all(named.map(isTest));
    expect(named.filter((_way, at) => !found[at])).toEqual([]);
  },
);

describe("the look at the sources", () => {
  const SEEN: [string, Kind][] = [
    ["await app.write((tx) => act(tx));", "commit"],
    ["await app\n  .write(async (tx) => act(tx));", "commit"],
    ["await write<string>(act);", "commit"],
    ["await shift.app.insist(act, {});", "commit"],
    ["await handOn(app, act);", "commit"],
    ["const out = createWriteStream(path);", "file"],
    ["renameSync(path, other);", "file"],
    ['await using file = await open(path, "r+");', "file"],
    ["await file.writeFile(text);", "file"],
    ["await pipeline(from, to);", "file"],
    ["punch(file, range);", "file"],
    ["await replaceFile(path, text);", "file"],
    ["await app.sender.send(mail);", "effect"],
    ["await app.poster.post(url, body);", "effect"],
    ["await tool.call(args, signal);", "effect"],
    ["await app.fetch(url);", "effect"],
    ["await askStripe(app, act);", "effect"],
  ];
  const HEAD =
    'import { createWriteStream, renameSync } from "node:fs"; import { open, readFile } from "node:fs/promises";';
  const HELPER = "export async function handOn(app: App, operation: Act) { return app.write(operation); }";

  test.each(SEEN)("sees %j", (text, kind) => {
    const source = `${HEAD}\nasync function act() {\n${text}\n}`;
    const found = placesOf([
      ["lib/helper.ts", HELPER],
      ["mail/new.ts", source],
    ]);
    expect(found.filter(({ name }) => name.startsWith("mail/"))).toMatchObject([
      { kind, name: "mail/new.ts act" },
    ]);
  });

  test("sees nothing in what only reads, or writes to something else", () => {
    const text =
      'readFile(path); open(path, "r"); socket.write(line); http.fetch(request); function write() {} write();';
    expect(placesOf([["mail/new.ts", `${HEAD}\n${text}`]])).toEqual([]);
  });
});

test(
  "a kill before or after any commit loses nothing, doubles nothing, and leaves nothing half or behind",
  async () => {
    const base = await mkdtemp(join(tmpdir(), "mailwright-points-"));
    const chance = chanceFrom(seedFrom("FAULT_SEED", "kill points"));
    const first = Math.floor(chance() * STRIDE);
    await using life = await live(base, (moment) => moment % STRIDE === first);
    const killed = places.filter(({ kind, name }) => listed(kind, KILLED).includes(name));
    expect(killed.filter(({ line }) => !life.reached.has(line)).map(({ name }) => name)).toEqual([]);
    for (const moment of life.moments)
      expect([moment.at, await faultsAfter(life, moment)]).toEqual([moment.at, []]);
    expect(life.moments.length).toBeGreaterThan(140 / STRIDE);
    console.log(
      `started again from ${life.moments.length} moments: nothing lost, doubled, half or left behind`,
    );
    await rm(base, { recursive: true });
  },
  600_000 / STRIDE,
);

/** What is wrong once a server has started on what a kill at this moment leaves, and has done what was left to do. */
async function faultsAfter(life: Life, moment: Moment): Promise<string[]> {
  const { dir, said } = moment;
  const config = configOf(life, dir);
  const given = {
    mails: life.sink.mails.length,
    events: life.hooks.received.length,
    calls: life.room.tools.calls.length,
  };
  let now_ms = moment.now_ms;
  const faults: string[] = [];
  {
    // They keep nothing, and take longer to start than all the rest.
    const { examiner, parser, files, texts, bodies } = life.room.app;
    await using app = await createApp(config, {
      threads: { examiner, parser, files, texts, bodies },
      nowMs: () => now_ms,
      steadyMs: () => now_ms,
      log: createLog({ level: "silent", format: "text" }),
    });
    const handlers = jobHandlers(app);
    await takeOver(app);
    await using worker = createWorker(app, handlers);
    Object.assign(app, { worker });
    if (!said.includes("another day")) faults.push(...(await callAgain(app, life)));
    for (const passing of PASSING) {
      now_ms += passing;
      await worker.drain();
    }
    faults.push(...(await tokenFaults(app, life, moment)));
    for (const [name, bytes] of Object.entries(await leftOver(app)))
      faults.push(`${bytes} bytes of nobody are left in ${name}`);
    if (app.upkeep.lostCommits() !== undefined) faults.push("commits are said to be lost");
  }
  const drafts = (await readdir(join(dir, "backups"))).filter((name) => name.startsWith("."));
  using database = closing(new Sqlite(join(dir, "db", "mailwright.db")));
  return [
    ...faults,
    ...drafts.map((name) => `${name} is left of a backup`),
    ...databaseFaults(database.db, moment, Math.floor(now_ms / 1_000)),
    ...outsideFaults(database.db, life, { moment, given }),
  ];
}

function configOf({ config }: Life, dir: string): Config {
  return {
    ...config,
    data: { ...config.data, dir: join(dir, "data") },
    database: { ...config.database, url: `sqlite:${join(dir, "db", "mailwright.db")}` },
    backup: { ...config.backup, dir: join(dir, "backups") },
  };
}

/** Somebody who has heard nothing asks again with the same key. */
async function callAgain(app: App, { key }: Life): Promise<string[]> {
  const request = new Request("http://mw.test/v1/messages", {
    method: "POST",
    headers: {
      "x-api-key": key,
      "content-type": "application/json",
      "idempotency-key": CALL_KEY,
      prefer: "wait=0",
    },
    body: JSON.stringify(CALL),
  });
  const answer = await createHttp(app, { ready: async () => ({}) }).handle(request);
  const { status } = (await answer.json()) as { status: string };
  return status === "done" || status === "processing"
    ? []
    : [`the call ended with ${answer.status} ${status}`];
}

/** The old grant, the new one, or none and a letter about it: a provider takes the old one back as it gives the new one. */
async function tokenFaults(app: App, { connection_id }: Life, { said }: Moment): Promise<string[]> {
  const row = await app.db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", connection_id)
    .executeTakeFirst();
  const alive = app.db.selectFrom("users").select("id").where("deleted_at", "is", null);
  if (!row)
    return said.includes("connected") && (await alive.executeTakeFirst()) ? ["the connection is lost"] : [];
  const { credential, oauth } = openSealed(app, row);
  const whole = credential !== "" && (oauth?.ended === true) === (row.status === "needs_auth");
  const late = said.includes("over") && row.status !== "needs_auth";
  return [
    ...(whole ? [] : ["a grant is half written"]),
    ...(late ? ["a grant that is over counts again"] : []),
  ];
}

function databaseFaults(db: Sqlite.Database, { said }: Moment, now: number): string[] {
  const one = (text: string) => db.prepare(text).pluck().get() as number;
  const names = said.filter((words) => words.startsWith("mail ")).map((words) => words.slice("mail ".length));
  const isOld = said.includes("old");
  const stored = (name: string) =>
    one(
      `select count(*) from messages where rfc_message_id = '${name}@example.com' and retry_of is null and schedule_id is null`,
    );
  const problems: [string, number][] = [
    ["mails lost", isOld ? 0 : names.filter((name) => stored(name) === 0).length],
    ["mails doubled", names.filter((name) => stored(name) > 1).length],
    [
      "calls lost or doubled",
      said.includes("old") ? 0 : Math.abs(1 - one("select count(*) from messages where subject = 'Call'")),
    ],
    ["messages not ended", one("select count(*) from messages where state = 'received'")],
    [
      "jobs left over",
      one(`select count(*) from jobs where status <> 'pending' or run_at <= ${now} or failures > 0`),
    ],
    [
      "mails without exactly one answer or notice",
      one(`select count(*) from messages m where source = 'email' and state in ('done', 'failed')
        and (select count(*) from outgoing_mails o where o.message_id = m.id) <> 1`),
    ],
    ["answers that wait", one("select count(*) from outgoing_mails where completed is null")],
    [
      "messages that are not charged once for what was done, and not at all for what failed",
      one(`select count(*) from messages m where state in ('done', 'failed') and source <> 'test' and
        (select group_concat(kind, ' ') from (select kind from ledger l where l.message_id = m.id order by id))
        is not case when state = 'done' and (model is not null or id in (select run_id from approvals where state in ('done', 'failed', 'unknown')))
          then 'reserve settle' else 'reserve release' end`),
    ],
    [
      "calls that were allowed, and are neither done nor known to have been begun",
      isOld || !said.includes("allowed")
        ? 0
        : one("select count(*) from approvals where state in ('approved', 'called')"),
    ],
    ["requests lost", !isOld && said.includes("allowed") ? 4 - one("select count(*) from approvals") : 0],
    [
      "runs of a schedule that were made twice",
      one(`select count(*) from (select 1 from messages where schedule_id is not null
        group by schedule_id, created / 3600 having count(*) > 1)`),
    ],
    [
      "schedules without a next time, or without a job for it",
      one(`select count(*) from schedules s where status = 'active' and not exists
        (select 1 from jobs j where j.dedupe_key = 'schedule ' || s.id and j.run_at = s.next_at)`),
    ],
    [
      "messages that a rule has kept and that are not charged for its question",
      one(`select count(*) from messages m where reason = 'kept_by_rule' and
        (select group_concat(kind, ' ') from (select kind from ledger l where l.message_id = m.id order by id))
        is not 'reserve settle'`),
    ],
    ["replays lost, or without their verdict", !isOld && said.includes("again") ? 3 - one(REPLAYS) : 0],
    ["replays not done", one("select count(*) from replays where state <> 'done'")],
    [
      "replays that are not charged once",
      one(`select count(*) from replays r where
        (select group_concat(kind, ' ') from (select kind from ledger l where l.message_id = r.id order by id))
        is not 'reserve settle'`),
    ],
    [
      "deliveries that wait or failed",
      one("select count(*) from webhook_deliveries where status <> 'delivered'"),
    ],
    [
      "raw mails of no message",
      one(
        "select count(*) from raw_mails where id not in (select raw_mail_id from messages where raw_mail_id is not null)",
      ),
    ],
    ["accounts of the dead", said.includes("ended") ? one("select count(*) from users") : 0],
    [
      "notes of calls that are over",
      one(
        "select count(*) from tool_calls c join messages m on m.id = c.message_id where m.state <> 'failed'",
      ),
    ],
  ];
  const check = db.pragma("integrity_check", { simple: true });
  return [
    ...problems.filter(([, count]) => count > 0).map(([problem, count]) => `${count} ${problem}`),
    ...(check === "ok" ? [] : [`integrity check: ${String(check)}`]),
  ];
}

/** Those of the test set end with what in their answer is otherwise than expected. */
const REPLAYS =
  "select count(*) from replays where test_run_id is null or (passed = 0 and differs is not null)";

/** What others have been given: until the kill, and by the server that was started after it. */
function outsideFaults(
  db: Sqlite.Database,
  { sink, hooks, room }: Life,
  { moment, given }: { moment: Moment; given: Given },
): string[] {
  const inAll = <One>(all: One[], count: keyof Given): One[] => [
    ...all.slice(0, moment.given[count]),
    ...all.slice(given[count]),
  ];
  const column = (text: string) => db.prepare(text).pluck().all() as string[];
  const mails = inAll(sink.mails, "mails").map(({ raw }) => String(raw));
  const idOf = (raw: string) => /^Message-ID: <(.*)>/im.exec(raw)?.[1] ?? "";
  const events = inAll(hooks.received, "events");
  const toldOf = new Set(events.map(({ headers }) => headers["webhook-id"] ?? ""));
  const handed = new Set(mails.map(idOf));
  return [
    ...column("select rfc_message_id from outgoing_mails where status <> 'suppressed'")
      .filter((id) => !handed.has(id))
      .map((id) => `the relay never got ${id}`),
    ...column("select id from events")
      .filter((id) => !toldOf.has(id))
      .map((id) => `nobody was told of ${id}`),
    ...[...Map.groupBy(mails, idOf)]
      .filter(([, same]) => new Set(same).size > 1 || same.length > 2)
      .map(([id]) => `${id} was handed over in two forms`),
    ...[...Map.groupBy(events, ({ headers }) => headers["webhook-id"])]
      .filter(([, same]) => new Set(same.map(({ body }) => body)).size > 1)
      .map(([id]) => `${id} was told in two forms`),
    ...(new Set(mails.filter((raw) => raw.includes(`Subject: Fwd: ${KEPT}`)).map(idOf)).size > 1
      ? ["a mail was forwarded twice"]
      : []),
    ...[...Map.groupBy(inAll(room.tools.calls, "calls"), ({ args }) => JSON.stringify(args))]
      .filter(([, same]) => same.length > 1)
      .map(([args]) => `the tool was called twice with ${args}`),
    ...(/nothing|never/.test(JSON.stringify(room.tools.calls)) ? ["what was refused was called"] : []),
  ];
}
