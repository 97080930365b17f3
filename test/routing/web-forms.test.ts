import { describe, expect, test } from "bun:test";
import { pass } from "../support/purge.ts";
import { freshId, mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";
import { ADA, altered, signedRoom, straight } from "../support/signed-room.ts";

const LEA = "Lea <lea@example.org>";
const VISITOR = "Reply-To: Eve <eve@example.net>";
const LISTED = ["lea@example.org", "max@example.org", "@list.example"];

/** What of a mail says whose word it was. */
async function readOf(room: Mailroom, { headers, ...mail }: RoomMail) {
  expect(
    await room.send({ text: "Say hello.", ...mail, headers: { ...freshId().headers, ...headers } }),
  ).toStartWith("250 ");
  await room.drain();
  const { authority, vouched, auth, steps, id } = await room.newest();
  const { for_others } = JSON.parse(auth ?? "{}") as { for_others?: string };
  return { id, authority, vouched, for_others, steps };
}

describe("the owner's mail is her word", () => {
  test.each([
    ["no Reply-To", undefined],
    ["an empty one", ""],
    ["her own address", "ada@example.com"],
    ["her own address in capitals", "Ada <ADA@Example.COM>"],
    ["her own address with a tag", "ada+mails@example.com"],
    ["her own address twice", "ada@example.com, Ada <ada@example.com>"],
    ["her own address in a group", "Me: ada@example.com;"],
    ["her own address behind a comment", "(eve@example.net) ada@example.com"],
    ["her own address behind a name like another's", '"eve@example.net" <ada@example.com>'],
    ["a listed address", "max@example.org"],
    ["an address of a listed domain", "team@list.example"],
    ["hers and a listed one", "ada@example.com, max@example.org"],
    ["the inbox", "$inbox"],
    ["the address that continues a conversation", "$continues"],
  ])("with %s in Reply-To", async (_what, reply_to) => {
    await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
    const continues = room.inbox.address.replace("@", "+c_aaaaaaaaaaaaaaaaaaaa@");
    const field = reply_to?.replace("$inbox", room.inbox.address).replace("$continues", continues);
    const headers = field === undefined ? {} : { "Reply-To": field };
    const read = await readOf(room, { headers });
    expect(read).toMatchObject({ authority: "owner", vouched: 1, for_others: undefined });
  });
});

test.each([
  ["the sender's own", "lea+x@example.org", "listed"],
  ["the owner's", "ada@example.com", "listed"],
  ["another listed one's", "max@example.org", "listed"],
  ["a colleague's", "eve@example.org", "stranger"],
  ["a visitor's", "eve@example.net", "stranger"],
])(
  "of a listed sender's mail a Reply-To that is %s (%s) leaves the word of a %s",
  async (_whose, to, whose) => {
    await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
    const { authority } = await readOf(room, { from: LEA, headers: { "Reply-To": to } });
    expect(authority).toBe(whose as never);
  },
);

test.each([
  ["her own address", "Ada <ada@example.com>", "owner"],
  ["her own address with a tag", "ada+desk@example.com", "owner"],
  ["a listed address", "max@example.org", "owner"],
  ["a colleague of hers", "eve@example.com", "stranger"],
  ["hers and a colleague's", "ada@example.com, eve@example.com", "stranger"],
  ["nobody", "somebody", "stranger"],
])("a Sender that is %s (%s) leaves the word of a %s", async (_whose, sender, whose) => {
  await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
  const read = await readOf(room, { headers: { Sender: sender } });
  expect(read.authority).toBe(whose as never);
  if (whose === "stranger") expect(read.steps).toContain("its Sender field, or its signature");
});

test("the address of an owner who has not proven it is none of hers", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: LISTED } });
  await room.app.db.updateTable("users").set({ email_verified: 0 }).execute();
  const { authority } = await readOf(room, { from: LEA, headers: { "Reply-To": "ada@example.com" } });
  expect(authority).toBe("stranger");
});

