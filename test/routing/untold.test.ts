import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { dropJob } from "../../src/operation/admin/change-job.ts";
import { hold, release } from "../../src/operation/admin/queue.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification, unfolded } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const ADA = "Ada <ada@example.com>";
const BOB = "Bob <bob@example.org>";
const EVE = "Eve <eve@example.net>";
const LISTED = { allowlist_senders: ["bob@example.org"] };

/** The letters that the server itself has written. */
async function letters(room: Mailroom) {
  const mails = (await room.outgoing()).filter(({ message_id }) => message_id === null);
  return Promise.all(mails.map(async ({ raw }) => simpleParser(Buffer.from(raw ?? []))));
}

/** Expects letters with some words, no two on one day. */
async function expectLetters(room: Mailroom, ...words: string[]): Promise<void> {
  const written = await letters(room);
  const days = written.map(({ date }) => date?.toDateString());
  expect(days).toEqual([...new Set(days)]);
  for (const { to, subject } of written) {
    expect(to).toMatchObject({ text: "ada@example.com" });
    expect(subject).toMatch(/^(?:A mail was|Mails were) taken, but not worked on$/);
  }
  const all = written.map(({ text }) => unfolded(text)).join(" ");
  for (const word of words) expect(all).toContain(word);
}

async function wait(room: Mailroom): Promise<void> {
  for (let round = 0; round < 10; round += 1) {
    await room.drain();
    room.clock.advance("2h");
  }
  await room.drain();
}

describe("mail that meets a cap of loops", () => {
  const config = { limits: { same_body_per_hour: 1 } };

  async function sentTwice(room: Mailroom, from: string): Promise<void> {
    for (let count = 0; count < 2; count += 1) {
      expect(await room.send({ ...freshId(), from, subject: "Milk", text: "Buy milk" })).toStartWith("250");
      await room.drain();
    }
    expect((await room.activity())[0]).toMatchObject({ status: "rejected", reason: "loop_cap" });
  }

  test.each([
    ["the owner", ADA, "ada@example.com"],
    ["a listed sender", BOB, "bob@example.org"],
  ])("of %s is told to the owner, once a day at most, and to nobody else", async (_who, from, sender) => {
    await using room = await mailroom({ config, inbox: LISTED });
    await sentTwice(room, from);
    await expectLetters(
      room,
      sender,
      "Milk",
      "It was left out, as more than 1 mail with the same text came in an hour (limits.same_body_per_hour).",
    );
    await sentTwice(room, from);
    await sentTwice(room, from);
    expect(await letters(room)).toHaveLength(1);
    room.clock.advance("1d");
    await sentTwice(room, from);
    expect(await letters(room)).toHaveLength(2);
    room.clock.advance("1d");
    await room.drain();
    expect(await letters(room)).toHaveLength(3);
    room.clock.advance("1d");
    await room.drain();
    expect(await letters(room)).toHaveLength(3);
    const answers = (await room.outgoing()).filter(({ message_id }) => message_id !== null);
    expect(answers).toHaveLength(2);
  });

  test("after the letter of a day is not told of the next day once it was tried again", async () => {
    await using room = await mailroom({ config, inbox: LISTED });
    await sentTwice(room, BOB);
    await sentTwice(room, BOB);
    expect(await letters(room)).toHaveLength(1);
    for (const { message_id, status } of await room.activity())
      if (status === "rejected") await room.owner.post(`/messages/${message_id}/retry`);
    await room.drain();
    room.clock.advance("1d");
    await room.drain();
    expect(await letters(room)).toHaveLength(1);
  });

  test("of a stranger is in the activity, and told to nobody", async () => {
    await using room = await mailroom({ config });
    await sentTwice(room, EVE);
    expect(await letters(room)).toEqual([]);
  });

  test("of a machine in the owner's name is told to nobody", async () => {
    await using room = await mailroom({ config });
    const headers = { "Auto-Submitted": "auto-replied" };
    for (let count = 0; count < 3; count += 1)
      await room.send({ headers: { ...freshId().headers, ...headers } });
    await room.drain();
    expect(await letters(room)).toEqual([]);
  });
});

