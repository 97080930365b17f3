import { describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import type { Db } from "../../src/db/database.ts";
import { insertRow } from "../../src/db/prepared.ts";
import { NO_BYTES } from "../../src/resources/messages/stored-bytes.ts";
import { purgeLater } from "../../src/operation/retention/purge.ts";
import { storeMessages } from "../api/archive.ts";
import type { TestApp } from "../support/app.ts";
import { testApp } from "../support/app.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";
import { limit, priced } from "../support/priced-room.ts";
import { pass, purge } from "../support/purge.ts";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { databaseFolder, everyByte } from "../support/whole-folder.ts";

/** Longer than what the database takes: it goes to a segment file. */
const BULK_BYTES = 40_000;

test("raw mails, content, files, answers and deliveries go after their days, to the last byte; what tells of them stays", async () => {
  await using folder = await databaseFolder();
  await using hook = startReceiver(() => new Response("SECRET-answer", { status: 200 }));
  await using room = await busyRoom({ database: { url: folder.url }, webhooks: TO_LOOPBACK });
  await room.owner.post("/v1/webhooks", { url: hook.url, event_types: ["*"] });
  await fill(room);
  expect(found(await everyByte(room, folder))).toEqual([
    "SECRET-answer",
    "SECRET-bulk",
    "SECRET-contact",
    "SECRET-content",
    "SECRET-file",
    "SECRET-instruction",
    "SECRET-mail",
    "SECRET-result",
    "SECRET-subject",
  ]);
  await pass(room, 6);
  expect(found(await everyByte(room, folder))).toContain("SECRET-mail");
  await pass(room, 2);
  const soon = found(await everyByte(room, folder));
  for (const gone of ["SECRET-mail", "SECRET-content"]) expect(soon).not.toContain(gone);
  for (const kept of ["SECRET-file", "SECRET-answer"]) expect(soon).toContain(kept);
  await pass(room, 24);
  // The history of the plan is longer: what was asked, and what came of it.
  expect(found(await everyByte(room, folder))).toEqual([
    "SECRET-instruction",
    "SECRET-result",
    "SECRET-subject",
  ]);
  const [mail, , call] = (await room.activity()).toReversed();
  expect(mail).toMatchObject({ result: "SECRET-result", subject: "SECRET-subject", status: "done" });
  expect(call.attachments).toMatchObject([
    { filename: "small.txt", size: 11, purged: true },
    { filename: "big.bin", size: BULK_BYTES, purged: true },
  ]);
  for (const { url } of call.attachments) expect((await room.owner.get(url)).status).toBe(404);
  expect((await room.owner.get(`/messages/${mail.message_id}/raw`)).status).toBe(404);
  const { db } = room.app;
  const purged = await db.selectFrom("raw_mails").select(["purged_at", "size"]).execute();
  expect(purged.map(({ purged_at, size }) => [purged_at !== null, size > 0])).toEqual([
    [true, true],
    [true, true],
  ]);
  expect(await counts(room)).toMatchObject({
    messages: 3,
    conversations: 3,
    raw_mails: 2,
    attachments: 2,
    message_contents: 1,
    outgoing_mails: 2,
    events: 0,
    webhook_deliveries: 0,
    webhook_endpoints: 1,
    contact_submissions: 0,
    idempotency_keys: 0,
    ledger: 7,
    users: 1,
    inboxes: 1,
    api_keys: 1,
  });
});

test("mail that was over a limit is kept until there are new credits, and is worked on with them", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 1, history_days: 365 } } } });
  for (const subject of ["First", "Second", "Third"]) {
    await room.send({ subject, text: `${subject}, please.` });
    await room.drain();
  }
  const [third, second] = await room.activity();
  expect([second.status, third.status]).toEqual(["limited", "limited"]);
  await pass(room, 33);
  expect((await room.owner.get(`/messages/${second.message_id}/raw`)).status).toBe(200);
  expect((await room.owner.post(`/messages/${second.message_id}/retry`)).status).toBe(202);
  await room.drain();
  expect((await room.newest()).state).toBe("done");
  // What is done goes as usual, and what nobody has asked for within the time.
  await pass(room, 9);
  for (const { message_id } of [second, third])
    expect((await room.owner.get(`/messages/${message_id}/raw`)).status).toBe(404);
  expect((await room.owner.post(`/messages/${third.message_id}/retry`)).status).toBe(409);
});