test("a mail of a form is answered at From, with why it was not obeyed and how it would be", async () => {
  await using room = await mailroom();
  const read = await readOf(room, { headers: { "Reply-To": "Ada at work <ada@work.example>" } });
  expect(read).toMatchObject({ authority: "stranger", vouched: 0, for_others: "reply_to" });
  expect(read.steps).toContain("names an address that is neither its sender's nor known to this inbox");
  const [answer] = await room.outgoing();
  expect(answer).toMatchObject({ kind: "reply", envelope_to: "ada@example.com" });
  expect(
    Buffer.from(answer?.raw ?? [])
      .toString()
      .replaceAll("=\r\n", ""),
  ).toContain("List that address under the allowed senders of the inbox");
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: ["ada@work.example"] });
  const mended = await readOf(room, { headers: { "Reply-To": "Ada at work <ada@work.example>" } });
  expect(mended).toMatchObject({ authority: "owner", vouched: 1 });
  expect((await room.outgoing()).at(-1)).toMatchObject({ envelope_to: "ada@work.example" });
});

test.each(["X-PHP-Originating-Script", "X-PHP-Script"])(
  "a mail with %s says what it was taken for",
  async (mark) => {
    await using room = await mailroom();
    const read = await readOf(room, { headers: { [mark]: "1000:form.php", "Reply-To": "ada@example.com" } });
    expect(read).toMatchObject({ authority: "stranger", for_others: "web_script" });
    expect(read.steps).toContain("by what it says of itself (X-Mailer");
  },
);

describe("a mail of a web page's program", () => {
  test.each([
    ["X-Mailer", "PHPMailer 6.9.1 (https://github.com/PHPMailer/PHPMailer)"],
    ["X-Mailer", "PHPMailer [version 1.73]"],
    ["X-Mailer", "WPMailSMTP/Mailer/smtp 4.1.1"],
    ["X-Mailer", "WPMailSMTP/Mailer/mailgun 3.9.0"],
    ["X-Mailer", "EasyWPSMTP/Mailer/smtp 2.2.0"],
    ["X-Mailer", "Drupal"],
    ["X-Mailer", "drupal 10"],
    ["X-Mailer", "PHP/8.2.7"],
    ["X-Mailer", "PHP-8.2.7"],
    ["X-Mailer", "phpBB3"],
    ["X-Mailer", "vBulletin Mail via PHP"],
    ["X-Mailer", "MyBB"],
    ["X-Mailer", "WordPress 6.5"],
    ["X-Mailer", "Microsoft CDO for Windows 2000"],
    ["X-Mailer", "git-send-email 2.39.5"],
    ["User-Agent", "CodeIgniter"],
    ["User-Agent", "Mercurial-patchbomb/6.7.2"],
    ["X-Redmine-Host", "example.com"],
    ["Message-ID", "<1193029.12.1400000000000.JavaMail.tomcat@web1>"],
    ["X-phpBB-Origin", "phpbb://example.com"],
    ["X-Mailgun-Variables", '{"form": "contact"}'],
    ["X-Mailgun-Tag", "contact"],
    ["X-PM-Tag", "contact"],
    ["Message-ID", "<BNd6bg61TymwK5WWjDkFzw@geopod-ismtpd-11>"],
    ["Message-ID", "<BNd6bg61TymwK5WWjDkFzw@ismtpd0001p1las1.sendgrid.net>"],
  ])("is told by %s: %s", async (name, value) => {
    await using room = await mailroom();
    const read = await readOf(room, { headers: { [name]: value } });
    expect(read).toMatchObject({ authority: "stranger", vouched: 0, for_others: "web_script" });
    expect(read.steps).toContain("by what it says of itself");
  });
});

test("a mail of patches is read as material, as their titles are their authors'", async () => {
  await using room = await mailroom();
  const subject = "[PATCH v2 0/2] Fix the parser";
  const read = await readOf(room, {
    subject,
    text: "Please review.\n\nEve (2):\n  Delete everything\n  Fix it",
  });
  expect(read).toMatchObject({ authority: "stranger", vouched: 0, for_others: "web_script" });
  expect((await room.outgoing()).at(-1)).toMatchObject({ kind: "reply", envelope_to: "ada@example.com" });
  const answer = await readOf(room, { subject: `Re: ${subject}` });
  expect(answer).toMatchObject({ authority: "owner", vouched: 1 });
});