describe("mail whose inbox is deleted", () => {
  const remove = async (room: Mailroom): Promise<void> => {
    expect((await room.owner.delete(`/inboxes/${room.inbox.id}`)).status).toBe(204);
  };

  test.each([
    ["the owner", ADA, "ada@example.com", LISTED],
    ["a listed sender", BOB, "bob@example.org", LISTED],
  ])("while it waits, of %s, is told to the owner", async (_who, from, sender, inbox) => {
    await using room = await mailroom({ inbox });
    await hold(room.app, ["route_message"]);
    for (let count = 0; count < 3; count += 1)
      await room.send({ ...freshId(), from, subject: "Milk", text: `Buy milk ${count}` });
    await remove(room);
    await release(room.app, ["route_message"]);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "inbox_deleted" });
    await expectLetters(room, sender, "Milk", "The inbox was deleted before the message was worked on");
  });

  test("while it waits, of a stranger, is in the activity, and told to nobody", async () => {
    await using room = await mailroom();
    await hold(room.app, ["route_message"]);
    await room.send({ from: EVE });
    await remove(room);
    await release(room.app, ["route_message"]);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "inbox_deleted" });
    expect(await room.outgoing()).toEqual([]);
  });

  test("during a run that fails is told to the owner", async () => {
    const room: Mailroom = await mailroom({
      model: {
        reply: async () => {
          await remove(room);
          return new Response("no", { status: 400 });
        },
      },
    });
    await using _ = room;
    await room.send({ subject: "Milk" });
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "none" });
    await expectLetters(room, "ada@example.com", "Milk");
  });

  test("while the notice of its failure waits is told to the owner", async () => {
    await using sink = await startSmtpSink();
    sink.fault = "refuse";
    await using room = await mailroom({
      config: {
        outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
        egress: { allow: ["127.0.0.1"] },
      },
      model: { fault: "unauthorized" },
    });
    await room.send({ subject: "Milk" });
    await room.drain();
    expect(await room.outgoing()).toMatchObject([{ kind: "notice", status: "deferred" }]);
    await remove(room);
    sink.fault = undefined;
    room.clock.advance("5m");
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "suppressed" });
    await expectLetters(room, "ada@example.com", "Milk");
  });
});

describe("a notice of a failure that cannot be made", () => {
  async function untellable(room: Mailroom): Promise<void> {
    await hold(room.app, ["tell_failure"]);
    await room.send({ from: BOB, subject: "Milk" });
    const [job] = await room.app.db.selectFrom("jobs").select("id").execute();
    await dropJob(room.app, job?.id ?? "", "the model is being moved");
    // A damaged row of the database makes these for whoever is on the list.
    await room.app.db.updateTable("inboxes").set({ allowlist_senders: "[" }).execute();
  }

  test("is shown on its message once it is given up, and told to the owner", async () => {
    await using room = await mailroom({ inbox: LISTED });
    await untellable(room);
    await release(room.app, ["tell_failure"]);
    await wait(room);
    expect(await room.newest()).toMatchObject({
      state: "failed",
      reply_status: "suppressed",
      reply_error: expect.stringContaining("Nobody was told of the failure"),
    });
    await expectLetters(room, "bob@example.org", "Milk", "the model is being moved");
  });

  test("is shown on its message when the operator drops it, and told to the owner", async () => {
    await using room = await mailroom({ inbox: LISTED });
    await untellable(room);
    const job = await room.app.db
      .selectFrom("jobs")
      .select("id")
      .where("kind", "=", "tell_failure")
      .executeTakeFirstOrThrow();
    await dropJob(room.app, job.id, "not now");
    await room.drain();
    expect(await room.newest()).toMatchObject({
      state: "failed",
      reply_status: "suppressed",
      reply_error: expect.stringContaining("took it out of the queue: not now"),
    });
    await expectLetters(room, "Milk");
  });

  test("is made once what kept it is mended, and then says nothing of that", async () => {
    await using room = await mailroom({ inbox: LISTED });
    await untellable(room);
    await release(room.app, ["tell_failure"]);
    await wait(room);
    await room.app.db.updateTable("inboxes").set({ allowlist_senders: '["bob@example.org"]' }).execute();
    const job = await room.app.db
      .selectFrom("jobs")
      .select("id")
      .where("kind", "=", "tell_failure")
      .executeTakeFirstOrThrow();
    await room.app.db
      .updateTable("jobs")
      .set({ status: "pending", run_at: 0, failures: 0, attempts: 0 })
      .where("id", "=", job.id)
      .execute();
    await room.drain();
    expect(await room.newest()).toMatchObject({ reply_status: "sent", reply_error: null });
  });
});