test("calls that a budget has held are kept with what they came with, as mail is", async () => {
  await using room = await priced();
  await limit(room, 0);
  const data = Buffer.from("Some words").toString("base64");
  const files = [{ filename: "a.txt", content_type: "text/plain", data }];
  const call = { instruction: "Sum it up", content: "A long report.", attachments: files };
  const ids: string[] = [];
  for (const _ of [1, 2]) {
    const { body } = await room.owner.post("/v1/messages", call);
    expect(body.status).toBe("limited");
    ids.push(body.message_id);
  }
  await pass(room, 33);
  await limit(room, null);
  const mayRetry = async (id: string) => (await room.owner.get(`/messages/${id}`)).body.may_retry;
  expect(await mayRetry(ids[0] ?? "")).toBe("run");
  expect((await room.owner.post(`/messages/${ids[0]}/retry`)).status).toBe(202);
  await room.drain();
  expect(await room.newest()).toMatchObject({ state: "done" });
  await pass(room, 30);
  expect(await mayRetry(ids[1] ?? "")).toBeNull();
  expect((await room.owner.post(`/messages/${ids[1]}/retry`)).status).toBe(409);
});

test("messages go with the history of their plan, and with them conversations, events and all that hangs on them", async () => {
  await using folder = await databaseFolder();
  await using hook = startReceiver();
  await using room = await busyRoom({
    database: { url: folder.url },
    webhooks: TO_LOOPBACK,
    plans: { team: { history_days: 5 } },
    retention: { raw_days: 0, content_days: 0, attachment_days: 0, delivery_days: 0 },
  });
  await room.owner.post("/v1/webhooks", { url: hook.url, event_types: ["*"] });
  await forgetNotices(room.app);
  await fill(room);
  await pass(room, 4);
  expect(found(await everyByte(room, folder))).toContain("SECRET-result");
  await pass(room, 2);
  expect(found(await everyByte(room, folder))).toEqual(["SECRET-contact"]);
  expect(await room.activity()).toEqual([]);
  expect((await room.owner.get("/conversations")).body.items).toEqual([]);
  expect(await counts(room)).toMatchObject({
    messages: 0,
    conversations: 0,
    raw_mails: 0,
    attachments: 0,
    message_contents: 0,
    // The letter about the contact form.
    outgoing_mails: 1,
    events: 0,
    webhook_deliveries: 0,
    ledger: 7,
    inboxes: 1,
  });
  // What was charged stays charged.
  expect((await room.owner.get("/auth/me")).body.credits.used).toBe(3);
});

test("an inbox keeps its messages for less than the plan, and no longer than it", async () => {
  await using t = await testApp({ plans: { team: { history_days: 10 } } });
  const ada = await t.as("ada@example.com");
  const [short, long, plain] = await Promise.all(
    [{ retention_days: 3 }, { retention_days: 300 }, {}].map(
      async (settings) => (await ada.post("/inboxes", settings)).body.id as string,
    ),
  );
  const ages = [2, 4, 9, 11];
  for (const inbox_id of [short, long, plain, null])
    for (const age of ages) await storeOld(t, ada.user, { inbox_id: inbox_id ?? null, age });
  await purge(t);
  const left = await t.app.db.selectFrom("messages").select(["inbox_id", "created"]).execute();
  const agesIn = (id: string | null | undefined) =>
    left
      .filter(({ inbox_id }) => inbox_id === id)
      .map(({ created }) => (t.app.now() - created) / 86_400)
      .toSorted((one, other) => one - other);
  expect([short, long, plain, null].map(agesIn)).toEqual([[2], [2, 4, 9], [2, 4, 9], [2, 4, 9]]);
});

