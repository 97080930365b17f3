import { expect, test } from "bun:test";
import { sql } from "kysely";
import { sweepUnproven } from "../../src/resources/accounts/unproven.ts";
import { readKeptTime } from "../../src/db/kept-clock.ts";
import { namedSegments } from "../../src/db/segment-rows.ts";
import { JOB_RULES, type JobKind } from "../../src/jobs/kinds.ts";
import { mendHourly } from "../../src/jobs/mend.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { hold } from "../../src/operation/admin/queue.ts";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { movedWarning } from "../../src/resources/inboxes/leave-domain.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { takeOver } from "../../src/serve.ts";
import { signIn } from "../api/browser.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";

/** A job of each kind, for later, in which the disk has left half of what it is for. */
async function damagedJobs({ app }: TestApp): Promise<void> {
  for (const kind of Object.keys(JOB_RULES) as JobKind[])
    await app.write((tx) => enqueue(app, tx, { kind, payload: {}, run_at: app.now() + 3_600 }));
  await app.db.updateTable("jobs").set({ payload: '{"user_' }).execute();
}

test("jobs of which nobody can read what they are for keep nobody from a start, or from the end of an account", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await t.request("/auth/request-code", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "eve@example.com" }),
  });
  await t.drain();
  const accounts = async () => {
    const rows = await t.app.db.selectFrom("users").select("email").where("deleted_at", "is", null).execute();
    return rows.map(({ email }) => email);
  };
  expect(await accounts()).toEqual(["ada@example.com", "eve@example.com"]);
  await damagedJobs(t);
  // What a start asks before it takes anything in.
  expect(await namedSegments(t.app.db)).toEqual([]);
  t.clock.advance("2d");
  await t.app.write((tx) => sweepUnproven(t.app, tx));
  expect(await accounts()).toEqual(["ada@example.com"]);
  const ended = await t.request("/auth/account", {
    method: "DELETE",
    headers: { "x-api-key": ada.key, "content-type": "application/json" },
    body: JSON.stringify({ confirm: "ada@example.com" }),
  });
  expect(ended.status).toBeLessThan(300);
  expect(await accounts()).toEqual([]);
});

test.each([
  ["is answered", 200, "done"],
  ["fails, and its sender is told", 400, "failed"],
])("a message of whose calls the note is damaged %s", async (_end, status, state) => {
  const reply = () => (status === 200 ? "Done." : new Response("no", { status }));
  await using room = await mailroom({ model: { reply } });
  await room.send({ text: "Say hello." });
  const { id } = await room.newest();
  const note = { message_id: id, fingerprint: "x", outcome: '{"ok":tr', created: room.app.now() };
  await room.app.db.insertInto("tool_calls").values(note).execute();
  await room.drain();
  const { steps, ...ended } = await room.newest();
  expect(ended.state).toBe(state as "done");
  // Whether the call was made is not known, and that is said.
  expect(steps).toContain("may or may not have been done");
  expect(await room.outgoing()).toHaveLength(1);
});

test.each([
  ["is done and answered", 200, "done"],
  ["fails, and its sender is told", 400, "failed"],
])(
  "a message whose credit is damaged in the ledger %s, and the server starts",
  async (_end, status, state) => {
    const reply = () => (status === 200 ? "Done." : new Response("no", { status }));
    await using room = await mailroom({ model: { reply } });
    await room.send({ text: "Say hello." });
    await sql`pragma foreign_keys = off`.execute(room.app.db);
    await room.app.db.updateTable("ledger").set({ user_id: "x" }).where("kind", "=", "reserve").execute();
    await sql`pragma foreign_keys = on`.execute(room.app.db);
    await room.drain();
    expect((await room.newest()).state).toBe(state as "done");
    expect(await room.outgoing()).toHaveLength(1);
    await takeOver(room.app);
  },
);

test("a message that cannot even be ended keeps the server from no start, and others from no end", async () => {
  await using room = await mailroom();
  await hold(room.app, ["route_message"]);
  for (const text of ["Say hello.", "Say goodbye."]) await room.send({ text });
  const { id } = await room.app.db
    .selectFrom("messages")
    .select("id")
    .orderBy("id")
    .executeTakeFirstOrThrow();
  await sql`create trigger stuck before update on messages when old.id = ${sql.lit(id)}
    begin select raise(abort, 'stuck'); end`.execute(room.app.db);
  await room.app.db.deleteFrom("jobs").execute();
  await takeOver(room.app);
  const states = await room.app.db.selectFrom("messages").select("state").orderBy("id").execute();
  expect(states.map(({ state }) => state)).toEqual(["received", "failed"]);
});

test("what is damaged of a domain keeps no list of domains from being shown", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await ada.post("/custom-domains", { domain: "ai.acme.test" });
  await t.app.db.updateTable("custom_domains").set({ findings: '{"spf' }).execute();
  const { status, body } = await ada.get("/custom-domains");
  expect([status, body[0].domain]).toEqual([200, "ai.acme.test"]);
});

