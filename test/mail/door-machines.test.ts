import { describe, expect, test } from "bun:test";
import { leftOutWords } from "../../src/reasons.ts";
import { freshId, mailroom, type RoomMail } from "../support/mailroom.ts";

const BOB = "Bob <bob@example.org>";
const headers = (fields: Record<string, string>): RoomMail => ({ from: BOB, headers: fields });

/** Sent to an inbox by a sender that is not a person. */
const MACHINES: [claim: string, reason: string, mail: RoomMail][] = [
  ["the null sender", "bounce", { from: BOB, mail_from: "" }],
  [
    "a delivery report",
    "bounce",
    {
      raw: Buffer.from(
        "From: Bob <bob@example.org>\r\nTo: desk@mw.test\r\nContent-Type: multipart/report; boundary=x\r\n\r\n--x--\r\n",
      ),
    },
  ],
  ["mailer-daemon", "bounce", { from: "MAILER-DAEMON@example.org" }],
  ["postmaster", "bounce", { from: "Postmaster@example.org" }],
  ["a program", "auto_submitted", headers({ "Auto-Submitted": "auto-generated; reason=cron" })],
  ["a notifier", "auto_submitted", headers({ "Auto-Submitted": "(x) Auto-Notified" })],
  ["a responder", "auto_reply", headers({ "Auto-Submitted": "auto-replied" })],
  ["an Exchange responder", "auto_reply", headers({ "X-Auto-Response-Suppress": "DR, OOF" })],
  ["an old responder", "auto_reply", headers({ "X-Autoreply": "yes" })],
  ["a responder by Precedence", "auto_reply", headers({ Precedence: "auto_reply" })],
  ["a mailing list", "mailing_list", headers({ "List-Id": "<list.example.org>" })],
  ["a newsletter", "mailing_list", headers({ "List-Unsubscribe": "<https://example.org/u>" })],
  ["bulk mail", "bulk", headers({ Precedence: "bulk" })],
  ["a no-reply address", "no_reply_sender", { from: "no-reply@example.org" }],
  ["a loop of five answers", "hop_limit", headers({ "X-Mailwright-Hop": "5" })],
];

