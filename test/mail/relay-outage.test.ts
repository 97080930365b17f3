import { expect, test } from "bun:test";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { pass, purge } from "../support/purge.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

/** Lets the whole schedule of tries go by. */
async function outlast(room: Mailroom): Promise<void> {
  for (let count = 0; count < 3; count += 1) {
    await room.drain();
    room.clock.advance("2m");
  }
}

async function retryDead(room: Mailroom): Promise<number> {
  const { items } = (await room.owner.get("/admin/queue?state=dead")).body;
  for (const { id } of items) expect((await room.owner.post(`/admin/queue/${id}/retry`)).status).toBe(204);
  await room.drain();
  return items.length;
}

test.each([
  ["that nobody answers at", undefined, "could not be reached"],
  ["that wants a login", "530 5.7.0 Authentication required", "Authentication required"],
  ["that relays nothing", "554 5.7.1 <ann@example.com>: Relay access denied", "Relay access denied"],
])(
  "an answer for a relay %s is kept, /readyz says why, and it goes out once that is mended",
  async (_how, said, words) => {
    let fault = said;
    const sink = await startSmtpSink({ reject: () => fault });
    const { port } = sink;
    if (said === undefined) await sink[Symbol.asyncDispose]();
    const relay_url = `smtp://127.0.0.1:${port}`;
    await using room = await mailroom({
      config: { outbound: { mode: "relay", relay_url, retry: [60, 60] } },
    });
    await room.send({});
    await room.drain();
    expect(await queueWarnings(room.app)).toEqual({ relay: expect.stringContaining(words) });
    await outlast(room);
    expect(await room.newest()).toMatchObject({
      reply_status: "bounced",
      reply_error: expect.stringContaining("Given up after the last retry"),
    });
    expect(await queueWarnings(room.app)).toMatchObject({
      dead: expect.any(String),
      relay: expect.any(String),
    });
    fault = undefined;
    await using mended = said === undefined ? await startSmtpSink({ port }) : sink;
    expect(await retryDead(room)).toBe(1);
    expect(mended.mails).toMatchObject([{ rcpt_to: ["ada@example.com"] }]);
    expect(await room.newest()).toMatchObject({ reply_status: "sent", reply_error: null });
    expect(await queueWarnings(room.app)).toEqual({});
  },
);

type Place = "sender" | "recipient" | "mail";
const OF_SENDER: [words: string, place: Place][] = [
  ["550 5.4.5 Daily user sending limit exceeded.", "mail"],
  [
    "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; the sender's submission quota was exceeded.",
    "mail",
  ],
  ["554 Message rejected: Email address is not verified. The identities failed the check", "mail"],
  ["550 The from address does not match a verified Sender Identity.", "sender"],
  ["553 5.7.1 <desk@mw.test>: Sender address rejected: not owned by user ada", "recipient"],
  ["550 5.7.60 SMTP; Client does not have permissions to send as this sender", "mail"],
  ["550 5.7.0 Account suspended for non-payment", "sender"],
  ["554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked", "recipient"],
];
test.each(OF_SENDER)(
  "an answer that the relay refuses because of who sends (%s) waits, and goes out once that is mended",
  async (words, place) => {
    let fault: string | undefined = words;
    const at = (here: Place) => () => (here === place ? fault : undefined);
    await using sink = await startSmtpSink({
      reject_sender: at("sender"),
      reject: at("recipient"),
      reject_mail: at("mail"),
    });
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
    await room.send({});
    await room.drain();
    expect(await room.newest()).toMatchObject({ reply_status: "deferred" });
    expect(await queueWarnings(room.app)).toEqual({ relay: expect.stringContaining(words.slice(4, 30)) });
    await outlast(room);
    expect(await room.app.db.selectFrom("suppressions").selectAll().execute()).toEqual([]);
    fault = undefined;
    expect(await retryDead(room)).toBe(1);
    expect(sink.mails.map(({ rcpt_to }) => rcpt_to)).toContainEqual(["ada@example.com"]);
    expect(await room.newest()).toMatchObject({ reply_status: "sent", reply_error: null });
    expect(await queueWarnings(room.app)).toEqual({});
  },
);