test("what is damaged of a mail about changes keeps nobody from the next change", async () => {
  await using t = await testApp();
  const browser = await signIn(t, "ada@example.com");
  const make = () => browser.post("/auth/api-key");
  for (let turn = 0; turn < 12; turn += 1) await make();
  const damaged = await t.app.db
    .updateTable("jobs")
    .set({ payload: '{"user_' })
    .where("kind", "=", "sum_up_notices")
    .returning("id")
    .execute();
  expect(damaged).toHaveLength(1);
  expect((await make()).status).toBe(200);
  t.clock.advance("1h");
  await t.drain();
  const last = (await t.app.db.selectFrom("outgoing_mails").selectAll().orderBy("id").execute()).at(-1);
  expect(Buffer.from(last?.raw ?? "").toString()).toContain("once more");
});

/** Damages a column of the one job of a kind, as a disk does it: no trigger of the database hears of it. */
async function damage({ app }: TestApp, kind: JobKind, column: string, value: unknown): Promise<void> {
  const { rows } = await sql<{ sql: string; name: string }>`
    select name, sql from sqlite_master where type = 'trigger' and tbl_name = 'jobs'`.execute(app.db);
  for (const { name } of rows) await sql`drop trigger ${sql.ref(name)}`.execute(app.db);
  const { numAffectedRows } = await sql`
    update jobs set ${sql.ref(column)} = ${value} where kind = ${kind}`.execute(app.db);
  expect(numAffectedRows).toBe(1n);
  for (const { sql: made } of rows) await sql.raw(made).execute(app.db);
}

/** Takes in a mail whose job is damaged then, so that it is not begun, and starts the server anew. */
async function startDamaged(room: Mailroom, column: string, value: unknown): Promise<void> {
  await room.send({ text: "Say hello." });
  await damage(room, "route_message", column, value);
  await room.drain();
  expect((await room.newest()).state).toBe("received");
  await takeOver(room.app);
  await room.drain();
}

const AWAY: [string, unknown][] = [
  ["run_at", 1e15],
  ["run_at", "x"],
  ["behind", 7],
  ["behind", "x"],
  ["later", 7],
  ["later", "x"],
  ["weight", "x"],
];
const UNKNOWN: [string, unknown][] = [
  ["kind", "soute_message"],
  ["status", "qending"],
];

test.each(AWAY)("a job whose %s became %p is begun by the next start", async (column, value) => {
  await using room = await mailroom();
  await startDamaged(room, column, value);
  expect((await room.newest()).state).toBe("done");
  expect(await room.outgoing()).toHaveLength(1);
});

test.each(UNKNOWN)(
  "a job whose %s became %p is set aside by the next start, and its message ends",
  async (column, value) => {
    await using room = await mailroom();
    await startDamaged(room, column, value);
    expect((await room.newest()).state).toBe("failed");
    expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["notice"]);
    expect((await queueWarnings(room.app)).dead).toBeDefined();
  },
);

test("while the server runs, that is seen to within the hour", async () => {
  await using room = await mailroom();
  const mend = mendHourly(room.app, jobHandlers(room.app));
  await room.send({ text: "Say hello." });
  await damage(room, "route_message", "behind", 7);
  room.clock.advance("59m");
  await mend();
  await room.drain();
  expect((await room.newest()).state).toBe("received");
  room.clock.advance("1m");
  await mend();
  await room.drain();
  expect((await room.newest()).state).toBe("done");
});

test("an answer whose job is of no kind any more is shown as not sent", async () => {
  const outbound = { mode: "relay", relay_url: "smtp://127.0.0.1:1" } as const;
  await using room = await mailroom({ config: { outbound, egress: { allow: ["127.0.0.1"] } } });
  await room.send({ text: "Say hello." });
  await room.drain();
  await damage(room, "send_mail", "kind", "tend_mail");
  await takeOver(room.app);
  expect((await room.outgoing()).map(({ status }) => status)).toEqual(["bounced"]);
});

test.each([...AWAY, ["kind", "sun_schedule"], ["status", "qending"], ["payload", '{"sched']] as [
  string,
  unknown,
][])("a schedule goes on though the %s of its job became %p", async (column, value) => {
  await using room = await mailroom();
  await room.owner.post("/v1/schedules", { instruction: "Say hello.", every: "daily 14:00" });
  await damage(room, "run_schedule", column, value);
  await takeOver(room.app);
  room.clock.advance("3h");
  await room.drain();
  // The first one finds out that nobody can read what it is for.
  await room.drain();
  const runs = await room.app.db
    .selectFrom("messages")
    .select("state")
    .where("schedule_id", "is not", null)
    .execute();
  expect(runs).toEqual([{ state: "done" }]);
});

test("a message whose state became another word fails, and its sender is told", async () => {
  await using room = await mailroom();
  await room.send({ text: "Say hello." });
  await room.app.db
    .updateTable("messages")
    .set({ state: "seceived" as never })
    .execute();
  await room.drain();
  const { state, reason, credits_charged } = await room.newest();
  expect([state, reason, credits_charged]).toEqual(["failed", "internal", 0]);
  expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["notice"]);
});