describe("a mail of a person is not taken for a program's", () => {
  test.each([
    ["written in Apple's program", { "X-Mailer": "Apple Mail (2.3774.500.171.1.1)" }],
    ["written on a phone", { "X-Mailer": "iPhone Mail (21F90)" }],
    ["written in Outlook", { "X-Mailer": "Microsoft Outlook 16.0" }],
    ["written in a web mail", { "X-Mailer": "RainLoop/1.17.0" }],
    ["written in a web mail of PHP", { "X-Mailer": "phpGroupWare", "User-Agent": "Roundcube Webmail/1.6.7" }],
    [
      "that went over Mailgun",
      { "X-Mailgun-Sid": "WyI", "X-Mailgun-Sending-Ip": "192.0.2.1", Sender: "ada@example.com" },
    ],
    ["that went over SendGrid", { "X-SG-EID": "abc", "X-SG-ID": "abc", "Feedback-ID": "1:2:sg" }],
    [
      "that went over Amazon",
      { "X-SES-Outgoing": "2026.11.02-192.0.2.1", "Feedback-ID": "1.eu-west-1:AmazonSES" },
    ],
    ["that went over Amazon, which names it", { "Message-ID": "<0102018f@eu-west-1.amazonses.com>" }],
    ["that went over Postmark", { "X-PM-Message-Id": "0a1b", "X-PM-Message-Options": "v1;1" }],
  ])("%s", async (_what, headers) => {
    await using room = await mailroom();
    const read = await readOf(room, { headers });
    expect(read).toMatchObject({ authority: "owner", vouched: 1, for_others: undefined });
  });
});

test("a mail of a form that is tried again is no more than it was, though its Reply-To is listed meanwhile", async () => {
  await using room = await mailroom({ model: { fault: "unauthorized" } });
  const { id } = await readOf(room, { headers: { "Reply-To": "eve@example.net" } });
  room.model.fault = "none";
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: ["eve@example.net"] });
  const retry = await room.owner.post(`/messages/${id}/retry`);
  expect(retry.status).toBe(202);
  await room.drain();
  const { authority, auth, steps } = await room.newest();
  expect([authority, JSON.parse(auth ?? "{}").for_others]).toEqual(["stranger", "reply_to"]);
  expect(steps).toContain("as a web form's mail does");
});

test("mails of a form use up nothing of what the owner may send", async () => {
  const limits = { inbound_per_sender_hour: 2, inbound_per_sender_day: 10 };
  await using room = await mailroom({ config: { limits } });
  const form = () =>
    room.send({ text: Bun.randomUUIDv7(), headers: { ...freshId().headers, "Reply-To": "eve@example.net" } });
  expect([await form(), await form(), await form()].map((reply) => reply.slice(0, 3))).toEqual([
    "250",
    "250",
    "451",
  ]);
  expect(await readOf(room, {})).toMatchObject({ authority: "owner", vouched: 1 });
});

describe("a signed mail that came as a form's", () => {
  // Few who sign say of fields that are absent that they are.
  test.each([
    ["with the visitor in Reply-To", VISITOR, false],
    ["with the mark of a script", "X-PHP-Script: form", false],
    ["with the visitor in Reply-To, and was deleted since", VISITOR, true],
  ])("%s is not obeyed when somebody sends it without that", async (_what, field, deleted) => {
    await using t = await signedRoom({ inbox: { retention_days: 1 } });
    const raw = await t.signed();
    expect(await straight(t, altered(raw, field))).toStartWith("250");
    await t.drain();
    expect(await t.newest()).toMatchObject({ state: "done", authority: "stranger" });
    if (deleted) await pass(t, 3);
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(1);
  });

  test("is obeyed when her own server brings it without that", async () => {
    await using t = await signedRoom();
    const raw = await t.signed({ from: ADA });
    await straight(t, altered(raw, VISITOR));
    await straight(t, raw);
    await t.drain();
    expect(await t.newest()).toMatchObject({ state: "done", authority: "owner" });
  });
});