const OF_THE_MAIL: [words: string, place: Place][] = [
  ["552 5.3.4 Message size exceeds the limit of your account", "sender"],
  ["550 No such user here", "recipient"],
  ["550 5.2.1 The sender address is fine, the mailbox is disabled", "recipient"],
  ["554 5.7.1 Message rejected as spam", "mail"],
  ["552 5.2.2 Mailbox over its daily limit", "recipient"],
];
test.each(OF_THE_MAIL)(
  "an answer that the relay refuses because of itself (%s) ends",
  async (words, place) => {
    const at = (here: Place) => () => (here === place ? words : undefined);
    await using sink = await startSmtpSink({
      reject_sender: at("sender"),
      reject: at("recipient"),
      reject_mail: at("mail"),
    });
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    await room.send({});
    await room.drain();
    expect(await room.newest()).toMatchObject({ reply_status: "bounced" });
    expect(await queueWarnings(room.app)).toEqual({});
  },
);

test.each(["550 5.1.1 No such user", "451 4.3.0 Come back later"])(
  "an answer that the relay refuses for itself (%s) is given up, and says nothing of the relay",
  async (said) => {
    await using sink = await startSmtpSink({ reject: () => said });
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
    await room.send({});
    await outlast(room);
    expect(await room.newest()).toMatchObject({ reply_status: "bounced" });
    expect(await queueWarnings(room.app)).toEqual({});
    expect(await retryDead(room)).toBe(0);
  },
);

/** A room whose only answer was given up because of the relay. */
async function givenUp(retention: Record<string, number> = {}) {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink({ reject: () => "530 5.7.0 Authentication required" }));
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const outbound = { mode: "relay" as const, relay_url, retry: [60] };
  const room = stack.use(await mailroom({ config: { outbound, retention } }));
  await room.send({});
  await outlast(room);
  expect(await deadJobs(room)).toHaveLength(1);
  const kept = stack.move();
  return { ...room, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function deadJobs({ app }: Mailroom) {
  return app.db.selectFrom("jobs").select(["kind", "last_error"]).where("status", "=", "dead").execute();
}

test.each([
  [
    "its message is deleted",
    {},
    async (room: Mailroom) => {
      const { status } = await room.owner.delete(`/messages/${(await room.newest()).id}`);
      expect(status).toBe(204);
      await outlast(room);
      await outlast(room);
    },
  ],
  ["its time is over", { raw_days: 1, delivery_days: 3 }, (room: Mailroom) => pass(room, 4)],
  [
    "its account is deleted",
    {},
    async (room: Mailroom) => {
      const body = JSON.stringify({ confirm: "ada@example.com" });
      const headers = { "content-type": "application/json", "x-api-key": room.owner.key };
      const { status } = await room.request("/auth/account", { method: "DELETE", headers, body });
      expect(status).toBe(204);
      // Until the farewell, too, is given up.
      for (let count = 0; count < 4; count += 1) await outlast(room);
    },
  ],
])("what was given up because of the relay is forgotten when %s", async (_when, retention, end) => {
  await using room = await givenUp(retention);
  // The control: a look at what has been kept for long enough leaves it.
  await purge(room);
  expect(await deadJobs(room)).toHaveLength(1);
  await end(room);
  expect(await deadJobs(room)).toEqual([]);
  expect(await queueWarnings(room.app)).not.toHaveProperty("dead");
});

test("what was given up can be tried again as long as its job is kept, however short mails are", async () => {
  let fault: string | undefined = "530 5.7.0 Authentication required";
  await using sink = await startSmtpSink({ reject: () => fault });
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const outbound = { mode: "relay" as const, relay_url, retry: [60] };
  const retention = { raw_days: 1, delivery_days: 5 };
  await using room = await mailroom({ config: { outbound, retention } });
  await room.send({});
  await outlast(room);
  // A run that was given up needs its mail as well.
  await room.send({});
  const { id } = await room.newest();
  await room.app.db.updateTable("jobs").set({ status: "dead" }).where("kind", "=", "route_message").execute();
  await room.app.db
    .updateTable("messages")
    .set({ state: "failed", reason: "internal", completed: room.app.now() })
    .where("id", "=", id)
    .execute();
  await pass(room, 3);
  fault = undefined;
  expect(await retryDead(room)).toBe(2);
  await room.drain();
  expect(sink.mails).toHaveLength(2);
});

test("a private answer that was given up because of the relay is kept until it is sent again, and no longer", async () => {
  let fault: string | undefined = "530 5.7.0 Authentication required";
  await using sink = await startSmtpSink({ reject: () => fault });
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
  await room.send({ text: "--private When does it open?" });
  await outlast(room);
  expect(await room.outgoing()).toMatchObject([{ private: 1, status: "bounced" }]);
  fault = undefined;
  expect(await retryDead(room)).toBe(1);
  expect(sink.mails).toHaveLength(1);
  expect(await room.outgoing()).toMatchObject([{ private: 1, status: "sent", raw: null }]);
});
