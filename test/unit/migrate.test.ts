import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import {
  creditsOf,
  releaseCredit,
  reserveCredit,
  settleCredit,
  topUp,
} from "../../src/resources/billing/ledger.ts";
import { releaseDeadReserves } from "../../src/resources/billing/sweep.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { openDatabase } from "../../src/db/database.ts";
import { eventKey, messageKey } from "../../src/db/job-keys.ts";
import { migrateToLatest, migrationStatus } from "../../src/db/migrate.ts";
import { messageOf } from "../../src/errors.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { fillFirstVersion, idOf, KEY, type Row } from "../support/first-version.ts";

describe("migrations", () => {
  test("make a fresh database in the order of their names", async () => {
    await using database = openDatabase("sqlite::memory:");
    expect(await migrationStatus(database.db)).toEqual(
      Object.keys(migrations).map((name) => ({ name, executed: false })),
    );
    expect(await migrateToLatest(database.db)).toEqual(Object.keys(migrations));
    expect((await migrationStatus(database.db)).every(({ executed }) => executed)).toBe(true);
    expect(await database.db.selectFrom("messages").selectAll().execute()).toEqual([]);
  });

  test("do nothing the second time", async () => {
    await using database = openDatabase("sqlite::memory:");
    await migrateToLatest(database.db);
    expect(await migrateToLatest(database.db)).toEqual([]);
  });

  test("are listed in the order in which they run", () => {
    expect(Object.keys(migrations)).toEqual(Object.keys(migrations).toSorted());
  });

  test("refuse a database that a newer version has written, and leave it alone", async () => {
    await using database = openDatabase("sqlite::memory:");
    await migrateToLatest(database.db);
    await sql`insert into kysely_migration values ('9999-of-tomorrow', '2030-01-01')`.execute(database.db);
    expect(await migrateToLatest(database.db).catch(messageOf)).toBe(
      "This database was written by a newer Mailwright (it has the migration 9999-of-tomorrow). " +
        "Start that version or a later one, or restore a backup made before the upgrade.",
    );
    const { rows } = await sql`select name from kysely_migration order by name`.execute(database.db);
    expect(rows).toEqual([...Object.keys(migrations), "9999-of-tomorrow"].map((name) => ({ name })));
  });

  test("leave nothing behind when one is cut off half-way", async () => {
    await using database = openDatabase("sqlite::memory:");
    const { db } = database;
    const cutOff = new Migrator({
      db,
      provider: {
        getMigrations: async () => ({
          "0001-half": {
            async up(tx) {
              await sql`create table half (id integer)`.execute(tx);
              throw new Error("cut off");
            },
          },
        }),
      },
    });
    const { error } = await cutOff.migrateToLatest();
    expect(error).toMatchObject({ message: "cut off" });
    const tables = await db.introspection.getTables();
    expect(tables.map(({ name }) => name)).not.toContain("half");
    expect(await migrateToLatest(db)).toEqual(Object.keys(migrations));
  });
});

