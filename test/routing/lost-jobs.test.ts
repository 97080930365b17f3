import { describe, expect, test } from "bun:test";
import { sql } from "kysely";
import { simpleParser } from "mailparser";
import { dropJob } from "../../src/operation/admin/change-job.ts";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { hold, release } from "../../src/operation/admin/queue.ts";
import { takeOver } from "../../src/serve.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

/** What a damaged disk may leave of `{"message_id":"…"}`. */
const DAMAGES: [string, (payload: string) => string][] = [
  ["half of it", (payload) => payload.slice(0, 6)],
  ["a message that is not there", (payload) => payload.replace(/[0-9a-f]"}/, 'x"}')],
  ["another name for it", (payload) => payload.replace("message_id", "massage_id")],
  ["nothing", () => "null"],
];

/** A mail that waits, whose job then is as `damage` leaves it. */
async function damaged(room: Mailroom, damage: (payload: string) => string): Promise<string> {
  const hook = { url: "https://hooks.example.com/", event_types: ["message.failed"] };
  expect((await room.owner.post("/v1/webhooks", hook)).status).toBeLessThan(300);
  await forgetNotices(room.app);
  await hold(room.app, ["route_message", "fan_out_event"]);
  expect(await room.send({ headers: { "Message-ID": "<lost@example.com>" } })).toStartWith("250");
  const job = await room.app.db
    .selectFrom("jobs")
    .select(["id", "payload"])
    .where("kind", "=", "route_message")
    .executeTakeFirstOrThrow();
  const payload = damage(job.payload);
  expect(payload).not.toBe(job.payload);
  await room.app.db.updateTable("jobs").set({ payload }).where("id", "=", job.id).execute();
  return job.id;
}

async function used(room: Mailroom): Promise<number> {
  return (await room.owner.get("/auth/me")).body.credits.used;
}

async function wait(room: Mailroom): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await room.drain();
    room.clock.advance("2h");
  }
  await room.drain();
}

/** Its owner has the credit back, and is told, as all are who listen. */
async function expectEnded(room: Mailroom, reason: string, words: string): Promise<void> {
  const message = await room.newest();
  expect(message).toMatchObject({ state: "failed", reason, error: expect.stringContaining(words) });
  expect(message.completed).not.toBeNull();
  expect(await used(room)).toBe(0);
  const events = await room.app.db.selectFrom("events").select(["type", "message_id"]).execute();
  expect(events).toContainEqual({ type: "message.failed", message_id: message.id });
  const mails = await room.outgoing();
  expect(mails).toHaveLength(1);
  const notice = await simpleParser(Buffer.from(mails[0]?.raw ?? []));
  expect(notice).toMatchObject({ inReplyTo: "<lost@example.com>", to: { text: "ada@example.com" } });
  expect(notice.text).toContain(words);
}

const FAULT = "a fault of this server";