test("a mail of which nobody can read when it came keeps no digest from the others", async () => {
  await using room = await mailroom();
  await room.owner.post("/v1/schedules", { instruction: "Sum up.", every: "daily 14:00", over: {} });
  for (const text of ["About zeppelins.", "About gliders."]) await room.send({ text });
  await room.drain();
  const { id } = await room.newest();
  await room.app.db.updateTable("messages").set({ created: 1e15 }).where("id", "=", id).execute();
  room.clock.advance("3h");
  await room.drain();
  expect((await room.newest()).state).toBe("done");
  const asked = String(room.model.requests.at(-1)?.body?.messages.at(-1)?.content);
  expect(asked).toContain("zeppelins");
  expect(asked).toContain("gliders");
});

test.each([
  ["status", "`ctive", "paused"],
  ["next_at", "x", "active"],
])("a schedule whose %s became %p is %s after the next start", async (column, value, status) => {
  await using room = await mailroom();
  await room.owner.post("/v1/schedules", { instruction: "Say hello.", every: "daily 14:00" });
  await sql`update schedules set ${sql.ref(column)} = ${value}`.execute(room.app.db);
  await takeOver(room.app);
  room.clock.advance("3h");
  await room.drain();
  const schedules = (await room.owner.get("/v1/schedules")).body;
  expect(schedules).toMatchObject([{ status }]);
  const mails = (await room.outgoing()).map(({ raw }) => Buffer.from(raw ?? "").toString());
  const word = status === "paused" ? "cannot be read any more" : "Say hello.";
  expect(mails.filter((mail) => mail.includes(word))).toHaveLength(1);
});

test("what is damaged of a connection, or of what is paid, keeps nothing else from being shown", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await ada.post("/connections", { kind: "openai", credential: "sk-0123456789", model: "m" });
  await t.app.db.updateTable("users").set({ is_admin: 1, plan: "pro" }).execute();
  await t.app.db.updateTable("connections").set({ kind: "npenai" }).execute();
  const paid = { customer_id: "cus_1", changed: 0, cancel_at_period_end: 0, plan: "pro" } as const;
  const times = { period_start: 1e15, period_end: t.app.now() + 86_400, interval: "month" } as const;
  await t.app.db
    .insertInto("billing_accounts")
    .values({
      user_id: ada.user.id,
      ...paid,
      ...times,
      subscription_id: "sub_1",
      status: "active",
      price_id: null,
    })
    .execute();
  await t.app.db.insertInto("held_kinds").values({ kind: "send_mail", since: 1e15 }).execute();
  const headers = { "x-api-key": ada.key };
  // The contract of the tests knows no such kind.
  const connections = await ada.get("/connections").catch((error: unknown) => String(error));
  expect(connections).toContain("answered 200");
  for (const path of ["/auth/me", "/admin/users", "/admin/overview", "/admin/queue"])
    expect([path, (await t.request(path, { headers })).status]).toEqual([path, 200]);
});

test.each([
  [["rsa"], ["e1"]],
  [["rsa", "ed25519"], []],
] as const)("damaged keys for DKIM (%j) lose no mail: it goes out signed by %j", async (damaged, signers) => {
  await using room = await mailroom();
  const sealed = Buffer.from("x");
  await room.app.db.updateTable("dkim_keys").set({ sealed }).where("algorithm", "in", damaged).execute();
  await room.send({ text: "Say hello." });
  await room.drain();
  expect((await room.newest()).state).toBe("done");
  const [answer] = await room.outgoing();
  const raw = Buffer.from(answer?.raw ?? "").toString();
  expect([...raw.matchAll(/^ d=mw\.test; s=(\w+);/gm)].map(([, selector]) => selector)).toEqual([...signers]);
  expect(raw).toContain("Say hello.");
});

test("the mail, calls and schedules of an account whose time zone nobody knows go on in UTC, and say so", async () => {
  await using room = await mailroom();
  await room.app.db.updateTable("users").set({ timezone: "~TC" }).execute();
  await room.send({ text: "Say hello." });
  await room.drain();
  const { state, steps } = await room.newest();
  expect(state).toBe("done");
  expect(steps).toContain("The time zone of the account is not known");
  const schedule = await room.owner.post("/v1/schedules", {
    instruction: "Say hello.",
    every: "daily 14:00",
  });
  expect(schedule.body).toMatchObject({ timezone: "UTC" });
});

test.each(['{"camm_ms":1,"wall_ms":2}', '{"calm_ms":"1","wall_ms":2}', "null", "{", '{"at":99999999999}'])(
  "what is damaged of the notes of the last process (%s) counts as none",
  async (text) => {
    await using t = await testApp();
    for (const name of ["clock", "moved_inboxes"] as const)
      await t.app.db
        .insertInto("installation")
        .values({ name, value: Buffer.from(text) })
        .onConflict((conflict) => conflict.column("name").doUpdateSet({ value: Buffer.from(text) }))
        .execute();
    expect(await readKeptTime(t.app.db)).toBeUndefined();
    expect(await movedWarning(t.app)).toBeUndefined();
  },
);
