import { expect, test } from "bun:test";
import { sql } from "kysely";
import { takeRawMail } from "../../src/inbound/raw-mail.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom, type RoomMail, signedBy, signingZone } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { rawMail } from "../support/mails.ts";

const HEADERS = { "Message-ID": "<both@example.com>" };

async function states(room: Mailroom): Promise<unknown[]> {
  return room.app.db.selectFrom("messages").select(["inbox_id", "state"]).orderBy("id").execute();
}

test("a mail for two inboxes that cannot be kept for one of them is taken for neither, and once for both when it comes again", async () => {
  await using room = await mailroom();
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  const mail = { rcpt: [room.inbox.address, other.address], headers: HEADERS };
  await sql`create trigger no_room before insert on messages when new.inbox_id = ${sql.lit(other.id)}
    begin select raise(abort, 'no room'); end`.execute(room.app.db);
  expect(await room.send(mail)).toStartWith("451");
  expect(await states(room)).toEqual([]);
  for (const table of ["jobs", "raw_mails"] as const)
    expect([table, ...(await room.app.db.selectFrom(table).select("id").execute())]).toEqual([table]);
  await sql`drop trigger no_room`.execute(room.app.db);
  // The sender's server comes twice, as where the answer gets lost.
  for (let count = 0; count < 2; count += 1) expect(await room.send(mail)).toStartWith("250");
  await room.drain();
  expect(await states(room)).toEqual([
    { inbox_id: room.inbox.id, state: "done" },
    { inbox_id: other.id, state: "done" },
  ]);
  expect(room.model.requests).toHaveLength(2);
  expect(await room.app.db.selectFrom("raw_mails").selectAll().execute()).toHaveLength(1);
});

const LISTS = { label: "Other", allowlist_senders: ["bob@example.org"] };
const CAROL = "Carol <carol@example.net>";

/** What is mailed once a mail has come for the inbox and another one, which takes mail of Bob alone. */
async function mailed(
  room: Mailroom,
  mail: RoomMail,
): Promise<{ other: string; sent: unknown[]; text: string }> {
  const { body } = await room.owner.post("/inboxes", LISTS);
  expect(await room.send({ rcpt: [room.inbox.address, body.address], ...mail })).toStartWith("250");
  await room.drain();
  const all = await room.outgoing();
  const notice = all.find(({ kind }) => kind === "notice");
  return {
    other: body.address,
    sent: all.map(({ kind, envelope_from, envelope_to }) => [kind, envelope_from === "", envelope_to]),
    text: Buffer.from(notice?.raw ?? "")
      .toString()
      .replaceAll("=\r\n", ""),
  };
}

test("a proven sender is told for which inbox a mail was refused that another one took", async () => {
  await using sink = await startSmtpSink();
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
  const { other, sent, text } = await mailed(room, { from: CAROL });
  expect(sink.mails).toHaveLength(2);
  expect(sent.toSorted()).toEqual([
    ["notice", true, "carol@example.net"],
    ["reply", false, "carol@example.net"],
  ]);
  expect(text).toContain(`Your mail was not taken for ${other}`);
  expect(text).toContain("This address accepts mail from listed senders only.");
  const refused = (await room.activity()).find(({ status }) => status === "rejected");
  expect(refused).toMatchObject({ reason: "not_allowlisted", reply_status: "sent" });
});

test.each<[string, RoomMail]>([
  ["a program", { from: CAROL, headers: { ...HEADERS, "Auto-Submitted": "auto-replied" } }],
  ["a mailing list", { from: CAROL, headers: { ...HEADERS, "List-Id": "<all.example.net>" } }],
])("%s is told nothing of a refusal by one of two inboxes", async (_who, mail) => {
  await using room = await mailroom();
  expect((await mailed(room, mail)).sent).toEqual([]);
});

test("a sender whom nothing proves, in whose name anybody can write, is told nothing of such a refusal", async () => {
  await using dns = await startDnsServer(signingZone("example.net"));
  const config = { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } };
  await using room = await mailroom({
    config,
    inbox: { inbound_policy: { process_unauthenticated: true, reply_to_unauthenticated: true } },
  });
  const { sent } = await mailed(room, { from: CAROL });
  expect(sent).toEqual([["reply", false, "carol@example.net"]]);
  const raw = await signedBy("example.net", rawMail({ from: CAROL, to: room.inbox.address, text: "Again" }));
  expect((await mailed(room, { from: CAROL, raw })).sent).toContainEqual([
    "notice",
    true,
    "carol@example.net",
  ]);
});

test("a refusal by every inbox stays one of the session", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
  const { body } = await room.owner.post("/inboxes", LISTS);
  expect(await room.send({ from: CAROL, rcpt: [room.inbox.address, body.address] })).toStartWith("550 5.7.1");
  await room.drain();
  expect(await room.outgoing()).toEqual([]);
});

test("whoever hands a mail in over HTTP has the answer for each, and nobody is mailed", async () => {
  await using room = await mailroom();
  const { body: other } = await room.owner.post("/inboxes", LISTS);
  const envelope = {
    mail_from: "carol@example.net",
    rcpt_to: [room.inbox.address, other.address],
    remote_ip: "127.0.0.1",
    helo: "client.example",
  };
  const answers = await takeRawMail(room.app, rawMail({ from: CAROL, to: room.inbox.address }), envelope);
  expect(answers.map(({ code }) => code)).toEqual([250, 550]);
  await room.drain();
  expect((await room.outgoing()).map(({ kind }) => kind)).toEqual(["reply"]);
});
