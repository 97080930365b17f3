import { expect, test } from "bun:test";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

test("two inboxes of one server that write to each other stop at two mails", async () => {
  await using room = await mailroom();
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: [other.address] });
  await room.send({ headers: { "Reply-To": other.address, "Message-ID": "<start@example.com>" } });
  await room.drain();
  expect(await carry(room, room, 0)).toBe(1);
  expect(await room.activity()).toMatchObject([
    { inbox_id: other.id, status: "rejected", reason: expect.any(String) },
    { inbox_id: room.inbox.id, status: "done" },
  ]);
  expect(await room.outgoing()).toHaveLength(1);
  expect(room.model.requests).toHaveLength(1);
});

test("inboxes of two servers that write to each other stop at two mails", async () => {
  await using here = await mailroom({ config: { smtp: { domain: "here.test" } } });
  await using there = await mailroom({
    config: {
      smtp: { domain: "there.test" },
      security: { master_key: Buffer.alloc(32, 9).toString("base64") },
    },
  });
  // As if the inbox there had written first, by hand.
  const raw = rawMail({ from: there.inbox.address, to: here.inbox.address });
  await here.send({ from: there.inbox.address, raw });
  let mails = 1;
  for (let round = 0; round < 5; round++) {
    mails += await carry(here, there, round);
    mails += await carry(there, here, round);
  }
  expect(mails).toBe(2);
  expect(await here.activity()).toMatchObject([{ status: "done" }]);
  expect(await there.activity()).toMatchObject([{ status: "rejected", reason: "auto_reply" }]);
});

test("a machine that answers everything and hides that it is one is answered ten times an hour", async () => {
  await using sink = await startSmtpSink();
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  await using room = await mailroom({ config: { outbound } });
  await room.send({ from: "bot@example.org", text: "0", headers: { "Message-ID": "<bot-0@example.org>" } });
  await room.drain();
  for (let count = 1; count <= 15 && sink.mails.length === count; count++) {
    const answer = (await sink.next()).raw.toString();
    const [, parent = ""] = /^Message-ID: <(.*)>/im.exec(answer) ?? [];
    const headers = { "Message-ID": `<bot-${count}@example.org>`, "In-Reply-To": `<${parent}>` };
    await room.send({ from: "bot@example.org", text: `I got your mail number ${count}.`, headers });
    await room.drain();
  }
  expect(sink.mails).toHaveLength(10);
  expect((await room.activity())[0]).toMatchObject({ status: "rejected", reason: "loop_cap" });
});

test.each([
  ["a thread", { replies_per_conversation_hour: 2 }],
  ["the same words", { same_body_per_hour: 2 }],
])(
  "the owner's own mail beyond a cap, by %s, is kept whole, told of, and done when the owner says so",
  async (how, limits) => {
    await using room = await mailroom({ config: { limits } });
    const write = async (count: number) => {
      const [last] = (await room.outgoing()).filter(({ kind }) => kind === "reply").slice(-1);
      const thread = how === "a thread" && last ? { "In-Reply-To": `<${last.rfc_message_id}>` } : {};
      const text = how === "a thread" ? `Book table ${count}` : "Book a table";
      const headers = { "Message-ID": `<own-${count}@example.com>`, ...thread };
      expect(await room.send({ subject: "Tables", text, headers })).toStartWith("250");
      await room.drain();
    };
    for (let count = 1; count <= 3; count += 1) await write(count);
    const [left_out, ...others] = await room.activity();
    expect(left_out).toMatchObject({ status: "rejected", reason: "loop_cap", sender: "ada@example.com" });
    expect(others.map(({ status }) => status)).toEqual(["done", "done"]);
    const story = await room.owner.get(`/messages/${left_out.message_id}`);
    expect(story.body).toMatchObject({ raw_available: true });
    const told = (await room.outgoing()).filter(({ kind }) => kind === "notice");
    expect(String(told.map(({ raw }) => Buffer.from(raw ?? [])))).toContain("tried again there");
    const retry = await room.owner.post(`/messages/${left_out.message_id}/retry`);
    expect(retry.status).toBe(202);
    await room.drain();
    const done = (await room.activity())[0];
    expect(done).toMatchObject({
      status: "done",
      retry_of: left_out.message_id,
      conversation_id: left_out.conversation_id,
    });
    const asked = room.model.requests.at(-1)?.body?.messages.at(-1)?.content;
    expect(asked).toContain(how === "a thread" ? "Book table 3" : "Book a table");
    expect(room.model.requests).toHaveLength(3);
    // Done twice it is not, neither by the owner nor by the sender's server.
    expect((await room.owner.post(`/messages/${left_out.message_id}/retry`)).status).toBe(409);
    room.clock.advance("2h");
    await write(3);
    expect(room.model.requests).toHaveLength(3);
  },
);

test("mail of a stranger beyond a cap is left out as before, and not kept", async () => {
  await using room = await mailroom({ config: { limits: { same_body_per_hour: 1 } } });
  for (let count = 1; count <= 2; count += 1) {
    const headers = { "Message-ID": `<eve-${count}@example.org>` };
    await room.send({ from: "eve@example.org", text: "Hello", headers });
    await room.drain();
  }
  const [left_out] = await room.activity();
  expect(left_out).toMatchObject({ reason: "loop_cap" });
  expect((await room.newest()).raw_mail_id).toBeNull();
  expect((await room.owner.post(`/messages/${left_out.message_id}/retry`)).status).toBe(409);
});

/** Carries every answer that `from` wrote since `seen` mails over to `to`, and lets it be worked on. */
async function carry(from: Mailroom, to: Mailroom, seen: number): Promise<number> {
  await from.drain();
  const mails = (await from.outgoing()).slice(seen);
  for (const { envelope_from, envelope_to, raw } of mails)
    await deliver(to.door, { from: envelope_from, to: envelope_to, raw: Buffer.from(raw ?? []) });
  await to.drain();
  return mails.length;
}

test("orders in the subjects of mails with the same signature are no loop", async () => {
  await using room = await mailroom({ config: { limits: { same_body_per_hour: 1 } } });
  const subjects = ["Book a table", "Cancel the flight", "Pay the invoice"];
  for (const subject of subjects) await room.send({ subject, text: "-- \nSent from my iPhone" });
  await room.drain();
  await room.send({ subject: `Re: ${subjects[0]}`, text: "-- \nSent from my iPhone" });
  const rows = await room.activity();
  expect(rows.map(({ reason }) => reason)).toEqual(["loop_cap", null, null, null]);
});

test("mail of the owner that was put off at the door is worked on when it comes again", async () => {
  await using t = await mailroom();
  const waiting = Array.from({ length: 25 }, (_, index) => `Book invoice ${index}.`);
  for (let tries = 0; waiting.length > 0 && tries < 10; tries++) {
    for (const text of waiting.splice(0))
      if (
        !(
          await t.send({ text, headers: { "Message-ID": `<${text.length}-${text}@x>`.replaceAll(" ", "") } })
        ).startsWith("250")
      )
        waiting.push(text);
    await t.drain();
    t.clock.advance("10m");
  }
  expect(waiting).toEqual([]);
  const activity = await t.app.db.selectFrom("messages").select(["state", "reason"]).execute();
  expect(activity).toHaveLength(25);
  expect(new Set(activity.map(({ state, reason }) => `${state} ${reason}`))).toEqual(new Set(["done null"]));
});