describe("a database of the first version", () => {
  test("keeps every row, and what is new has its initial value", async () => {
    await using database = openDatabase("sqlite::memory:");
    const { db } = database;
    const filled = await fillFirstVersion(db);
    expect(await migrateToLatest(db)).toEqual(Object.keys(migrations).slice(1));
    for (const [table, rows] of Object.entries(filled)) {
      const kept = await sql<Row>`select * from ${sql.table(table)} order by rowid`.execute(db);
      expect([table, kept.rows]).toMatchObject([table, rows]);
      expect([table, kept.rows.length]).toEqual([table, rows.length]);
    }
    const added = { password_hash: null, timezone: "UTC", reply_footer: 1 };
    expect(await db.selectFrom("users").selectAll().execute()).toMatchObject([added, added]);
    expect(await db.selectFrom("inboxes").selectAll().execute()).toMatchObject([
      { context_ids: null, retention_days: null, domain_id: null },
    ]);
    expect((await sql`pragma foreign_key_check`.execute(db)).rows).toEqual([]);
    expect((await sql`pragma integrity_check`.execute(db)).rows).toEqual([{ integrity_check: "ok" }]);
  });

  test("goes on to serve its account: key, connection, inbox, messages, threads, credits and waiting work", async () => {
    const dir = mkdtempSync(join(tmpdir(), "mailwright-migrate-"));
    using _ = { [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
    const url = `sqlite:${join(dir, "old.db")}`;
    {
      await using old = openDatabase(url);
      await fillFirstVersion(old.db);
    }
    await using t = await testApp({ database: { url } });
    const get = async (path: string) => (await t.request(path, { headers: { "x-api-key": KEY.key } })).body;
    expect(await get("/auth/me")).toMatchObject({ email: "ada@example.com", credits: { used: 2 } });
    expect(await get("/connections")).toMatchObject([
      { kind: "demo", has_credential: true, auth: "key", used_by_inboxes: 1 },
    ]);
    expect(await get("/inboxes")).toMatchObject([
      { address: "desk-abcdefghjkmn@mw.test", domain_id: null, context_ids: null, routed: true },
    ]);
    await t.drain();
    expect((await get("/messages")).items).toMatchObject([
      { message_id: idOf(12), source: "email", status: "done", tags: [], retry_of: null },
      { message_id: idOf(11), source: "api", status: "done", result: "It is fine." },
    ]);
    expect((await get("/messages?status=failed")).items).toEqual([]);
    expect((await get(`/messages?inbox_id=${idOf(5)}`)).items).toHaveLength(2);
    const thread = await get(`/conversations/${idOf(7)}`);
    expect(thread.turns).toMatchObject([{ instruction: "Look" }, { sender: "ada@example.com" }]);
    expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
    expect((await get("/auth/me")).credits.used).toBe(2);
  });
});

test("whoever subscribed before plans were written down is known to have the plan of the account", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0005");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  for (const [id, plan, subscription_id] of [
    ["ada", "team", "sub_1"],
    ["bob", "pro", null],
    ["eve", "free", "sub_2"],
  ]) {
    await sql`insert into users (id, email, plan, email_verified, is_admin, created)
      values (${id}, ${id}, ${plan}, 1, 0, 0)`.execute(db);
    await sql`insert into billing_accounts (user_id, customer_id, subscription_id, cancel_at_period_end, changed)
      values (${id}, ${id}, ${subscription_id}, 0, 0)`.execute(db);
  }
  await migrateToLatest(db);
  const rows = await db.selectFrom("billing_accounts").select(["user_id", "plan", "price_id"]).execute();
  expect(rows).toEqual([
    { user_id: "ada", plan: "team", price_id: null },
    { user_id: "bob", plan: null, price_id: null },
    { user_id: "eve", plan: null, price_id: null },
  ]);
});

test("a job that was enqueued before jobs were known by what they tell of is known by it", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0026");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  const jobs: [kind: string, payload: string, status: string, key: string | null, expected: string | null][] =
    [
      ["fan_out_event", '{"event_id":"evt_1"}', "pending", null, eventKey("evt_1")],
      ["fan_out_event", '{"event_id":"evt_1"}', "pending", null, null],
      ["fan_out_event", '{"event_id":"evt_2"}', "dead", null, null],
      ["fan_out_event", '{"event_id":"evt_3"}', "pending", eventKey("evt_3"), eventKey("evt_3")],
      ["fan_out_event", '{"event_id":"evt_3"}', "running", null, null],
      ["fan_out_event", '{"event_', "pending", null, null],
      ["tell_failure", '{"message_id":"m1"}', "running", null, messageKey("m1", "tell_failure")],
      [
        "mail_notice",
        '{"user_id":"u","kind":"no_credits","message_id":"m1"}',
        "pending",
        null,
        messageKey("m1", "no_credits"),
      ],
      ["mail_notice", '{"user_id":"u","kind":"no_credits"}', "pending", null, null],
      ["route_message", '{"message_id":"m1"}', "pending", null, null],
    ];
  for (const [at, [kind, payload, status, key]] of jobs.entries())
    await sql`insert into jobs (id, kind, payload, status, dedupe_key, run_at, created)
      values (${`job ${at}`}, ${kind}, ${payload}, ${status}, ${key}, 0, 0)`.execute(db);
  await migrateToLatest(db);
  const kept = await db.selectFrom("jobs").select(["payload", "dedupe_key"]).orderBy("id").execute();
  expect(kept).toEqual(jobs.map(([, payload, , , dedupe_key]) => ({ payload, dedupe_key })));
});

