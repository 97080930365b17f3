import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";

describe("a notification to the bounce address of a reply", () => {
  const AUTHORS: [claim: string, from: string[]][] = [
    ["without a domain in its From", ["From: MAILER-DAEMON"]],
    ["with an empty From", ["From: <>"]],
    ["without a From", []],
    ["with an ordinary From", ["From: Mail System <MAILER-DAEMON@mail.example.com>"]],
  ];
  test.each(AUTHORS)("%s marks the reply as bounced", async (_claim, from) => {
    await using room = await mailroom();
    const to = await answered(room);
    expect(await deliver(room.door, { from: "", to, raw: notification({ from }) })).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "bounced", reply_error: expect.stringContaining("5.1.1") },
    ]);
  });

  test("is believed without asking the DNS about its sender", async () => {
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: { dns: { servers: [dns.address] } } });
    const to = await answered(room);
    room.app.config.smtp.trusted_networks = [];
    dns.fault("*", "servfail");
    expect(await deliver(room.door, { from: "", to, raw: notification({}) })).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    expect(dns.queries).toEqual([]);
  });

  test("of a final failure after days of retries marks it too (class 4)", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    await deliver(room.door, { from: "", to, raw: notification({ status: "4.4.7" }) });
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
  });

  const HARMLESS: [claim: string, report: Parameters<typeof notification>[0]][] = [
    ["of a delay", { action: "delayed", status: "4.4.1" }],
    ["of a delivery", { action: "delivered", status: "2.0.0" }],
    ["that is an absence note", { body: "From: ada@example.com\r\nSubject: Away\r\n\r\nI am away.\r\n" }],
    ["that holds no report", { body: "From: MAILER-DAEMON\r\n\r\nStatus: 5.1.1\r\n" }],
  ];
  test.each(HARMLESS)("%s is taken and changes nothing", async (_claim, report) => {
    await using room = await mailroom();
    const to = await answered(room);
    expect(await deliver(room.door, { from: "", to, raw: notification(report) })).toStartWith("250 ");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
    expect(room.model.requests).toHaveLength(1);
    expect(await room.outgoing()).toHaveLength(1);
  });

  test("is refused when nobody of ours made the address", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const forged = to.replace(/.@/, (end) => (end === "a@" ? "b@" : "a@"));
    expect(await deliver(room.door, { from: "", to: forged, raw: notification({}) })).toStartWith(
      "550 5.1.1 ",
    );
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
  });
});

/** One mail is answered: the envelope sender of the answer. */
async function answered(room: Mailroom): Promise<string> {
  await room.send({});
  await room.drain();
  return (await room.outgoing())[0]?.envelope_from ?? "";
}