describe("a message whose job", () => {
  test.each(DAMAGES)("is damaged so that it holds %s ends, and is told of", async (_what, damage) => {
    await using room = await mailroom();
    await damaged(room, damage);
    expect(await used(room)).toBe(1);
    await release(room.app, ["route_message"]);
    await wait(room);
    await expectEnded(room, "internal", FAULT);
  });

  test.each(DAMAGES)(
    "is damaged so that it holds %s, and is dropped by the operator, ends, and is told of",
    async (_what, damage) => {
      await using room = await mailroom();
      const id = await damaged(room, damage);
      const { ended } = await dropJob(room.app, id, "it is damaged");
      expect(ended).toEqual([{ id: (await room.newest()).id, state: "failed", reason: "dropped" }]);
      await wait(room);
      await expectEnded(room, "dropped", "took it out of the queue: it is damaged");
    },
  );

  test("names one that cannot be found is kept for the operator, where an index may have lost it", async () => {
    await using room = await mailroom();
    const id = await damaged(room, (payload) => payload.replace(/[0-9a-f]"}/, 'x"}'));
    await release(room.app, ["route_message"]);
    await wait(room);
    await expectEnded(room, "internal", FAULT);
    const jobs = await room.app.db.selectFrom("jobs").select(["id", "status", "last_error"]).execute();
    expect(jobs.find((job) => job.id === id)).toMatchObject({
      status: "dead",
      last_error: expect.stringContaining("cannot be found"),
    });
  });

  test("finds no inbox, though nobody deleted it, fails by a fault of the server and can be done again", async () => {
    await using room = await mailroom();
    await hold(room.app, ["route_message"]);
    await room.send({});
    await sql`pragma foreign_keys = off`.execute(room.app.db);
    await room.app.db.updateTable("inboxes").set({ id: "lost" }).execute();
    await sql`pragma foreign_keys = on`.execute(room.app.db);
    await release(room.app, ["route_message"]);
    await wait(room);
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "internal" });
    expect((await queueWarnings(room.app)).dead).toBeDefined();
  });

  test("is not there ends with the next start, and is told of", async () => {
    await using room = await mailroom();
    await damaged(room, () => "{}");
    await room.app.db.deleteFrom("jobs").where("kind", "=", "route_message").execute();
    await release(room.app, ["route_message"]);
    await takeOver(room.app);
    await wait(room);
    await expectEnded(room, "internal", FAULT);
  });

  test("is lost takes none with it that has one", async () => {
    await using room = await mailroom();
    await room.as("bob@example.org");
    await damaged(room, () => "{");
    for (let count = 0; count < 3; count += 1) await room.send({ text: `Hello ${count}` });
    await takeOver(room.app);
    await release(room.app, ["route_message"]);
    await wait(room);
    const states = (await room.activity()).map(({ status }) => status);
    expect(states).toEqual(["done", "done", "done", "failed"]);
  });
});

test("an answer whose stored bytes are damaged is shown as not sent, and why, and its job is kept", async () => {
  await using sink = await startSmtpSink();
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  await using room = await mailroom({ config: { outbound, egress: { allow: ["127.0.0.1"] } } });
  await hold(room.app, ["send_mail"]);
  await room.send({});
  await room.drain();
  await room.app.db
    .updateTable("outgoing_mails")
    .set({ raw: Buffer.alloc(1_000) })
    .execute();
  await release(room.app, ["send_mail"]);
  await room.drain();
  expect(sink.mails).toEqual([]);
  expect(await room.activity()).toMatchObject([
    { status: "done", reply_status: "bounced", reply_error: expect.stringContaining("is damaged") },
  ]);
  expect((await queueWarnings(room.app)).dead).toBeDefined();
});

describe("an answer whose job", () => {
  test.each([
    ["half of it", (payload: string) => payload.slice(0, 6)],
    ["a mail that is not there", (payload: string) => payload.replace(/[0-9a-f]"}/, 'x"}')],
    ["another name for it", (payload: string) => payload.replace("outgoing_id", "outgoing_it")],
  ])("is damaged so that it holds %s is shown as not sent", async (_what, damage) => {
    await using sink = await startSmtpSink();
    const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
    await using room = await mailroom({ config: { outbound, egress: { allow: ["127.0.0.1"] } } });
    await hold(room.app, ["send_mail"]);
    await room.send({});
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "queued" }]);
    const job = await room.app.db
      .selectFrom("jobs")
      .select(["id", "payload"])
      .where("kind", "=", "send_mail")
      .executeTakeFirstOrThrow();
    const payload = damage(job.payload);
    expect(payload).not.toBe(job.payload);
    await room.app.db.updateTable("jobs").set({ payload }).where("id", "=", job.id).execute();
    await release(room.app, ["send_mail"]);
    await wait(room);
    expect(sink.mails.filter(({ raw }) => !raw.includes("could not be delivered"))).toEqual([]);
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "bounced", reply_error: expect.stringContaining(FAULT) },
    ]);
    expect((await queueWarnings(room.app)).dead).toBeDefined();
  });
});