test("what recipes have made is for the inboxes that list it, and what owners chose by hand stays", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0030");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  for (const id of ["ada", "bob"])
    await sql`insert into users (id, email, plan, email_verified, is_admin, created)
      values (${id}, ${id}, 'team', 1, 0, 0)`.execute(db);
  const contexts: [id: string, user: string, slug: string, title: string, created: number, every: number][] =
    [
      ["listed", "ada", "email-summary", "How to summarise a mail", 100, 0],
      ["deleted-inbox", "ada", "translation", "How to translate", 100, 1],
      ["all-again", "ada", "json-extraction", "How to extract data as JSON", 100, 1],
      ["renamed", "ada", "bug-reports", "Our bugs", 100, 1],
      ["drafts", "ada", "reply-drafts", "How to draft a reply", 200, 0],
      ["about", "ada", "about-me", "About me", 201, 0],
      ["house", "ada", "house-style", "House style", 100, 1],
      ["bob-about", "bob", "about-me", "About me", 50, 1],
      ["bob-drafts", "bob", "reply-drafts", "How to draft a reply", 900, 0],
      ["bob-brief", "bob", "brief", "Research brief", 900, 1],
    ];
  for (const [id, user, slug, title, created] of contexts)
    await sql`insert into contexts (id, user_id, title, body, kind, slug, enabled, created, updated)
      values (${id}, ${user}, ${title}, 'x', 'instruction', ${slug}, 1, ${created}, 999)`.execute(db);
  const inboxes: [id: string, user: string, context_ids: string | null, deleted_at: number | null][] = [
    ["summaries", "ada", '["listed","house"]', null],
    ["translations", "ada", null, 500],
    ["extraction", "ada", null, null],
    ["bugs", "ada", '["renamed"]', null],
    ["replies", "ada", '["drafts","about"]', null],
    ["none", "ada", "[]", null],
    ["bob-replies", "bob", '["bob-drafts","bob-about"]', null],
    ["foreign", "ada", '["bob-brief"]', null],
  ];
  for (const [id, user, context_ids, deleted_at] of inboxes)
    await sql`insert into inboxes (id, user_id, label, local_part, domain, mcp_connection_ids, reply_enabled,
        allowlist_senders, inbound_policy, created, updated, context_ids, deleted_at)
      values (${id}, ${user}, '', ${id}, 'mw.test', '[]', 1, '[]', '{}', 0, 0, ${context_ids}, ${deleted_at})`.execute(
      db,
    );
  await migrateToLatest(db);
  const kept = await db
    .selectFrom("contexts")
    .select(["id", "every_inbox", "updated"])
    .orderBy("id")
    .execute();
  expect(kept).toEqual(
    contexts
      .map(([id, , , , , every_inbox]) => ({ id, every_inbox, updated: 999 }))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
  );
  const lists = await db.selectFrom("inboxes").select(["id", "context_ids", "every_context"]).execute();
  expect(lists.toSorted((one, other) => (one.id < other.id ? -1 : 1))).toEqual(
    inboxes
      .map(([id, , context_ids]) => ({ id, context_ids, every_context: context_ids === null ? 1 : 0 }))
      .toSorted((one, other) => (one.id < other.id ? -1 : 1)),
  );
});