test("nothing goes where history and days are 0, which means for ever", async () => {
  await using room = await busyRoom({
    plans: { team: { history_days: 0 } },
    retention: { raw_days: 0, content_days: 0, attachment_days: 0, delivery_days: 0 },
  });
  await fill(room);
  const before = await counts(room);
  await pass(room, 2_000);
  expect(await counts(room)).toEqual({ ...before, idempotency_keys: 0 });
  const { db } = room.app;
  for (const table of ["raw_mails", "attachments", "message_contents"] as const) {
    const purged = await db
      .selectFrom(table)
      .select("purged_at")
      .where("purged_at", "is not", null)
      .execute();
    expect([table, purged]).toEqual([table, []]);
  }
});

describe("what is not over yet", () => {
  test("a message that waits, or whose answer is on its way, keeps everything until its end and the days after it", async () => {
    await using room = await mailroom({
      config: {
        plans: { team: { history_days: 5 } },
        retention: { raw_days: 1, attachment_days: 1, content_days: 1 },
        outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:1", retry: [864_000] },
      },
    });
    await room.send({ text: "Summarise this" });
    await room.drain();
    // Its answer is deferred for ten days; this one has not begun.
    await room.owner.post("/v1/messages", { instruction: "Later", content: "Material", async: true });
    const { db } = room.app;
    await db
      .updateTable("jobs")
      .set({ run_at: room.app.now() + 864_000 })
      .execute();
    await pass(room, 8);
    const kept = () =>
      Promise.all([
        db.selectFrom("raw_mails").select("id").where("purged_at", "is", null).execute(),
        db.selectFrom("message_contents").select("message_id").where("purged_at", "is", null).execute(),
        db.selectFrom("outgoing_mails").select("id").where("raw", "is not", null).execute(),
        db.selectFrom("messages").select("id").execute(),
      ]).then((lists) => lists.map(({ length }) => length));
    expect(await kept()).toEqual([1, 1, 1, 2]);
    // Both end now.
    await pass(room, 2);
    expect(await kept()).toEqual([1, 1, 1, 2]);
    await pass(room, 12);
    expect(await kept()).toEqual([0, 0, 0, 0]);
  });

  test("a mail to inboxes of two accounts stays until both are done with it", async () => {
    await using room = await mailroom({ config: { retention: { raw_days: 2 } } });
    const bob = await room.as("bob@example.com");
    const { body: inbox } = await bob.post("/inboxes", { allowlist_senders: ["ada@example.com"] });
    await room.send({ text: "For both", rcpt: [room.inbox.address, inbox.address] });
    await room.drain();
    const { db } = room.app;
    const late = { completed: room.app.now() + 5 * 86_400 };
    await db.updateTable("messages").set(late).where("user_id", "=", bob.user.id).execute();
    await pass(room, 4);
    expect(await db.selectFrom("raw_mails").select("purged_at").execute()).toEqual([{ purged_at: null }]);
    await pass(room, 4);
    const [mail] = await db.selectFrom("raw_mails").selectAll().execute();
    expect([mail?.bytes, mail?.purged_at]).toEqual([null, room.app.now()]);
  });

  test("an account whose plan has changed keeps its history for 30 days more", async () => {
    await using t = await testApp({ plans: { default: "pro" } });
    const ada = await t.as("ada@example.com");
    await storeOld(t, ada.user, { inbox_id: null, age: 100 });
    await purge(t);
    expect(await counts(t)).toMatchObject({ messages: 1 });
    await setPlan(t.app, { email: "ada@example.com", plan: "free" });
    await pass(t, 29);
    expect(await counts(t)).toMatchObject({ messages: 1 });
    await pass(t, 2);
    expect(await counts(t)).toMatchObject({ messages: 0 });
  });
});

