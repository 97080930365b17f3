import { describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import { simpleParser } from "mailparser";
import { serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { dnsRecords } from "../../src/mail/writing/dkim.ts";
import { activeDomain } from "../support/domain-desk.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { freshId, mailroom, type Mailroom, type RoomMail, type RoomOptions } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";

interface Room extends Mailroom {
  sink: SmtpSink;
}

/** Its relay takes nothing until `sendsOn`. */
async function waitingRoom({ config, ...options }: RoomOptions = {}): Promise<Room> {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink());
  sink.fault = "refuse";
  const room = stack.use(
    await mailroom({
      ...options,
      config: {
        outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60, 300] },
        egress: { allow: ["127.0.0.1"] },
        ...config,
      },
    }),
  );
  const built = stack.move();
  return { ...room, sink, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

/** The answer to a mail has been put off once. */
async function putOff(room: Room, mail: RoomMail): Promise<void> {
  expect(await room.send({ ...freshId(), ...mail })).toStartWith("250");
  await room.drain();
  expect(await room.outgoing()).toMatchObject([{ status: "deferred" }]);
}

async function sendsOn(room: Room): Promise<void> {
  room.sink.fault = undefined;
  room.clock.advance("1m");
  await room.drain();
}

async function expectKeptBack(room: Room, why: RegExp): Promise<void> {
  expect(room.sink.mails).toEqual([]);
  const answers = (await room.outgoing()).filter(({ message_id }) => message_id !== null);
  expect(answers).toMatchObject([{ status: "suppressed", response: expect.stringMatching(why) }]);
  const [entry] = await room.activity();
  expect(entry).toMatchObject({ reply_status: "suppressed", reply_error: expect.stringMatching(why) });
}

async function rotate(room: Room): Promise<string> {
  const { status, body } = await room.owner.post(`/inboxes/${room.inbox.id}/rotate`, {});
  expect(status).toBe(200);
  return body.address;
}

function patch(room: Room, change: object): Promise<{ status: number }> {
  return room.owner.patch(`/inboxes/${room.inbox.id}`, change);
}

async function expectSigned(room: Room, raw: Buffer, domain: string): Promise<void> {
  const records = dnsRecords(await serviceKeys(room.app), domain);
  const resolver = (async (name: string) => {
    const found = records.find((record) => record.name === name);
    return found ? [[found.value]] : [];
  }) as unknown as DNSResolver;
  const { results } = await dkimVerify(raw, { resolver });
  expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual(
    records.map(() => ["pass", domain]),
  );
}

async function authorIn(raw: Uint8Array | null): Promise<string | undefined> {
  const { from } = await simpleParser(Buffer.from(raw ?? []));
  return from?.value[0]?.name;
}

const BOB = "Bob <bob@example.org>";
/** One that its field has to quote, and that is as long as labels may be. */
const LABEL = `Grüße <an> "${"alle ".repeat(8)}"`;

describe("an answer that waits while its inbox gets another address", () => {
  test.each(["Desk", LABEL])(
    "leaves from the new one of %p, and what comes back to it goes on",
    async (label) => {
      await using room = await waitingRoom({ inbox: { label } });
      await putOff(room, {});
      const before = await room.app.db.selectFrom("outgoing_mails").selectAll().executeTakeFirstOrThrow();
      const address = await rotate(room);
      await sendsOn(room);
      const { raw, mail_from } = await room.sink.next();
      // The words of the answer repeat the mail that it answers, which went to the old address.
      const [head = ""] = raw.toString().split("\r\n\r\n", 1);
      expect(head).not.toContain(room.inbox.address.split("@")[0] ?? "");
      const mail = await simpleParser(raw);
      expect(mail.from?.value).toMatchObject([{ address, name: await authorIn(before.raw) }]);
      const reply_to = mail.replyTo?.value[0]?.address ?? "";
      expect(reply_to.replace(/\+c_[a-z2-7]+@/, "@")).toBe(address);
      expect(mail.messageId).toBe(`<${before.rfc_message_id}>`);
      expect(mail_from).toBe(before.envelope_from);
      await expectSigned(room, raw, "mw.test");
      const first = await room.newest();
      expect(await room.send({ rcpt: reply_to, to: reply_to, text: "And then?", ...freshId() })).toStartWith(
        "250",
      );
      await room.drain();
      const second = await room.newest();
      expect([second.id === first.id, second.conversation_id]).toEqual([false, first.conversation_id]);
      expect(await room.outgoing()).toMatchObject([{ status: "sent" }, {}]);
    },
  );

  test("to a failure too, which has no Reply-To with a name", async () => {
    await using room = await waitingRoom({ model: { fault: "unauthorized" } });
    await putOff(room, {});
    expect(await room.outgoing()).toMatchObject([{ kind: "notice", envelope_from: "" }]);
    const address = await rotate(room);
    await sendsOn(room);
    const { raw, mail_from } = await room.sink.next();
    expect(mail_from).toBe("");
    expect(raw.toString()).not.toContain(room.inbox.address.split("@")[0] ?? "");
    const mail = await simpleParser(raw);
    expect(mail.from?.value).toMatchObject([{ address }]);
    await expectSigned(room, raw, "mw.test");
  });

  test("does not tell a stranger the new one, nor name one that is not there any more", async () => {
    await using room = await waitingRoom();
    await putOff(room, { from: BOB });
    await rotate(room);
    await sendsOn(room);
    await expectKeptBack(room, /another address meanwhile/);
  });

  test("because its domain is removed leaves from where it lives on, signed by that", async () => {
    await using dns = await startDnsServer();
    await using room = await waitingRoom({ config: { dns: { servers: [dns.address] } } });
    const domain = await activeDomain({ dns }, room.owner, "ai.acme.test");
    const { body: inbox } = await room.owner.post("/inboxes", { label: "Desk", domain_id: domain.id });
    await putOff(room, { from: BOB, rcpt: inbox.address, to: inbox.address });
    expect((await room.owner.delete(`/custom-domains/${domain.id}`)).status).toBe(204);
    const { body: moved } = await room.owner.get(`/inboxes/${inbox.id}`);
    expect(moved.address).toEndWith("@mw.test");
    await sendsOn(room);
    const { raw, mail_from } = await room.sink.next();
    const mail = await simpleParser(raw);
    expect(mail.from?.value).toMatchObject([{ address: moved.address }]);
    expect(mail.replyTo?.value[0]?.address).toEndWith("@mw.test");
    expect(mail_from).toMatch(/^b\+[a-z0-9]+@mw\.test$/);
    await expectSigned(room, raw, "mw.test");
  });

  const AGAIN: [string, (room: Room) => () => void][] = [
    ["it is put off again", () => () => undefined],
    [
      "the server ends before the attempt",
      (room) => {
        const { send } = room.app.sender;
        room.app.sender.send = () => Promise.reject(new Error("as if the process had ended here"));
        return () => void (room.app.sender.send = send);
      },
    ],
  ];
  test.each(AGAIN)("stays as it left first when %s", async (_what, stop) => {
    await using room = await waitingRoom();
    await putOff(room, {});
    const address = await rotate(room);
    const goOn = stop(room);
    room.clock.advance("1m");
    await room.drain();
    const [tried] = await room.outgoing();
    expect(Buffer.from(tried?.raw ?? []).toString()).toContain(address);
    goOn();
    room.sink.fault = undefined;
    room.clock.advance("5m");
    await room.drain();
    expect(room.sink.mails).toHaveLength(1);
    expect((await room.sink.next()).raw.equals(Buffer.from(tried?.raw ?? []))).toBe(true);
  });
});

describe("an answer that waits", () => {
  const CAROL = "carol@example.net";

  test("is not sent to the Reply-To of its mail once that address is off the list", async () => {
    await using room = await waitingRoom({ inbox: { allowlist_senders: [CAROL] } });
    await putOff(room, { headers: { ...freshId().headers, "Reply-To": CAROL } });
    expect(await room.outgoing()).toMatchObject([{ envelope_to: CAROL }]);
    await patch(room, { allowlist_senders: ["dora@example.net"] });
    await sendsOn(room);
    await expectKeptBack(room, /Reply-To/);
  });

  test("goes to the Reply-To of its mail while that address is on the list", async () => {
    await using room = await waitingRoom({ inbox: { allowlist_senders: [CAROL] } });
    await putOff(room, { headers: { ...freshId().headers, "Reply-To": CAROL } });
    await patch(room, { allowlist_senders: ["dora@example.net", CAROL] });
    await sendsOn(room);
    expect((await room.sink.next()).rcpt_to).toEqual([CAROL]);
  });

  test("does not obey the Reply-To of a sender who is a stranger by now", async () => {
    await using room = await waitingRoom({ inbox: { allowlist_senders: ["bob@example.org"] } });
    await putOff(room, { from: BOB, headers: { ...freshId().headers, "Reply-To": "ada@example.com" } });
    expect(await room.outgoing()).toMatchObject([{ envelope_to: "ada@example.com" }]);
    await patch(room, { allowlist_senders: [] });
    await sendsOn(room);
    await expectKeptBack(room, /Reply-To/);
  });

  test("that tells of a failure is not sent to a sender who is a stranger by now", async () => {
    await using room = await waitingRoom({
      inbox: { allowlist_senders: ["bob@example.org"] },
      model: { fault: "unauthorized" },
    });
    await putOff(room, { from: BOB });
    await patch(room, { allowlist_senders: [] });
    await sendsOn(room);
    await expectKeptBack(room, /neither the owner nor listed/);
  });

  test("is not sent to senders whom nobody vouches for once the inbox answers them no more", async () => {
    const policy = (reply_to_unauthenticated: boolean) => ({ inbound_policy: { reply_to_unauthenticated } });
    await using room = await waitingRoom({
      config: { smtp: { trusted_networks: [] } },
      inbox: policy(true),
    });
    await putOff(room, { from: BOB });
    await patch(room, policy(false));
    await sendsOn(room);
    await expectKeptBack(room, /answers no strangers any more whose address cannot be verified/);
  });
});

describe("of a failure that is told outside of a run", () => {
  test("a sender who is a stranger by now hears nothing, and the owner does", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
    await room.send({ from: BOB });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: [] });
    await forgetNotices(room.app);
    await room.app.db.updateTable("raw_mails").set({ bytes: null }).execute();
    for (let round = 0; round < 10; round += 1) {
      await room.drain();
      room.clock.advance("2h");
    }
    expect(await room.activity()).toMatchObject([{ status: "failed", reason: "internal" }]);
    expect(await room.outgoing()).toMatchObject([{ envelope_to: "ada@example.com", message_id: null }]);
  });
});