describe("a database from before there were bought credits", () => {
  test("keeps its ledger as it was, all of it allowance, and what is open in it still ends once", async () => {
    await using t = await oldLedger();
    const rows: Row[] = await t.app.db.selectFrom("ledger").selectAll().orderBy("id").execute();
    expect(rows).toEqual(OLD_LEDGER.map((row, index) => ({ id: index + 1, ...row, ...ADDED })));
    const [ada, bob] = [{ id: ADA }, { id: BOB }];
    const seen = (user: { id: string }) => creditsOf(t.app, t.app.db, user);
    expect(await seen(ada)).toMatchObject({ allowance: 10, used: 2, topup: 0, remaining: 8 });
    expect(await seen(bob)).toMatchObject({ allowance: 10, used: 0, remaining: 10 });
    // One of this month and one of the last.
    for (const id of ["open", "late"])
      for (const _ of ["once", "twice"]) await t.app.write((tx) => releaseCredit(t.app, tx, { id }));
    await t.app.write((tx) => settleCredit(t.app, tx, { id: "open" }));
    expect(await seen(ada)).toMatchObject({ used: 1, remaining: 9 });
    const added = t.app.db.selectFrom("ledger").select(["kind", "period", "balance", "pool"]).orderBy("id");
    expect(await added.offset(rows.length).limit(9).execute()).toEqual([
      { kind: "release", period: "2026-01", balance: 9, pool: "allowance" },
      { kind: "release", period: "2025-12", balance: 9, pool: "allowance" },
    ]);
  });

  test("goes on with it: runs, other credits for the plan, and credits that are bought", async () => {
    await using t = await oldLedger({ team: { credits: 12 } });
    const reserve = (id: string) =>
      t.app.write((tx) => reserveCredit(t.app, tx, { id: ADA }, { message_id: id }));
    expect(await reserve("new")).toBe(true);
    const payment = { credits: 5, reference: "pi_1" };
    for (const counted of [true, false])
      expect(await t.app.write((tx) => topUp(t.app, tx, ADA, payment))).toBe(counted);
    expect(await creditsOf(t.app, t.app.db, { id: ADA })).toMatchObject({
      allowance: 12,
      used: 3,
      topup: 5,
      remaining: 14,
    });
    expect(await t.app.write((tx) => releaseDeadReserves(t.app, tx))).toBe(3);
    expect(await t.app.write((tx) => releaseDeadReserves(t.app, tx))).toBe(0);
    expect(await creditsOf(t.app, t.app.db, { id: ADA })).toMatchObject({ used: 1, remaining: 16 });
  });
});

const [ADA, BOB] = [idOf(1), idOf(2)];
const ADDED = { pool: "allowance", reference: null };
const december = { user_id: ADA, period: "2025-12", created: Date.UTC(2025, 11, 31) / 1_000 };
const january = { user_id: ADA, period: "2026-01", created: Date.UTC(2026, 0, 2) / 1_000 };

/** What a server of the third version wrote: two months of one account, with a run open in each, and one month of another. */
const OLD_LEDGER = [
  { ...december, kind: "grant", amount: 10, balance: 10, message_id: null },
  { ...december, kind: "reserve", amount: -1, balance: 9, message_id: "failed" },
  { ...december, kind: "reserve", amount: -1, balance: 8, message_id: "late" },
  { ...december, kind: "release", amount: 1, balance: 9, message_id: "failed" },
  { ...december, kind: "adjust", amount: -1, balance: 8, message_id: null },
  { ...december, user_id: BOB, kind: "grant", amount: 10, balance: 10, message_id: null },
  { ...january, kind: "grant", amount: 4, balance: 4, message_id: null },
  { ...january, kind: "reserve", amount: -1, balance: 3, message_id: "done" },
  { ...january, kind: "settle", amount: 0, balance: 3, message_id: "done" },
  { ...january, kind: "adjust", amount: 6, balance: 9, message_id: null },
  { ...january, kind: "reserve", amount: -1, balance: 8, message_id: "open" },
];