test("a conversation that goes on says nothing of the messages that have gone", async () => {
  await using room = await mailroom({
    model: { reply: ({ messages }) => `Answer ${messages.length}` },
    config: { plans: { team: { history_days: 5 } } },
  });
  const { owner } = room;
  const first = await owner.post("/v1/messages", { instruction: "SECRET-subject of it" });
  const { conversation_id } = first.body;
  await pass(room, 3);
  await owner.post("/v1/messages", { instruction: "Go on", conversation_id });
  await pass(room, 3);
  const { body } = await owner.get(`/conversations/${conversation_id}`);
  expect([body.subject, body.turns.length]).toEqual(["Go on", 1]);
  const rows = JSON.stringify(await room.app.db.selectFrom("conversations").selectAll().execute());
  expect(rows).not.toContain("SECRET");
});

test("what lasts a while only goes by itself: keys of calls, codes, chosen passwords, sessions, states, notices, work given up", async () => {
  await using t = await testApp();
  const { db } = t.app;
  const ada = await t.as("ada@example.com");
  const user_id = ada.user.id;
  const created = t.app.now();
  const sealed = Buffer.from("x");
  const job = {
    kind: "route_message",
    payload: "{}",
    attempts: 1,
    failures: 8,
    run_at: created,
    created,
  } as const;
  await db
    .insertInto("idempotency_keys")
    .values({ user_id, route: "x", key: "x", fingerprint: "x", message_id: "x", created })
    .execute();
  await db.insertInto("login_codes").values({ user_id, code_hmac: "x", attempts: 0, created }).execute();
  await db
    .insertInto("pending_passwords")
    .values({ user_id, password_hash: "x", name: null, token_hash: "x", client: "", created })
    .execute();
  const asker = { address: "x", place: 0, token_hash: "x", network: "x", attempts: 0, asked: created };
  await db.insertInto("code_askers").values(asker).execute();
  await db
    .insertInto("oauth_states")
    .values({
      state_hash: "x",
      user_id,
      provider: "notes",
      connection_id: null,
      sealed,
      cookie_hash: null,
      created,
      session_id: null,
      api_key: null,
    })
    .execute();
  await db
    .insertInto("sessions")
    .values({
      id: "x",
      user_id,
      created,
      expires: created + 60,
      code_login_at: null,
      client: "x",
      user_agent: "x",
    })
    .execute();
  await db.insertInto("owner_notices").values({ user_id, kind: "beyond_plan", day: "2026-01-15" }).execute();
  await db.insertInto("billing_events").values({ id: "evt_x", type: "x", created }).execute();
  await db
    .insertInto("rate_limits")
    .values({ key: "x", full_at: t.app.nowMs() + 60_000 })
    .execute();
  await db.insertInto("retired_addresses").values({ address: "gone@mw.test", retired_at: created }).execute();
  await db
    .insertInto("jobs")
    .values({
      ...job,
      id: "dead",
      status: "dead",
      lane: null,
      behind: 0,
      later: 0,
      dedupe_key: null,
      lease_until: null,
      last_error: "x",
      account: null,
      account_slots: null,
      weight: 0,
      target: null,
    })
    .execute();
  const message = await storeOld(t, ada.user, { inbox_id: null, age: 0 });
  await db
    .insertInto("tool_calls")
    .values({ message_id: message, fingerprint: "x", outcome: "x", created })
    .execute();
  const tables = [
    "idempotency_keys",
    "login_codes",
    "code_askers",
    "pending_passwords",
    "oauth_states",
    "sessions",
    "owner_notices",
    "billing_events",
    "rate_limits",
    "retired_addresses",
    "tool_calls",
  ] as const;
  const left = async () => {
    const all = await counts(t);
    return tables.filter((table) => all[table] !== 0);
  };
  const dead = () => db.selectFrom("jobs").select("id").where("status", "=", "dead").execute();
  await purge(t);
  expect(await left()).toEqual(tables.filter((table) => table !== "tool_calls"));
  await pass(t, 2);
  expect(await left()).toEqual(["owner_notices", "billing_events", "retired_addresses"]);
  expect(await dead()).toHaveLength(1);
  await pass(t, 31);
  expect(await left()).toEqual(["retired_addresses"]);
  expect(await dead()).toEqual([]);
});

