import { expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom, type RoomMail, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";

const SAME = { "Message-ID": "<1764000000@example.com>" };
const DATED = { ...SAME, Date: "Thu, 15 Jan 2026 10:00:00 +0000" };

async function became(room: Mailroom): Promise<unknown[]> {
  await room.drain();
  const rows = room.app.db.selectFrom("messages").select(["subject", "state", "duplicates"]).orderBy("id");
  return (await rows.execute()).map(({ subject, state, duplicates }) => [subject, state, duplicates]);
}

async function takeAll(room: Mailroom, ...mails: RoomMail[]): Promise<void> {
  for (const mail of mails) {
    expect(await room.send(mail)).toStartWith("250");
    await room.drain();
  }
}

test("mails with other words and one Message-ID are each worked on, and once", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
  const from = "Bob <bob@example.org>";
  const mails = [
    { from, headers: SAME, subject: "One", text: "Do the first." },
    { from, headers: SAME, subject: "One", text: "Do the second." },
    { from, headers: SAME, subject: "Two", text: "Do the second." },
  ];
  await takeAll(room, ...mails, ...mails, ...mails);
  expect(await became(room)).toEqual([
    ["One", "done", 2],
    ["One", "done", 2],
    ["Two", "done", 2],
  ]);
  expect(room.model.requests).toHaveLength(3);
});

test("one that failed is tried again although another one with its Message-ID is done", async () => {
  let fails = true;
  const reply = () => (fails ? new Response("{}", { status: 401 }) : "Done.");
  await using room = await mailroom({ model: { reply } });
  await takeAll(room, { headers: SAME, subject: "One", text: "Do the first." });
  const { id, state } = await room.newest();
  expect(state).toBe("failed");
  fails = false;
  await takeAll(room, { headers: SAME, subject: "Two", text: "Do the second." });
  expect((await room.newest()).state).toBe("done");
  expect((await room.owner.post(`/messages/${id}/retry`)).status).toBe(202);
  await room.drain();
  expect(await room.newest()).toMatchObject({ subject: "One", state: "done" });
});

test("one that others bring once more with other words does nothing, whichever comes first", async () => {
  await using dns = await startDnsServer(signingZone("example.com"));
  const config = { dns: { servers: [dns.address] }, smtp: { trusted_networks: ["127.0.0.2/32"] } };
  await using room = await mailroom({ config });
  const mail = rawMail({
    from: "Ada <ada@example.com>",
    to: room.inbox.address,
    subject: "One",
    text: "Do the first.",
    headers: DATED,
  });
  const raw = await signedBy("example.com", mail);
  const spaced = Buffer.from(raw.toString("latin1").replace("Do the first.", "Do  the first."), "latin1");
  const by_eve = { mail_from: "eve@example.net", raw: spaced };
  await takeAll(
    room,
    by_eve,
    { raw, local_address: "127.0.0.2" },
    { raw, local_address: "127.0.0.2" },
    by_eve,
  );
  expect(await became(room)).toEqual([["One", "done", 3]]);
});

test("the same words every day, without a Message-ID or a Date, are worked on every day", async () => {
  await using room = await mailroom();
  const raw = Buffer.from(
    `From: Ada <ada@example.com>\r\nTo: ${room.inbox.address}\r\nSubject: Backup\r\n\r\nIs it ok?\r\n`,
  );
  await takeAll(room, { raw }, { raw });
  room.clock.advance("1d");
  await takeAll(room, { raw }, { raw });
  expect(await became(room)).toEqual([
    ["Backup", "done", 1],
    ["Backup", "done", 1],
  ]);
});

test.each([["in one transaction"], ["one after the other"]])(
  "a mail for two tags of an inbox that comes for both %s has both",
  async (how) => {
    await using room = await mailroom();
    const [local, domain] = room.inbox.address.split("@");
    const [one, other] = [`${local}+one@${domain}`, `${local}+two@${domain}`];
    const mail = { to: `${one}, ${other}`, headers: SAME, text: "Do it." };
    await takeAll(
      room,
      ...(how === "in one transaction"
        ? [{ ...mail, rcpt: [one, other] }]
        : [
            { ...mail, rcpt: one },
            { ...mail, rcpt: other },
          ]),
    );
    expect(await room.activity()).toMatchObject([{ tags: ["one", "two"] }]);
  },
);