/** A server of today on such a database. */
async function oldLedger(plans: ConfigOverrides["plans"] = { team: { credits: 10 } }): Promise<TestApp> {
  const dir = mkdtempSync(join(tmpdir(), "mailwright-migrate-"));
  const url = `sqlite:${join(dir, "old.db")}`;
  {
    await using old = openDatabase(url);
    const early = Object.entries(migrations).slice(0, 3);
    const provider = { getMigrations: async () => Object.fromEntries(early) };
    const { error } = await new Migrator({ db: old.db, provider }).migrateToLatest();
    expect([error, early.at(-1)?.[0]]).toEqual([undefined, "0003-tools"]);
    const any = old.db as unknown as Kysely<Record<string, Row>>;
    const user = { email_verified: 1, is_admin: 0, plan: "team", created: december.created };
    await any
      .insertInto("users")
      .values({ ...user, id: ADA, email: "ada@example.com" })
      .execute();
    await any
      .insertInto("users")
      .values({ ...user, id: BOB, email: "bob@example.com" })
      .execute();
    await any.insertInto("ledger").values(OLD_LEDGER).execute();
  }
  const t = await testApp({ database: { url }, plans });
  return {
    ...t,
    async [Symbol.asyncDispose]() {
      await t[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

test("a digest goes on behind its last run that was done, and reads nothing again", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0042");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  await sql`pragma foreign_keys = off`.execute(db);
  for (const id of ["digest", "new"])
    await sql`insert into schedules (id, user_id, inbox_id, message_id, title, timezone, status, created, updated)
      values (${id}, 'ada', 'desk', 'order', ${id}, 'UTC', 'active', 0, 0)`.execute(db);
  for (const [id, state] of [
    ["run-1", "done"],
    ["run-2", "done"],
    ["run-3", "failed"],
  ])
    await sql`insert into messages (id, user_id, source, state, authority, schedule_id, accepted_ms, created)
      values (${id}, 'ada', 'email', ${state}, 'owner', 'digest', 0, 0)`.execute(db);
  await migrateToLatest(db);
  const rows = await db.selectFrom("schedules").select(["id", "read_up_to"]).orderBy("id").execute();
  expect(rows).toEqual([
    { id: "digest", read_up_to: "run-2" },
    { id: "new", read_up_to: null },
  ]);
});

test("a digest whose answer an older version has put off begins behind the run before it, if that is given up", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0053");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  await sql`pragma foreign_keys = off`.execute(db);
  for (const [id, over] of [
    ["digest", "{}"],
    ["plain", null],
  ])
    await sql`insert into schedules (id, user_id, inbox_id, message_id, title, timezone, status, over, created, updated)
      values (${id}, 'ada', 'desk', 'order', ${id}, 'UTC', 'active', ${over}, 0, 0)`.execute(db);
  for (const [id, schedule, reply_status, read_from] of [
    ["a1", "digest", "deferred", null],
    ["a2", "digest", "sent", null],
    ["a3", "digest", "deferred", null],
    ["a4", "digest", "queued", "known"],
    ["b1", "plain", "deferred", null],
  ])
    await sql`insert into messages (id, user_id, source, state, authority, schedule_id, reply_status, read_from, accepted_ms, created)
      values (${id}, 'ada', 'email', 'done', 'owner', ${schedule}, ${reply_status}, ${read_from}, 0, 0)`.execute(
      db,
    );
  await migrateToLatest(db);
  const rows = await db.selectFrom("messages").select(["id", "read_from"]).orderBy("id").execute();
  expect(rows.map(({ read_from }) => read_from)).toEqual(["", null, "a2", "known", null]);
});

test("the one fallback of a connection is the first of several", async () => {
  await using database = openDatabase("sqlite::memory:");
  const { db } = database;
  const older = Object.entries(migrations).filter(([name]) => name < "0055");
  const provider = { getMigrations: async () => Object.fromEntries(older) };
  await new Migrator({ db, provider }).migrateToLatest();
  await sql`pragma foreign_keys = off`.execute(db);
  for (const [id, fallback] of [
    ["first", "second"],
    ["second", null],
  ])
    await sql`insert into connections (id, user_id, kind, label, status, created, updated, fallback_connection_id)
      values (${id}, 'ada', 'demo', ${id}, 'ok', 0, 0, ${fallback})`.execute(db);
  await migrateToLatest(db);
  const rows = await db
    .selectFrom("connections")
    .select(["id", "fallback_connection_ids"])
    .orderBy("id")
    .execute();
  expect(rows).toEqual([
    { id: "first", fallback_connection_ids: '["second"]' },
    { id: "second", fallback_connection_ids: "[]" },
  ]);
});
