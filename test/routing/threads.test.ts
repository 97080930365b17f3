import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";

const BOB = "Bob <bob@example.org>";

describe("a mail continues a conversation", () => {
  test("by the token of the Reply-To address, whatever its headers say", async () => {
    await using room = await mailroom();
    const first = await run(room, { text: "One" });
    const next = await run(room, {
      text: "Two",
      rcpt: replyTo(first.raw).toUpperCase(),
      subject: "Another thing",
    });
    expect(next.conversation_id).toBe(first.conversation_id);
    expect(await conversation(room, first.conversation_id)).toMatchObject({
      turn_count: 2,
      latest_sender: "ada@example.com",
    });
  });

  test("by In-Reply-To, of our answer and of the sender's own earlier mail", async () => {
    await using room = await mailroom();
    const first = await run(room, { headers: { "Message-ID": "<mine@example.com>" }, text: "One" });
    const answered = await run(room, id("a", { "In-Reply-To": `<${first.answer_id}>` }));
    const followed = await run(room, id("b", { "In-Reply-To": "<mine@example.com>" }));
    expect(answered.conversation_id).toBe(first.conversation_id);
    expect(followed.conversation_id).toBe(first.conversation_id);
  });

  test("by the newest id of References that is known", async () => {
    await using room = await mailroom();
    const [one, two] = [await run(room, id("one")), await run(room, id("two"))];
    const References = `<${one.answer_id}> <${two.answer_id}> <unknown@example.net>`;
    const next = await run(room, id("three", { References }));
    expect(next.conversation_id).toBe(two.conversation_id);
  });
});

describe("a mail begins a new conversation", () => {
  test("when only its subject is that of an earlier one", async () => {
    await using room = await mailroom();
    const first = await run(room, { ...id("a"), subject: "Plan" });
    const next = await run(room, { ...id("b"), subject: "Re: Plan" });
    expect(next.conversation_id).not.toBe(first.conversation_id);
  });

  test("when the token was made for another participant", async () => {
    await using room = await mailroom();
    const first = await run(room, { text: "One" });
    const stolen = await run(room, { ...id("x"), from: BOB, rcpt: replyTo(first.raw) });
    expect(stolen.conversation_id).not.toBe(first.conversation_id);
    const asked = room.model.requests.at(-1)?.body?.messages ?? [];
    expect(asked).toHaveLength(2);
  });

  test("when the token is made up or belongs to another inbox", async () => {
    await using room = await mailroom();
    const first = await run(room, { text: "One" });
    const forged = room.inbox.address.replace("@", "+c_aaaaaaaaaaaaaaaaaaaa@");
    expect((await run(room, { ...id("y"), rcpt: forged })).conversation_id).not.toBe(first.conversation_id);
    const { body: other } = await room.owner.post("/inboxes", {});
    const [, tag] = /\+(c_[a-z2-7]+)@/.exec(replyTo(first.raw)) ?? [];
    const moved = await run(room, { ...id("z"), rcpt: other.address.replace("@", `+${tag}@`) });
    expect(moved.conversation_id).not.toBe(first.conversation_id);
  });

  test("when it names a mail of somebody else", async () => {
    await using room = await mailroom();
    const first = await run(room, id("mine"));
    for (const parent of [first.answer_id, "mine@example.com"]) {
      const next = await run(room, {
        from: BOB,
        ...id(`bob-${parent.slice(0, 4)}`, { "In-Reply-To": `<${parent}>` }),
      });
      expect(next.conversation_id).not.toBe(first.conversation_id);
    }
  });
});

describe("a sender who is not authenticated", () => {
  const inbox = { inbound_policy: { reply_to_unauthenticated: true } };

  test("cannot join a conversation by an id that others have seen", async () => {
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: { dns: { servers: [dns.address] } }, inbox });
    const first = await run(room, { ...id("a"), from: BOB });
    room.app.config.smtp.trusted_networks = [];
    const forged = await run(room, { ...id("b", { "In-Reply-To": "<a@example.com>" }), from: BOB });
    expect((await room.newest()).authority).toBe("unauthenticated");
    expect(forged.conversation_id).not.toBe(first.conversation_id);
  });

  test("continues one by the token that was mailed to the address", async () => {
    await using dns = await startDnsServer();
    const config = { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } };
    await using room = await mailroom({ config, inbox });
    const first = await run(room, { ...id("a"), from: BOB });
    const next = await run(room, { ...id("b"), from: BOB, rcpt: replyTo(first.raw) });
    expect(next.conversation_id).toBe(first.conversation_id);
  });
});

describe("replies in one conversation", () => {
  test("are worked on one at a time and in order, while other conversations go on", async () => {
    const order: string[] = [];
    let running = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    await using room = await mailroom({
      model: {
        reply: async ({ messages }) => {
          const text = /^(\w+)/.exec(messages.at(-1)?.content ?? "")?.[1] ?? "";
          if (text === "Other") return "other";
          order.push(text);
          most = Math.max(most, ++running);
          if (text === "First") await gate.promise;
          running -= 1;
          return `Answer to ${text}`;
        },
      },
    });
    await room.send({ ...id("first"), text: "First" });
    for (const text of ["Second", "Third"])
      await room.send({ ...id(text, { "In-Reply-To": "<first@example.com>" }), text });
    await room.send({ ...id("other"), text: "Other" });
    const drained = room.drain();
    await room.model.received(2);
    expect(order).toEqual(["First"]);
    gate.resolve();
    await drained;
    expect(order).toEqual(["First", "Second", "Third"]);
    expect(most).toBe(1);
    const third = room.model.requests.find(({ body }) => body?.messages.at(-1)?.content.startsWith("Third"));
    expect(third?.body?.messages.map(({ content }) => content.split("\n", 1)[0]).slice(1)).toEqual([
      "First",
      "Answer to First",
      "Second",
      "Answer to Second",
      "Third",
    ]);
    expect(new Set((await room.activity()).map(({ conversation_id }) => conversation_id)).size).toBe(2);
  });
});

function id(name: string, more: Record<string, string> = {}): RoomMail {
  return { headers: { "Message-ID": `<${name}@example.com>`, ...more }, text: name };
}

/** Sends a mail and lets it be worked on: its conversation and the answer it got. */
async function run(room: Mailroom, mail: RoomMail) {
  expect(await room.send(mail)).toStartWith("250 ");
  await room.drain();
  const { id, state, conversation_id } = await room.newest();
  expect(state).toBe("done");
  const answer = (await room.outgoing()).find(({ message_id }) => message_id === id);
  const raw = Buffer.from(answer?.raw ?? []).toString();
  return { conversation_id: conversation_id ?? "", answer_id: answer?.rfc_message_id ?? "", raw };
}

function replyTo(raw: string): string {
  return /^Reply-To: .*<([^<>]+)>/m.exec(raw.replaceAll(/\r\n[ \t]/g, " "))?.[1] ?? "none";
}

function conversation(room: Mailroom, id: string) {
  return room.app.db.selectFrom("conversations").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
}
