import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dnsRecords } from "../../src/mail/writing/dkim.ts";
import { serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { canRunPostfix, type Postfix, startPostfix } from "./postfix.ts";
import { OWNER, smtpDoor } from "./smtp-door.ts";
import { rawClient } from "./raw-client.ts";
import { freePort } from "../support/free-port.ts";
import { dkimpyPasses, hasDkimpy, hasOpendkim, opendkimPasses } from "../support/verifiers.ts";
import { until } from "../support/until.ts";

const UMLAUT = "jürgen@peer.test";

if (!canRunPostfix) console.log("Postfix is not tried: as root, apt-get install postfix");
if (!hasDkimpy) console.log("dkimpy is not tried: apt-get install python3-dkim python3-nacl");
if (!hasOpendkim) console.log("OpenDKIM is not tried: apt-get install libopendkim11");

describe.skipIf(!canRunPostfix)("with a Postfix between us and the world", () => {
  const stack = new AsyncDisposableStack();
  let door: Awaited<ReturnType<typeof smtpDoor>>;
  let postfix: Postfix;

  beforeAll(async () => {
    const port = await freePort();
    door = stack.use(await smtpDoor({ outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${port}` } }));
    postfix = stack.use(
      await startPostfix({ port, relay: { "mw.test": door.address }, mailboxes: [OWNER, UMLAUT] }),
    );
  });

  afterAll(() => stack.disposeAsync());

  test("a mail comes in over STARTTLS and PIPELINING, and its answer goes out through it", async () => {
    const before = (await postfix.log()).length;
    await postfix.sendmail(
      OWNER,
      door.inbox,
      mail(OWNER, "Quarterly figures", "Summarise the figures.\r\n.dot\r\n"),
    );
    const message = await answered("Quarterly figures");
    expect(message).toMatchObject({ status: "done", sender: OWNER, reply_status: "sent", reply_error: null });
    const [raw] = await rawOf(message.message_id);
    expect(raw).toContain("Received: by postfix.test");
    expect(raw).toContain("Summarise the figures.\r\n.dot\r\n");
    const reply = (await postfix.nextMail(OWNER)).toString("latin1");
    expect(reply).toMatch(/^Subject: Re: Quarterly figures\r$/m);
    expect(reply).toMatch(/^Return-Path: <b\+[a-z0-9]+@mw\.test>\r$/m);
    expect(reply).toMatch(/^Received: from mx\.mw\.test .*\r\n\s+\(using TLSv1\.3 /m);
    const talk = (await postfix.log())
      .slice(before)
      .split("\n")
      .flatMap((line) => / (TLSv1\.3|[<>] .*)/.exec(line)?.[1] ?? []);
    const [encrypted, mailFrom] = [
      talk.indexOf("TLSv1.3"),
      talk.findIndex((line) => line.includes("MAIL FROM")),
    ];
    expect(encrypted).toBeGreaterThan(-1);
    expect(mailFrom).toBeGreaterThan(encrypted);
    // Three commands go out before the first of their answers comes back.
    expect(talk.slice(mailFrom, mailFrom + 5).map((line) => line.replace(/\S+: /, "").slice(0, 9))).toEqual([
      "> MAIL FR",
      "> RCPT TO",
      "> DATA",
      "< 250 2.1",
      "< 250 2.1",
    ]);
  });

  test("the signatures of the answer pass at other people's verifiers behind it", async () => {
    const text =
      "Übersetze das.\r\n" + "Ein langer Satz mit vielen Wörtern, der nicht aufhören will. ".repeat(40);
    await postfix.sendmail(OWNER, door.inbox, mail(OWNER, "Grüße", text));
    await answered("Grüße");
    const reply = await postfix.nextMail(OWNER);
    const records = dnsRecords(await serviceKeys(door.app), "mw.test");
    const altered = Buffer.from(reply.toString("latin1").replace(/^To: .*/m, "To: bob@peer.test"), "latin1");
    expect(altered).not.toEqual(reply);
    if (hasDkimpy) {
      expect(dkimpyPasses(reply, records)).toEqual([true, true]);
      expect(dkimpyPasses(altered, records)).toEqual([false, false]);
    }
    if (hasOpendkim) {
      expect(opendkimPasses(reply, records)).toBe(true);
      expect(opendkimPasses(altered, records)).toBe(false);
    }
  });

  test("addresses and headers in UTF-8 pass in both directions", async () => {
    using client = await rawClient(postfix.address);
    await client.say("EHLO client.test");
    expect(await client.say(`MAIL FROM:<${UMLAUT}> SMTPUTF8`)).toStartWith("250");
    expect(await client.say(`RCPT TO:<${door.inbox}>`)).toStartWith("250");
    expect(await client.say("DATA")).toStartWith("354");
    client.write(Buffer.from(`${mail(UMLAUT, "Grüße aus Köln", "Hallo!\r\n")}.\r\n`));
    expect(await client.reply()).toStartWith("250");
    const message = await answered("Grüße aus Köln");
    expect(message).toMatchObject({ status: "done", sender: UMLAUT, reply_status: "sent" });
    const reply = (await postfix.nextMail(UMLAUT)).toString("latin1");
    expect(Buffer.from(reply, "latin1").toString()).toContain(`Delivered-To: ${UMLAUT}`);
    if (hasDkimpy) {
      const records = dnsRecords(await serviceKeys(door.app), "mw.test");
      expect(dkimpyPasses(Buffer.from(reply, "latin1"), records)).toEqual([true, true]);
    }
  });

  test("an answer that it returns later is marked as bounced, and the return is not answered", async () => {
    const nobody = "nobody@peer.test";
    await postfix.sendmail(nobody, door.inbox, mail(nobody, "From nowhere", "Is anybody there?\r\n"));
    const sent = await answered("From nowhere");
    expect(sent).toMatchObject({ status: "done", reply_status: "sent" });
    const bounced = async (): Promise<boolean> =>
      (await bySubject("From nowhere"))?.reply_status === "bounced";
    await until(bounced, undefined, postfix.log);
    await door.drain();
    const message = await bySubject("From nowhere");
    expect(message.reply_error).toContain("5.1.1");
    expect(message.status).toBe("done");
    const outgoing = await door.app.db
      .selectFrom("outgoing_mails")
      .select(["envelope_to", "status"])
      .where("envelope_to", "=", nobody)
      .execute();
    expect(outgoing).toEqual([{ envelope_to: nobody, status: "bounced" }]);
  });

  test("a recipient that is not ours is refused to it, and it tells its own user", async () => {
    await postfix.sendmail(OWNER, "no-such-inbox@mw.test", mail(OWNER, "Lost", "Hello?\r\n"));
    const report = (await postfix.nextMail(OWNER)).toString();
    expect(report).toContain("550 5.1.1 There is no such address here");
    expect(await bySubject("Lost")).toBeUndefined();
  });

  // oxlint-disable-next-line typescript/no-explicit-any
  async function bySubject(subject: string): Promise<any> {
    const { items } = (await door.owner.get("/messages")).body;
    return items.find((item: { subject: string }) => item.subject === subject);
  }

  /** The message of this subject once it has come in and been worked on. */
  // oxlint-disable-next-line typescript/no-explicit-any
  async function answered(subject: string): Promise<any> {
    await until(async () => (await bySubject(subject)) !== undefined, undefined, postfix.log);
    await door.drain();
    return bySubject(subject);
  }

  async function rawOf(message_id: string): Promise<string[]> {
    const rows = await door.app.db
      .selectFrom("messages")
      .innerJoin("raw_mails", "raw_mails.id", "messages.raw_mail_id")
      .select("raw_mails.bytes")
      .where("messages.id", "=", message_id)
      .execute();
    return rows.map(({ bytes }) => Buffer.from(bytes ?? []).toString("latin1"));
  }
});

function mail(from: string, subject: string, text: string): string {
  const head = `From: ${from}\r\nMessage-ID: <${Bun.randomUUIDv7()}@peer.test>\r\nSubject: ${subject}\r\nMIME-Version: 1.0`;
  return `${head}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${text}`;
}
