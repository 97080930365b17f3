import { describe, expect, test } from "bun:test";
import { mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";
import { notification, rawMail } from "../support/mails.ts";
import { altered, BOB, signedRoom } from "../support/signed-room.ts";
import { smtpClient } from "../support/smtp-client.ts";

const LIST = { headers: { "List-Id": "<news.example.net>" } };
const ROWS = 200;

/** So many mails in one session, which is quicker; each has its number for `%n`. */
async function flood(room: Mailroom, count: number, mail: RoomMail & { raw: Buffer }): Promise<string> {
  await using client = await smtpClient(room.door);
  await client.say("EHLO client.example");
  let reply = "";
  for (let sent = 0; sent < count; sent += 1) {
    reply = await client.deliver({
      from: mail.mail_from ?? "eve@example.net",
      to: mail.rcpt ?? room.inbox.address,
      raw: Buffer.from(mail.raw.toString("latin1").replace("%n", String(sent)), "latin1"),
    });
    await client.say("RSET");
  }
  return reply;
}

const NO_LIMITS = {
  plans: { team: { inbound_per_hour: 0 } },
  limits: { inbound_per_sender_hour: 0, inbound_per_sender_day: 0 },
};

async function allOf(room: Mailroom): Promise<{ sender: string | null; mails: number; reason: string }[]> {
  return room.app.db
    .selectFrom("messages")
    .select(["sender", "mails", "reason", "state", "error", "id"])
    .orderBy("id", "desc")
    .$castTo<{ sender: string | null; mails: number; reason: string }>()
    .execute();
}

describe("when an hour's rows for mail that is left out are used up", () => {
  test.each<[string, RoomMail & { raw: Buffer }, reason: string, words: string]>([
    [
      "bounces",
      { raw: notification({ from: ["From: <mailer-daemon@example.net>"] }) },
      "bounce",
      "reports about mail",
    ],
    [
      "mail of a list",
      { raw: rawMail({ from: "eve@example.net", ...LIST }) },
      "mailing_list",
      "mailing lists",
    ],
    [
      "automatic answers",
      { raw: rawMail({ from: "eve@example.net", headers: { "Auto-Submitted": "auto-replied" } }) },
      "auto_reply",
      "answers of machines",
    ],
    [
      "texts that come again and again",
      {
        raw: rawMail({ from: "eve@example.net", text: "The same.", headers: { "Message-ID": "<%n@x.net>" } }),
      },
      "loop_cap",
      "the same text too often",
    ],
  ])("by %s, the rest is counted in one row", async (_what, mail, reason, words) => {
    const limits = { ...NO_LIMITS.limits, same_body_per_hour: 1 };
    await using room = await mailroom({ config: { ...NO_LIMITS, limits } });
    // The first of the same text is worked on.
    const worked_on = reason === "loop_cap" ? 1 : 0;
    expect(await flood(room, worked_on + ROWS + 43, mail)).toStartWith("250");
    const rows = (await allOf(room)).filter((row) => row.reason === reason);
    expect(rows).toHaveLength(ROWS + 1);
    const summary = rows.find(({ mails }) => mails > 1);
    expect(summary).toMatchObject({ mails: 43, reason, sender: null, state: "skipped" });
    const [newest] = await room.activity();
    expect(newest).toMatchObject({
      status: "rejected",
      reason,
      mails: 43,
      sender: null,
      subject: null,
      auth: null,
      error: expect.stringMatching(
        new RegExp(
          `^skipped: 43 mails more, not listed one by one, were left out in the hour from 12:00 UTC: .*${words}`,
        ),
      ),
    });
    const story = await room.owner.get(`/messages/${newest.message_id}`);
    expect(story).toMatchObject({ status: 200, body: { mails: 43, content: null, raw_available: false } });
    expect((await room.owner.get(`/v1/messages/${newest.message_id}`)).body).toMatchObject({
      status: "skipped",
    });
    expect((await room.owner.post(`/messages/${newest.message_id}/retry`)).status).toBe(409);
  });

  test("mail of the owner that meets a cap has its row all the same; so has a listed sender's", async () => {
    await using room = await mailroom({
      config: { ...NO_LIMITS, limits: { ...NO_LIMITS.limits, same_body_per_hour: 1 } },
      inbox: { allowlist_senders: ["bob@example.org"] },
    });
    for (const from of ["ada@example.com", BOB]) await room.send({ from, text: "Once." });
    await room.drain();
    await flood(room, ROWS + 2, { raw: notification({ from: ["From: <mailer-daemon@example.net>"] }) });
    for (const from of ["ada@example.com", BOB])
      expect(await room.send({ from, text: "Once." })).toStartWith("250");
    const rows = await room.activity();
    expect(rows.slice(0, 2)).toMatchObject([
      { reason: "loop_cap", sender: "bob@example.org", mails: 1 },
      { reason: "loop_cap", sender: "ada@example.com", mails: 1 },
    ]);
  });

  test("what machines of the owner write has its rows too", async () => {
    await using room = await mailroom({ config: NO_LIMITS });
    await flood(room, ROWS + 2, { raw: notification({ from: ["From: <mailer-daemon@example.net>"] }) });
    await room.send({ subject: "I am away", headers: { "Auto-Submitted": "auto-replied" } });
    await room.send({ subject: "Done", headers: { "Auto-Submitted": "auto-generated" } });
    expect(await room.activity()).toMatchObject([
      { reason: "auto_submitted", sender: "ada@example.com", subject: "Done" },
      { reason: "auto_reply", sender: "ada@example.com", subject: "I am away" },
      ...Array.from({ length: 48 }, () => ({})),
    ]);
  });

  test("mail that is the owner's by its words alone is counted, and so is what somebody sends again", async () => {
    await using t = await signedRoom({
      config: { ...NO_LIMITS, limits: { ...NO_LIMITS.limits, same_body_per_hour: 1 } },
    });
    const bounce = notification({ from: ["From: <mailer-daemon@example.net>"] });
    await flood(t, ROWS, { raw: bounce });
    const rule = { limit: ROWS, window_seconds: 3_600 };
    while (t.app.limiter.take(`skipped:${t.inbox.id}:proven`, rule).ok);
    // Not proven at all, proven and altered, and as it was.
    await t.again(
      rawMail({
        from: "ada@example.com",
        to: t.inbox.address,
        headers: { "Auto-Submitted": "auto-generated" },
      }),
    );
    const own = await t.signed({ headers: { "Auto-Submitted": "auto-generated" } });
    for (let count = 0; count < 3; count += 1) await t.again(altered(own));
    for (let count = 0; count < 3; count += 1) await t.again(own);
    const rows = await allOf(t);
    expect(rows).toHaveLength(ROWS + 2);
    expect(rows.slice(0, 2)).toMatchObject([
      { reason: "auto_submitted", sender: "ada@example.com", mails: 1 },
      { reason: "auto_submitted", sender: null, mails: 4 },
    ]);
    expect((await t.newest()).duplicates).toBe(2);
  });

  test("each reason and each hour has one row of its own, and one event of the first", async () => {
    await using room = await mailroom({ config: NO_LIMITS });
    const bounce = { raw: notification({ from: ["From: <mailer-daemon@example.net>"] }) };
    const list = { raw: rawMail({ from: "eve@example.net", ...LIST }) };
    await flood(room, ROWS, bounce);
    await flood(room, 2, list);
    await flood(room, 3, bounce);
    await flood(room, 2, list);
    const summaries = async () =>
      (await allOf(room)).filter(({ sender }) => sender === null).map(({ reason, mails }) => [reason, mails]);
    expect(await summaries()).toEqual([
      ["bounce", 3],
      ["mailing_list", 4],
    ]);
    room.clock.advance("1h");
    await flood(room, ROWS + 1, bounce);
    expect(await summaries()).toEqual([
      ["bounce", 1],
      ["bounce", 3],
      ["mailing_list", 4],
    ]);
    const events = await room.app.db
      .selectFrom("messages")
      .innerJoin("events", "events.message_id", "messages.id")
      .select("events.id")
      .where("messages.sender", "is", null)
      .execute();
    expect(events.length).toBeLessThanOrEqual(3);
  });
});

describe("when an hour's rows for refused mail are used up", () => {
  test("the rest is counted, also of a mail that another inbox takes", async () => {
    await using room = await mailroom({
      config: NO_LIMITS,
      inbox: { allowlist_senders: ["bob@example.org"] },
    });
    const { body: open } = await room.owner.post("/inboxes", {});
    const raw = rawMail({ from: "eve@example.net" });
    expect(await flood(room, ROWS, { raw })).toStartWith("550 5.7.1");
    const both = { raw, rcpt: [room.inbox.address, open.address] };
    expect(await flood(room, 2, both)).toStartWith("250");
    const rows = await room.app.db
      .selectFrom("messages")
      .select(["inbox_id", "state", "mails", "sender", "duplicates"])
      .orderBy("id", "desc")
      .limit(2)
      .execute();
    expect(rows).toContainEqual(
      expect.objectContaining({ inbox_id: room.inbox.id, state: "rejected", mails: 2, sender: null }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({ inbox_id: open.id, state: "received", duplicates: 1 }),
    );
    const { body } = await room.owner.get("/messages?status=rejected&limit=100");
    expect(body.items).toContainEqual(
      expect.objectContaining({
        mails: 2,
        reason: "not_allowlisted",
        error: expect.stringMatching(/^2 mails more, not listed one by one, were refused in the hour from/),
      }),
    );
  });
});

describe("mail that is taken for an address that is no inbox", () => {
  const dropped = async (room: Mailroom) => room.app.metrics.counted("mailwright_mails_dropped_total");
  const reasonOf = async (room: Mailroom) =>
    (await dropped(room)).map(({ labels, value }) => [labels["reason"], value]);

  test("is counted where it is a report about nothing of ours", async () => {
    await using room = await mailroom();
    await room.send({});
    await room.drain();
    const [answer] = await room.outgoing();
    const rcpt = answer?.envelope_from ?? "";
    const report = { mail_from: "", rcpt };
    expect(await room.send({ ...report, raw: notification({ action: "relayed" }) })).toStartWith("250");
    expect(await reasonOf(room)).toEqual([["bounce", 1]]);
    await room.send({
      ...report,
      mail_from: "x@example.org",
      raw: notification({ from: ["From: <mailer-daemon@example.net>"], action: "relayed" }),
    });
    expect(await reasonOf(room)).toEqual([["bounce", 2]]);
    await room.send({ ...report, raw: notification() });
    expect(await reasonOf(room)).toEqual([["bounce", 2]]);
  });

  test("is counted where a machine wrote it to the operator", async () => {
    await using room = await mailroom();
    const rcpt = `postmaster@${room.app.config.smtp.domain}`;
    await room.send({ rcpt, headers: { "Auto-Submitted": "auto-generated" } });
    await room.send({ rcpt, mail_from: "", raw: notification() });
    expect(await reasonOf(room)).toEqual([
      ["role_machine", 1],
      ["role_report", 1],
    ]);
  });

  test("that is no report at all is counted as refused, also beside one that is taken", async () => {
    await using room = await mailroom();
    await room.send({});
    await room.drain();
    const [answer] = await room.outgoing();
    const rcpt = [room.inbox.address, answer?.envelope_from ?? ""];
    expect(await room.send({ rcpt, text: "both" })).toStartWith("250");
    const refused = room.app.metrics.counted("mailwright_mails_refused_total");
    expect(refused).toMatchObject([{ labels: { reason: "reports_only" }, value: 1 }]);
  });
});