describe("mail of machines", () => {
  test.each(MACHINES)(
    "takes mail of %s, skips it as %s, and writes to nobody",
    async (_claim, reason, mail) => {
      await using room = await mailroom();
      expect(await room.send(mail)).toStartWith("250 ");
      await room.drain();
      expect(await room.activity()).toMatchObject([
        { status: "rejected", reason, error: `skipped: ${leftOutWords(reason)}`, credits_charged: 0 },
      ]);
      expect(room.model.requests).toEqual([]);
      expect(await room.outgoing()).toEqual([]);
      expect(await room.app.db.selectFrom("raw_mails").select("id").execute()).toEqual([]);
    },
  );

  const PEOPLE: [claim: string, mail: RoomMail][] = [
    ["Auto-Submitted: no", headers({ "Auto-Submitted": "no" })],
    ["X-Auto-Response-Suppress: None", headers({ "X-Auto-Response-Suppress": "None" })],
    ["four answers of servers like this one", headers({ "X-Mailwright-Hop": "4" })],
  ];
  test.each(PEOPLE)("answers a mail with %s", async (_claim, mail) => {
    await using room = await mailroom();
    await room.send(mail);
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "sent" }]);
  });

  /** What forwarders, providers and people leave as well as machines. */
  const DOUBTFUL = [
    { "X-Loop": "ada@example.com" },
    { "Feedback-ID": "1234:someone:new:carrier" },
    { Subject: "AUTO: zum Verkauf" },
  ];
  test.each(DOUBTFUL)("answers the owner and listed senders with %j, and nobody else", async (fields) => {
    const mail = (from: string): RoomMail => {
      const { Subject: subject, ...others } = fields;
      return {
        from,
        ...(subject === undefined ? {} : { subject }),
        headers: { ...freshId().headers, ...others },
      };
    };
    await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
    const states = async () =>
      (await room.activity()).map(({ status, reply_status }) => [status, reply_status]);
    await room.send(mail("Ada <ada@example.com>"));
    await room.send(mail(BOB));
    await room.drain();
    expect(await states()).toEqual([
      ["done", "sent"],
      ["done", "sent"],
    ]);
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: [] });
    await room.send(mail(BOB));
    room.app.config.smtp.trusted_networks = [];
    await room.send(mail("Ada <ada@example.com>"));
    await room.drain();
    expect((await states()).filter(([status]) => status === "done")).toHaveLength(2);
    expect(room.model.requests).toHaveLength(2);
  });

  test("is no mail of the owner that writes of failures and absences", async () => {
    await using room = await mailroom();
    const words = [
      "My letter could not be delivered: 550 5.1.1 user unknown. What does that mean?",
      "Mail delivery failed, returned mail, this is a permanent error; tell bob@example.org.",
      "I am out of the office until Monday; write an automatic reply for me.",
    ];
    for (const text of words) await room.send({ text, subject: "Undeliverable: my letter", ...freshId() });
    await room.drain();
    expect((await room.activity()).map(({ status, reply_status }) => [status, reply_status])).toEqual(
      words.map(() => ["done", "sent"]),
    );
    // They are worked on at the same time, so that any may be asked about first.
    const asked = JSON.stringify(room.model.requests);
    expect(words.filter((text) => !asked.includes(text.slice(0, 30)))).toEqual([]);
  });

  test("works on a newsletter without an answer where the inbox wants it", async () => {
    await using room = await mailroom({ inbox: { inbound_policy: { process_bulk: true } } });
    await room.send(headers({ "List-Id": "<news.example.org>" }));
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "none" }]);
    expect(await room.outgoing()).toEqual([]);
  });

  test("is never worked on where it is a bounce, whatever the inbox wants", async () => {
    await using room = await mailroom({ inbox: { inbound_policy: { process_bulk: true } } });
    await room.send({ from: BOB, mail_from: "" });
    expect(await room.activity()).toMatchObject([{ status: "rejected", reason: "bounce" }]);
  });

  test("of our own addresses and with a Message-ID of ours is skipped", async () => {
    await using room = await mailroom();
    await room.send({});
    await room.drain();
    const [reply] = await room.outgoing();
    await room.send(headers({ "Message-ID": `<${reply?.rfc_message_id}>` }));
    const { body: other } = await room.owner.post("/inboxes", {});
    await room.send({ from: other.address });
    await room.send({ from: room.inbox.address });
    const reasons = (await room.activity()).map(({ reason }) => reason);
    expect(reasons).toEqual(["own_address", "own_address", "own_message_id", null]);
    await room.send({ from: "mailwright@mw.test" });
    expect((await room.activity())[0]).toMatchObject({ reason: "own_address" });
  });

  test("of a person who has a mailbox at the server's own domain is worked on", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["ann@mw.test"] } });
    await room.send({ from: "Ann <ann@mw.test>" });
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", sender: "ann@mw.test" }]);
    expect(await room.outgoing()).toMatchObject([{ envelope_to: "ann@mw.test" }]);
  });
});