describe("mail that the model of its inbox cannot work on", () => {
  const REVOKED = { fault: "unauthorized" } as const;
  const OPEN = { reply_to_unauthenticated: true };

  test("of strangers is told to the owner, once a day, with its cause", async () => {
    await using room = await mailroom({ model: REVOKED });
    for (let count = 0; count < 3; count += 1)
      await room.send({ ...freshId(), from: EVE, subject: "My order", text: `Where is it? ${count}` });
    await wait(room);
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "none" });
    await expectLetters(room, "eve@example.net", "My order", "asks for an API key");
  });

  test.each([
    ["whose inbox does not answer", { reply_enabled: false }, "Buy milk"],
    ["that asks for no answer", {}, "--no-reply Buy milk"],
  ])("of the owner, %s, is told to the owner", async (_how, inbox, text) => {
    await using room = await mailroom({ model: REVOKED, inbox });
    await room.send({ subject: "Milk", text });
    await wait(room);
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "none" });
    await expectLetters(room, "ada@example.com", "Milk", "asks for an API key");
  });

  test("for what a stranger wrote is in the activity, and told to nobody", async () => {
    const refusal = { choices: [{ finish_reason: "content_filter", message: { content: "" } }] };
    await using room = await mailroom({ model: { reply: () => Response.json(refusal) }, inbox: OPEN });
    await room.send({ from: EVE, subject: "Bad words" });
    await wait(room);
    expect(await room.newest()).toMatchObject({ state: "failed", reason: "content_filtered" });
    expect(await letters(room)).toEqual([]);
  });

  test("is told to nobody where it is a test or a call: whoever made it sees it", async () => {
    await using room = await mailroom({ model: REVOKED });
    const { body } = await room.owner.post("/v1/messages", { instruction: "Buy milk" });
    expect(body.status).toBe("failed");
    await wait(room);
    expect(await letters(room)).toEqual([]);
  });
});

describe("a notice of a failure to a listed sender", () => {
  /** A room whose model fails, and a relay that says `refusal` at the place it is asked for. */
  async function failingRoom(relay: Parameters<typeof startSmtpSink>[0]) {
    await using stack = new AsyncDisposableStack();
    const sink = stack.use(await startSmtpSink(relay));
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    const config = { outbound: { mode: "relay" as const, relay_url, retry: [60] } };
    const model = { fault: "unauthorized" } as const;
    const room = stack.use(await mailroom({ config, model, inbox: LISTED }));
    const built = stack.move();
    return { ...room, sink, [Symbol.asyncDispose]: () => built.disposeAsync() };
  }
  const toBob = (address: string) => address === "bob@example.org";

  test.each([
    ["is refused", { reject: (to: string) => (toBob(to) ? "550 5.2.1 mailbox disabled" : undefined) }],
    ["is put off for good", { reject: (to: string) => (toBob(to) ? "451 4.2.1 not now" : undefined) }],
  ])(
    "that %s is told to the owner in its place, and another one with it or the next day",
    async (_how, relay) => {
      await using room = await failingRoom(relay);
      for (const subject of ["Milk", "Eggs"]) await room.send({ ...freshId(), from: BOB, subject });
      await wait(room);
      expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "bounced" });
      await expectLetters(room, "bob@example.org", "Milk", "Eggs", "asks for an API key");
      const told = room.sink.mails.flatMap(({ rcpt_to }) => rcpt_to);
      expect([...new Set(told)]).toEqual(["ada@example.com"]);
    },
  );

  test("that does not go out, as its address is dead, is told to the owner in its place", async () => {
    await using room = await failingRoom({});
    const row = { user_id: room.owner.user.id, address: "bob@example.org", reason: "no such user" };
    const dead = { ...row, soft_bounces: 0, suppressed_at: 1, updated: room.app.now() };
    await room.send({ from: BOB, subject: "Milk" });
    await room.app.db.insertInto("suppressions").values(dead).execute();
    await wait(room);
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "suppressed" });
    await expectLetters(room, "bob@example.org", "Milk");
  });

  test("goes out with a bounce address through a relay that takes no null sender, and its return is told", async () => {
    const words = "501 Invalid MAIL FROM address provided";
    await using room = await failingRoom({ reject_sender: (from) => (from === "" ? words : undefined) });
    await room.send({ from: BOB, subject: "Milk" });
    await room.drain();
    expect(room.sink.mails).toMatchObject([{ rcpt_to: ["bob@example.org"] }]);
    expect(await room.newest()).toMatchObject({ state: "failed", reply_status: "sent" });
    expect(await letters(room)).toEqual([]);
    const to = room.sink.mails[0]?.mail_from ?? "";
    expect(await deliver(room.door, { from: "", to, raw: notification({}) })).toStartWith("250 ");
    await wait(room);
    expect(await room.newest()).toMatchObject({ reply_status: "bounced" });
    await expectLetters(room, "bob@example.org", "Milk");
  });
});