test("the clean-up comes back every hour, and is there once however often the server starts", async () => {
  await using t = await testApp();
  for (let start = 0; start < 3; start += 1) await t.app.write((tx) => purgeLater(t.app, tx));
  const jobs = () => t.app.db.selectFrom("jobs").select(["kind", "run_at"]).execute();
  const next = Date.UTC(2026, 0, 15, 12, 17) / 1_000;
  expect(await jobs()).toEqual([{ kind: "purge", run_at: next }]);
  t.clock.advance("1h");
  await t.drain();
  expect(await jobs()).toEqual([{ kind: "purge", run_at: next + 3_600 }]);
});

test("after a leap of the clock nothing goes by it for an hour, in which it may be set right", async () => {
  await using t = await testApp({ plans: { team: { history_days: 5 } } });
  const ada = await t.as("ada@example.com");
  await storeOld(t, ada.user, { inbox_id: null, age: 0 });
  t.clock.leap("4000d");
  await purge(t);
  t.clock.advance("59m");
  await purge(t);
  expect(await counts(t)).toMatchObject({ messages: 1 });
  // It was right.
  t.clock.advance("1m");
  await purge(t);
  expect(await counts(t)).toMatchObject({ messages: 0 });
});

test("a job that a wrong clock has put off for years comes back at the next start", async () => {
  await using t = await testApp();
  const far = t.app.now() + 4_000 * 86_400;
  await t.app.write((tx) => purgeLater(t.app, tx));
  await t.app.db.updateTable("jobs").set({ run_at: far }).execute();
  await t.app.write((tx) => purgeLater(t.app, tx));
  const [job] = await t.app.db.selectFrom("jobs").select("run_at").execute();
  expect((job?.run_at ?? far) - t.app.now()).toBeLessThan(3_600);
});

test("an account whose erasing was lost is erased all the same", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await t.app.db
    .updateTable("users")
    .set({ deleted_at: t.app.now() })
    .where("id", "=", ada.user.id)
    .execute();
  await purge(t);
  expect(await counts(t)).toMatchObject({ users: 0, api_keys: 0 });
});

test("thousands of messages go in short transactions, and the space they took is given back to the disk", async () => {
  await using folder = await databaseFolder();
  await using t = await testApp({ database: { url: folder.url }, plans: { team: { history_days: 5 } } });
  const ada = await t.as("ada@example.com");
  const created = t.app.now() - 6 * 86_400;
  const result = "SECRET-result ".repeat(500);
  await storeMessages(
    t,
    ada.user,
    Array.from({ length: 3_000 }, () => ({ created, completed: created, result })),
  );
  const size = () => Bun.file(`${folder.dir}/mailwright.db`).size;
  await t.app.upkeep.emptyLog();
  const before = size();
  expect(before).toBeGreaterThan(20_000_000);
  let transactions = 0;
  const { write } = t.app;
  t.app.write = (operation) => {
    transactions += 1;
    return write(operation);
  };
  await purge(t);
  expect(await counts(t)).toMatchObject({ messages: 0 });
  expect(transactions).toBeGreaterThan(5);
  expect(size()).toBeLessThan(before / 3);
  expect(found(await everyByte(t, folder))).toEqual([]);
});

test("what stays of a mail, a file or a call whose bytes have gone takes little of the disk, though all of them were of a page each", async () => {
  await using folder = await databaseFolder();
  await using t = await testApp({ database: { url: folder.url } });
  const ada = await t.as("ada@example.com");
  const created = t.app.now() - 40 * 86_400;
  const old = Array.from({ length: 300 }, () => ({ created, completed: created }));
  const messages = await storeMessages(t, ada.user, old);
  await t.app.write(async (tx) => {
    for (const { id } of messages) await storeBulk(tx, { id, user_id: ada.user.id, created });
  });
  const before = await pagesOf(t);
  for (const pages of Object.values(before)) expect(pages).toBeGreaterThanOrEqual(messages.length);
  await purge(t);
  const after = await pagesOf(t);
  expect(Object.keys(after)).toEqual(Object.keys(before));
  for (const [table, pages] of Object.entries(after))
    expect([table, pages < messages.length / 5]).toEqual([table, true]);
});

