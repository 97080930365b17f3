import { describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeBackupsLater } from "../../src/backup/schedule.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { entriesOf } from "../support/backups.ts";
import { mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

/** Nobody listens there: nothing here may ask the world. */
const NO_DNS = { servers: ["127.0.0.1:9"] };

describe("the doctor", () => {
  async function clinic() {
    const t = await testApp({ dns: NO_DNS });
    return { ...t, ada: await t.as("ada@example.com") };
  }

  async function ended(ada: Caller): Promise<Answer["body"]> {
    for (;;) {
      const { body } = await ada.get("/admin/doctor");
      if (body.state === "done") return body;
      await Bun.sleep(5);
    }
  }

  test("says that it has not looked yet, looks when it is asked to, and then tells what it found and what to do", async () => {
    await using t = await clinic();
    const { ada } = t;
    expect((await ada.get("/admin/doctor")).body).toEqual({
      state: "never",
      began: null,
      ended: null,
      ended_checks: 0,
      checks: 0,
      findings: [],
    });
    const begun = await ada.post("/admin/doctor");
    expect([begun.status, begun.body.state, begun.body.began]).toEqual([202, "running", t.app.now()]);
    const report = await ended(ada);
    expect(report.checks).toBeGreaterThan(15);
    expect(report.ended_checks).toBe(report.checks);
    expect(report.findings).toContainEqual({
      name: "server",
      verdict: "ok",
      found: `A server runs on ${t.app.config.data.dir}.`,
      mend: null,
    });
    expect(report.findings).toContainEqual({
      name: "outgoing mail",
      verdict: "warn",
      found: expect.stringContaining("capture"),
      mend: expect.stringContaining("relay"),
    });
  });

  test("looks once, however many ask at the same time, and keeps what it found before until it is through", async () => {
    await using t = await clinic();
    const { ada } = t;
    await ada.post("/admin/doctor");
    const before = await ended(ada);
    t.clock.advance("1m");
    const answers = await Promise.all([1, 2, 3].map(() => ada.post("/admin/doctor")));
    for (const { status, body } of answers)
      expect([status, body.state, body.began]).toEqual([202, "running", t.app.now()]);
    expect(answers[2]?.body.findings).toEqual(before.findings);
    expect((await ended(ada)).ended).toBe(t.app.now());
  });

  test("does not look again and again, where those who asked while it was looking count for nothing", async () => {
    await using t = await clinic();
    const { ada } = t;
    const looks = await Promise.all([1, 2, 3].map(() => ada.post("/admin/doctor")));
    await ended(ada);
    for (let look = 0; look < 10; look++) {
      looks.push(await ada.post("/admin/doctor"));
      await ended(ada);
    }
    expect(looks.map(({ status }) => status)).toEqual([...Array(12).fill(202), 429]);
    expect(looks.at(-1)?.body).toMatchObject({
      code: "rate_limited",
      fix: expect.stringMatching(/^Try again/),
    });
  });
});

describe("the backups", () => {
  test("are listed, the newest first, with where they lie and what is made when", async () => {
    await using t = await room({ schedule: "30 3 * * *", keep: 2 });
    for (const day of ["16", "17", "18"]) {
      t.clock.advance("1d");
      await t.drain();
      await expectNewest(t, `mailwright-202601${day}T120000Z.zip`);
    }
    await writeFile(join(t.app.config.backup.dir, "before-0001-foundation.zip"), "");
    await writeFile(join(t.app.config.backup.dir, "notes.txt"), "");
    const { body } = await t.ada.get("/admin/backups");
    expect(body).toMatchObject({
      dir: t.app.config.backup.dir,
      schedule: "30 3 * * *",
      keep: 2,
      state: "idle",
      next_at: Date.parse("2026-01-19T03:30:00Z") / 1_000,
      error: null,
      bytes_written: null,
    });
    expect(body.items).toHaveLength(3);
    expect(body.items).toContainEqual({
      name: "before-0001-foundation.zip",
      bytes: 0,
      created: expect.any(Number),
      before_upgrade: true,
    });
  });

  test("are none where there is no folder yet, and one that is asked for is made once, without a schedule", async () => {
    await using t = await room({});
    const before = await t.ada.get("/admin/backups");
    expect(before.body).toMatchObject({ state: "idle", schedule: null, next_at: null, items: [] });
    const asked = await Promise.all([1, 2, 3].map(() => t.ada.post("/admin/backups")));
    for (const { status, body } of asked) expect([status, body.state]).toEqual([202, "queued"]);
    await t.drain();
    const { body } = await t.ada.get("/admin/backups");
    expect(body).toMatchObject({ state: "idle", next_at: null, error: null });
    expect(body.items).toMatchObject([{ name: "mailwright-20260115T120000Z.zip", before_upgrade: false }]);
    const path = join(body.dir, body.items[0].name);
    expect((await entriesOf(path)).map(({ name }) => name)).toContain("mailwright.db");
    t.clock.advance("30d");
    await t.drain();
    expect((await t.ada.get("/admin/backups")).body.items).toHaveLength(1);
  });

  test("that are asked for come beside those of the schedule, which goes on", async () => {
    await using t = await room({ schedule: "30 3 * * *" });
    await t.ada.post("/admin/backups");
    await t.drain();
    await expectNewest(t, "mailwright-20260115T120000Z.zip");
    const { body } = await t.ada.get("/admin/backups");
    expect(body.next_at).toBe(Date.parse("2026-01-16T03:30:00Z") / 1_000);
  });

  test("that fail say why and when they are tried again, which asking once more does at once", async () => {
    await using t = await room({});
    await writeFile(t.app.config.backup.dir, "a file in the place of the folder");
    await t.ada.post("/admin/backups");
    await t.drain();
    await rm(t.app.config.backup.dir);
    const failed = await t.ada.get("/admin/backups");
    expect(failed.body).toMatchObject({
      state: "failed",
      error: expect.stringMatching(/^The backup cannot be written to .*backup\.dir/),
      next_at: t.app.now() + 300,
      items: [],
    });
    await t.app.write((tx) => makeBackupsLater(t.app, tx));
    expect((await t.ada.get("/admin/backups")).body.state).toBe("failed");
    expect((await t.ada.post("/admin/backups")).body.state).toBe("queued");
    await t.drain();
    expect((await t.ada.get("/admin/backups")).body).toMatchObject({ state: "idle", error: null });
    await expectNewest(t, "mailwright-20260115T120000Z.zip");
  });

  test("cannot push all older ones out in one go, and wait while their kind is held", async () => {
    // In memory, where none is made: asking counts all the same.
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    for (let turn = 0; turn < 6; turn++) {
      expect((await ada.post("/admin/backups")).status).toBe(202);
      await t.drain();
    }
    expect((await ada.post("/admin/backups")).status).toBe(429);
    t.clock.advance("1h");
    await ada.post("/admin/queue/hold", { kind: "make_backup" });
    expect((await ada.post("/admin/backups")).body).toMatchObject({ state: "held", next_at: null });
    const [job] = (await ada.get("/admin/queue")).body.items;
    expect(job).toMatchObject({ about: "make a backup", account: null, state: "held" });
  });

  test("in a folder that cannot be read are an error with its mend, and so is a database in memory", async () => {
    await using t = await room({});
    await writeFile(t.app.config.backup.dir, "a file in the place of the folder");
    const refused = await t.ada.get("/admin/backups");
    expect([refused.status, refused.body.code]).toEqual([503, "unavailable"]);
    expect(refused.body.detail).toMatch(/cannot be looked at: ENOTDIR/);
    expect(refused.body.fix).toMatch(/backup\.dir/);
    await using memory = await testApp();
    const ada = await memory.as("ada@example.com");
    await ada.post("/admin/backups");
    await memory.drain();
    expect((await ada.get("/admin/backups")).body).toMatchObject({
      state: "failed",
      error: expect.stringMatching(/^The database is in memory only/),
    });
  });

  async function expectNewest({ ada }: { ada: Caller }, name: string) {
    const { body } = await ada.get("/admin/backups");
    expect(body.items[0].name).toBe(name);
  }

  async function room(backup: ConfigOverrides["backup"]) {
    const base = await mkdtemp(join(tmpdir(), "mailwright-care-"));
    const t = await testApp({
      backup: { dir: join(base, "backups"), ...backup },
      database: { url: `sqlite:${join(base, "mailwright.db")}` },
    });
    await t.app.write((tx) => makeBackupsLater(t.app, tx));
    return {
      ...t,
      ada: await t.as("ada@example.com"),
      async [Symbol.asyncDispose]() {
        await t[Symbol.asyncDispose]();
        await rm(base, { recursive: true, force: true });
      },
    };
  }
});

describe("the figures", () => {
  test("tell what waits and for how long, but not what is held or has its time to come", async () => {
    await using room = await mailroom();
    const waiting = async () => (await room.owner.get("/admin/overview")).body.waiting;
    expect(await waiting()).toEqual({ jobs: 0, oldest_seconds: 0 });
    await room.send({ text: "Hello" });
    room.clock.advance("5m");
    await room.send({ text: "Hello again" });
    expect(await waiting()).toEqual({ jobs: 2, oldest_seconds: 300 });
    await room.owner.post("/admin/queue/hold", { kind: "route_message" });
    expect(await waiting()).toEqual({ jobs: 0, oldest_seconds: 0 });
  });

  test("tell of mails, answers, tokens and memory without any setting", async () => {
    await using room = await mailroom();
    const before = await room.owner.get("/admin/overview");
    expect(before.body.answers).toEqual({
      counted: 0,
      half_within_seconds: null,
      most_within_seconds: null,
    });
    for (const minutes of [1, 2, 3]) {
      await room.send({ text: "Hello" });
      room.clock.advance(`${minutes}m`);
      await room.drain();
    }
    await room.owner.post("/v1/messages", { instruction: "Do it" });
    const { body } = await room.owner.get("/admin/overview");
    expect(body.today).toMatchObject({ mails_in: 3, messages: { done: 4 }, mails: { sent: 3 } });
    const today = (await room.owner.get("/admin/days")).body.at(-1);
    expect(today).toMatchObject({ messages: 4, mails_in: 3, mails_out: 3 });
    expect(today.input_tokens).toBeGreaterThan(0);
    expect(today.output_tokens).toBeGreaterThan(0);
    expect(body.answers).toEqual({ counted: 4, half_within_seconds: 60, most_within_seconds: 180 });
    expect(body.memory_bytes).toBeGreaterThan(10_000_000);
  });

  test("tell why mails were refused, the most frequent reason first", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
    for (let turn = 0; turn < 2; turn++) await room.send({ from: "Eve <eve@example.net>" });
    await room.send({ rcpt: "nobody@mw.test" }).catch(() => undefined);
    expect((await room.owner.get("/admin/overview")).body.refusals).toEqual([
      { reason: "not_allowlisted", mails: 2 },
      { reason: "unknown_recipient", mails: 1 },
    ]);
  });

  test("go back for 30 days, day by day", async () => {
    await using room = await mailroom();
    const days = async () => (await room.owner.get("/admin/days")).body;
    await room.send({ text: "Hello" });
    await room.drain();
    room.clock.advance("3d");
    await room.owner.post("/v1/messages", { instruction: "Do it" });
    // What has been counted is not counted again.
    for (const list of [await days(), await days()]) {
      expect(list).toHaveLength(30);
      expect([list[0].day, list[29].day]).toEqual(["2025-12-20", "2026-01-18"]);
      expect(list[26]).toMatchObject({ day: "2026-01-15", messages: 1, mails_in: 1, mails_out: 1 });
      expect(list[26].input_tokens).toBeGreaterThan(0);
      expect(list[29]).toMatchObject({ messages: 1, mails_in: 0, mails_out: 0 });
      expect(list[28]).toMatchObject({ messages: 0, input_tokens: 0, output_tokens: 0 });
    }
    room.clock.advance("28d");
    expect((await days()).map(({ messages }: { messages: number }) => messages)).toEqual([
      0,
      1,
      ...Array(28).fill(0),
    ]);
  });
});

test("a mail that is kept here says so, to the administrator and in the story; one that was handed over does not", async () => {
  const saidOf = async (outbound: NonNullable<ConfigOverrides["outbound"]>) => {
    await using room = await mailroom({ config: { outbound } });
    await room.send({ text: "Hello" });
    await room.drain();
    const [mail] = (await room.owner.get("/admin/mail")).body.items;
    const [message] = await room.activity();
    const { body } = await room.owner.get(`/messages/${message?.message_id}`);
    const { body: one } = await room.owner.get(`/admin/mail/${mail.id}`);
    return [mail.kept_here, one.kept_here, body.reply.kept_here, body.reply_status];
  };
  await using sink = await startSmtpSink();
  expect(await saidOf({ mode: "capture" })).toEqual([true, true, true, "sent"]);
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  expect(await saidOf({ mode: "relay", relay_url })).toEqual([false, false, false, "sent"]);
});