describe("caps", () => {
  const send = (room: Awaited<ReturnType<typeof mailroom>>, text: string, more: RoomMail = {}) =>
    room.send({ from: BOB, text, ...freshId(), ...more });
  const states = async (room: Awaited<ReturnType<typeof mailroom>>) =>
    (await room.activity()).map(({ status, reason }) => reason ?? status).toReversed();

  test("end at so many mails of one sender in an hour, and begin anew in the next", async () => {
    await using room = await mailroom({ config: { limits: { replies_per_sender_hour: 2 } } });
    for (const text of ["1", "2", "3"]) expect(await send(room, text)).toStartWith("250 ");
    await send(room, "another sender", { from: "Cyd <cyd@example.org>" });
    room.clock.advance("61m");
    await send(room, "4");
    expect(await states(room)).toEqual(["received", "received", "loop_cap", "received", "received"]);
    const [, , skipped] = (await room.activity()).toReversed();
    expect(skipped.error).toBe(
      "skipped: It was left out, as more than 2 mails of one sender came in an hour (limits.replies_per_sender_hour).",
    );
  });

  test("end at so many mails of one sender in a day", async () => {
    await using room = await mailroom({ config: { limits: { replies_per_sender_day: 2 } } });
    for (const text of ["1", "2", "3"]) {
      await send(room, text);
      room.clock.advance("2h");
    }
    room.clock.advance("20h");
    await send(room, "4");
    expect(await states(room)).toEqual(["received", "received", "loop_cap", "received"]);
  });

  test("end at the same text three times in an hour", async () => {
    await using room = await mailroom();
    for (let count = 0; count < 4; count++) await send(room, "I am on holiday");
    await send(room, "I am back");
    room.clock.advance("61m");
    await send(room, "I am on holiday");
    expect(await states(room)).toEqual([
      "received",
      "received",
      "received",
      "loop_cap",
      "received",
      "received",
    ]);
  });

  test("end at so many mails in one conversation in an hour", async () => {
    await using room = await mailroom({ config: { limits: { replies_per_conversation_hour: 2 } } });
    const parent = { "In-Reply-To": "<first@example.org>" };
    await send(room, "1", headers({ "Message-ID": "<first@example.org>" }));
    for (const text of ["2", "3"])
      await send(room, text, headers({ ...parent, "Message-ID": `<${text}@example.org>` }));
    await send(room, "a new one");
    expect(await states(room)).toEqual(["received", "received", "loop_cap", "received"]);
  });
});

describe("duplicates", () => {
  const same = { headers: { "Message-ID": "<same@example.org>" } };

  test("are taken, not worked on, and counted on the original for seven days", async () => {
    await using room = await mailroom();
    for (let count = 0; count < 3; count++) expect(await room.send({ ...same })).toStartWith("250 ");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", duplicates: 2 }]);
    expect(await room.outgoing()).toHaveLength(1);
    room.clock.advance("8d");
    await room.send({ ...same });
    expect(await room.activity()).toHaveLength(2);
  });

  test("that arrive at the same time on several connections are one run", async () => {
    await using room = await mailroom();
    const replies = await Promise.all(Array.from({ length: 8 }, () => room.send({ ...same })));
    expect(replies.every((reply) => reply.startsWith("250 "))).toBe(true);
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", duplicates: 7 }]);
    expect(room.model.requests).toHaveLength(1);
  });

  test("without a Message-ID are known by sender, date, subject and text", async () => {
    await using room = await mailroom();
    const raw = (text: string) =>
      Buffer.from(
        `From: ada@example.com\r\nSubject: S\r\nDate: Fri, 03 May 2024 10:00:00 +0000\r\n\r\n${text}\r\n`,
      );
    for (const text of ["one", "one", "two"]) await room.send({ raw: raw(text) });
    expect(await room.activity()).toMatchObject([{ duplicates: 0 }, { duplicates: 1 }]);
  });

  test("in two inboxes are two runs", async () => {
    await using room = await mailroom();
    const { body: other } = await room.owner.post("/inboxes", {});
    await room.send({ ...same });
    await room.send({ ...same, rcpt: other.address });
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done" }, { status: "done" }]);
  });

  test("cannot be planted by a stranger to swallow the owner's mail", async () => {
    await using room = await mailroom();
    await room.send({ ...same, from: BOB });
    await room.send({ ...same });
    await room.send({ ...same, from: BOB });
    expect((await room.activity()).map(({ sender, duplicates }) => [sender, duplicates])).toEqual([
      ["ada@example.com", expect.any(Number)],
      ["bob@example.org", expect.any(Number)],
    ]);
  });
});