const BULKY = ["attachments", "message_contents", "outgoing_mails", "raw_mails"] as const;

/** Stores a message that has, in every table, one row that fills its page. */
async function storeBulk(
  tx: Db,
  { id, user_id, created }: { id: string; user_id: string; created: number },
): Promise<void> {
  const bytes = Buffer.alloc(3_500, "x");
  const kept = { ...NO_BYTES, bytes, size: bytes.byteLength, created, purged_at: null };
  await insertRow(tx, "raw_mails", { id, ...kept });
  await insertRow(tx, "message_contents", { message_id: id, content: bytes.toString(), purged_at: null });
  const file = { filename: "a.txt", content_type: "text/plain", direction: "in" } as const;
  await insertRow(tx, "attachments", { id, message_id: id, ...file, ...kept });
  const addresses = {
    envelope_from: "a@b.example",
    envelope_to: "c@d.example",
    rfc_message_id: `<${id}@b.example>`,
  };
  const sent = { status: "sent", attempts: 1, response: null, completed: created } as const;
  const reply = {
    id,
    user_id,
    message_id: id,
    kind: "reply",
    private: 0,
    event_id: null,
    entrusted: 0,
  } as const;
  await insertRow(tx, "outgoing_mails", { ...reply, ...addresses, ...sent, created, raw: bytes });
}

async function pagesOf(t: TestApp): Promise<Record<string, number>> {
  const { rows } = await sql<{ name: string; pages: number }>`select name, count(*) as pages from dbstat
    where name in (${sql.join(BULKY)}) group by name order by name`.execute(t.app.db);
  return Object.fromEntries(rows.map(({ name, pages }) => [name, pages]));
}

const WORDS = [
  "SECRET-answer",
  "SECRET-bulk",
  "SECRET-contact",
  "SECRET-content",
  "SECRET-file",
  "SECRET-instruction",
  "SECRET-mail",
  "SECRET-result",
  "SECRET-subject",
];

function found(text: string): string[] {
  return WORDS.filter((word) => text.includes(word));
}

/** A model that answers, no limits, and a long history. */
function busyRoom(config: ConfigOverrides): Promise<Mailroom> {
  return mailroom({ model: { reply: () => "SECRET-result" }, config });
}

/** One of everything that is kept for a while only. */
async function fill(room: Mailroom): Promise<void> {
  await room.send({ subject: "SECRET-subject", text: "Look at this:\n\n> SECRET-mail" });
  await room.send({ subject: "Big", text: `Again:\n\n${"> SECRET-mail\n".repeat(BULK_BYTES / 10)}` });
  await room.drain();
  const files = [
    { filename: "small.txt", content_type: "text/plain", data: btoa("SECRET-file") },
    {
      filename: "big.bin",
      content_type: "application/x-test",
      data: btoa("SECRET-bulk".padEnd(BULK_BYTES, "SECRET-bulk")),
    },
  ];
  const call = { instruction: "SECRET-instruction", content: "SECRET-content", attachments: files };
  await room.owner.post("/v1/messages", call, { "idempotency-key": "once" });
  await room.request("/contacts", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "Bob", email: "bob@example.com", message: "SECRET-contact" }),
  });
  await room.drain();
}

/** So many days go by, and at the end of them what is due is taken away. */
async function storeOld(
  t: TestApp,
  user: Parameters<typeof storeMessages>[1],
  { inbox_id, age }: { inbox_id: string | null; age: number },
): Promise<string> {
  const created = t.app.now() - age * 86_400;
  const [message] = await storeMessages(t, user, [{ inbox_id, created, completed: created }]);
  return message?.id ?? "";
}

/** Rows of each table. */
async function counts({ app }: TestApp): Promise<Record<string, number>> {
  const tables = (await app.db.introspection.getTables()).map(({ name }) => name as "users");
  const rows = tables.map(async (table) => {
    const all = await app.db.selectFrom(table).selectAll().execute();
    return [table, all.length] as const;
  });
  return Object.fromEntries((await Promise.all(rows)).filter(([name]) => name !== ("jobs" as string)));
}
