import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dnsRecords } from "../../src/mail/writing/dkim.ts";
import { createAuthority } from "../support/authority.ts";
import { testKeys } from "../support/keys.ts";
import { canRunExim, type Exim, startExim } from "./exim.ts";
import { canRunPostfix, type Postfix, startPostfix } from "./postfix.ts";
import { canMakeNet, type PrivateNet, startNet } from "./private-net.ts";
import { smtpDoor } from "./smtp-door.ts";
import { until } from "../support/until.ts";

const ANN = "ann@postfix.test";
const EVE = "eve@exim.test";

if (!canMakeNet) console.log("The private net is not tried: as root, apt-get install bind9 dnsmasq-base");
if (!canRunPostfix) console.log("Postfix is not tried: as root, apt-get install postfix");
if (!canRunExim)
  console.log(
    "Exim is not tried: as root, apt-get download exim4-base exim4-daemon-light, dpkg -x each to $EXIM_ROOT, apt-get install libgnutls-dane0 libidn12, adduser --system Debian-exim",
  );

describe.skipIf(!canMakeNet || !canRunPostfix)("in a net with a DNS of its own", () => {
  const stack = new AsyncDisposableStack();
  let net: PrivateNet;
  let door: Awaited<ReturnType<typeof smtpDoor>>;
  let postfix: Postfix;
  let exim: Exim;
  let policies_served = 0;

  beforeAll(async () => {
    const authority = await createAuthority();
    const own = await authority.issue("mx.exim.test");
    const keys = dnsRecords(await testKeys(), "mw.test");
    net = stack.use(
      await startNet(({ address }) => [
        ...domain("mw", address("us"), keys),
        ...domain("postfix", address("postfix")),
        '_mta-sts.postfix TXT "v=STSv1; id=1;"',
        `mta-sts.postfix A ${address("postfix")}`,
        ...domain("exim", address("exim")),
        `_25._tcp.mx.exim TLSA 3 1 1 ${own.spki}`,
        // As if somebody had put another certificate in between.
        `twisted MX 10 mx.twisted`,
        `mx.twisted A ${address("postfix")}`,
        `_25._tcp.mx.twisted TLSA 3 1 1 ${authority.spki}`,
        "silent MX 0 .",
      ]),
    );
    const host = await authority.issue("mta-sts.postfix.test");
    const policy = "version: STSv1\r\nmode: enforce\r\nmx: mx.postfix.test\r\nmax_age: 86400\r\n";
    const server = Bun.serve({
      hostname: net.address("postfix"),
      port: 443,
      tls: { key: host.key, cert: host.cert },
      fetch: () => {
        policies_served += 1;
        return new Response(policy, { headers: { "content-type": "text/plain" } });
      },
    });
    stack.defer(() => server.stop(true));
    const us = net.address("us");
    door = stack.use(
      await smtpDoor(
        {
          smtp: { listen: `${us}:25`, trusted_networks: [] },
          outbound: { mode: "direct" },
          dns: { servers: [net.name_server] },
          egress: { allow: ["127.0.0.0/8"] },
        },
        { ca: authority.cert },
      ),
    );
    const peer = net.address("postfix");
    postfix = stack.use(
      await startPostfix({
        host: peer,
        port: 25,
        relay: {},
        mailboxes: [ANN],
        certificate: await authority.issue("mx.postfix.test"),
        prefix: net.prefix,
        settings: {
          myhostname: "mx.postfix.test",
          smtp_bind_address: peer,
          smtpd_tls_security_level: "encrypt",
          mynetworks: `${peer}/32`,
          debug_peer_list: "",
          smtpd_recipient_restrictions: "reject_unauth_destination",
        },
      }),
    );
    if (canRunExim)
      exim = stack.use(
        await startExim({
          address: net.address("exim"),
          domain: "exim.test",
          certificate: own,
          mailboxes: ["eve"],
          prefix: net.prefix,
        }),
      );
  }, 60_000);

  afterAll(() => stack.disposeAsync());

  test("Postfix finds us by MX, is known by SPF, and gets the answer in TLS by its MTA-STS policy", async () => {
    await postfix.sendmail(ANN, door.inbox, mail(ANN, "From Postfix"));
    const message = await answered("From Postfix", postfix.log);
    expect(message).toMatchObject({
      status: "done",
      reply_status: "sent",
      auth: { spf: "pass", dmarc: "pass" },
    });
    const reply = (await postfix.nextMail(ANN)).toString("latin1");
    expect(reply).toMatch(/^Received: from mx\.mw\.test .*\r\n\s+\(using TLSv1\.3 /m);
    expect(policies_served).toBe(1);
    const rows = await door.app.db.selectFrom("transport_policies").selectAll().execute();
    expect(rows).toMatchObject([{ domain: "postfix.test", mode: "enforce" }]);
  });

  test.skipIf(!canRunExim)(
    "Exim finds us by MX, gets the answer by the key in its signed DNS, and finds our signatures good",
    async () => {
      await exim.sendmail(EVE, door.inbox, mail(EVE, "From Exim"));
      const message = await answered("From Exim", exim.log);
      expect(message).toMatchObject({ status: "done", reply_status: "sent", auth: { spf: "pass" } });
      const reply = await exim.nextMail("eve", "Re: From Exim");
      expect(reply).toMatch(/with esmtps\s+\(TLS1\.3\)/);
      const id = /^\s+id (\S+)$/m.exec(reply)?.[1] ?? "none";
      const verdicts = (await exim.log())
        .split("\n")
        .filter((line) => line.includes(`${id} DKIM: d=mw.test `));
      expect(verdicts.filter((line) => line.includes("[verification succeeded]"))).toHaveLength(2);
    },
  );

  test.skipIf(!canRunExim)("a peer that greylists gets the answer at the second try", async () => {
    const grey = "grey@exim.test";
    await exim.sendmail(grey, door.inbox, mail(grey, "Greylisted"));
    const message = await answered("Greylisted", exim.log);
    expect(message).toMatchObject({
      reply_status: "deferred",
      reply_error: expect.stringContaining("Greylisted"),
    });
    door.clock.advance("60s");
    await door.drain();
    expect(await bySubject("Greylisted")).toMatchObject({ reply_status: "sent", reply_error: null });
    expect(await exim.nextMail("grey")).toContain("Re: Greylisted");
  });

  // Exim says 5.0.0 of its own addresses, which may mean anything.
  const RETURNED: [peer: string, address: string, is_dead: boolean][] = [
    ["Postfix", "nobody@postfix.test", true],
    ["Exim", "dead@exim.test", false],
  ];
  for (const [peer, address, is_dead] of RETURNED)
    test.skipIf(peer === "Exim" && !canRunExim)(
      `an answer that ${peer} returns is marked as bounced, and is counted against its address`,
      async () => {
        const subject = `Returned by ${peer}`;
        const { sendmail, log } = peer === "Exim" ? exim : postfix;
        await sendmail(address, door.inbox, mail(address, subject));
        await answered(subject, log);
        await until(async () => (await bySubject(subject))?.reply_status === "bounced", undefined, log);
        expect((await bySubject(subject)).reply_error).toContain("5.");
        const rows = await door.app.db
          .selectFrom("suppressions")
          .select("suppressed_at")
          .where("address", "=", address)
          .execute();
        expect(rows.map(({ suppressed_at }) => suppressed_at !== null)).toEqual([is_dead]);
      },
    );

  test("a server with another certificate than its signed DNS names is given nothing", async () => {
    const outcome = await sendTo("eve@twisted.test");
    expect(outcome).toMatchObject({ status: "deferred", enhanced: "4.7.5" });
    expect(outcome.response).toContain("not the one that its DNS names");
  });

  test("a domain that takes no mail, and one that is not there, end the attempts", async () => {
    expect(await sendTo("eve@silent.test")).toMatchObject({ status: "failed", enhanced: "5.1.10" });
    expect(await sendTo("eve@nowhere.test")).toMatchObject({ status: "failed", enhanced: "5.1.2" });
  });

  test("who is not in the SPF record of a domain that asks for refusal is refused", async () => {
    const before = (await postfix.log()).length;
    await postfix.sendmail(EVE, door.inbox, mail(EVE, "Forged"));
    await until(
      async () => (await postfix.log()).slice(before).includes("status=bounced"),
      undefined,
      postfix.log,
    );
    expect((await postfix.log()).slice(before)).toContain("5.7.26");
    expect((await bySubject("Forged"))?.status).toBe("rejected");
  });

  function sendTo(envelope_to: string) {
    return door.app.sender.send({ raw: Buffer.from(mail(ANN, "x")), envelope_from: ANN, envelope_to });
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async function bySubject(subject: string): Promise<any> {
    const { items } = (await door.owner.get("/messages")).body;
    return items.find((item: { subject: string }) => item.subject === subject);
  }

  // oxlint-disable-next-line typescript/no-explicit-any
  async function answered(subject: string, log: () => Promise<string>): Promise<any> {
    await until(async () => (await bySubject(subject)) !== undefined, undefined, log);
    await door.drain();
    return bySubject(subject);
  }
});

/** A domain with one server, which is the only one that may send its mail. */
function domain(name: string, address: string, keys: { name: string; value: string }[] = []): string[] {
  return [
    `${name} MX 10 mx.${name}`,
    `mx.${name} A ${address}`,
    `${name} TXT "v=spf1 ip4:${address} -all"`,
    `_dmarc.${name} TXT "v=DMARC1; p=reject"`,
    ...keys.map(({ name: owner, value }) => `${owner}. TXT ${strings(value)}`),
  ];
}

function strings(text: string): string {
  return (text.match(/.{1,255}/g) ?? []).map((part) => `"${part}"`).join(" ");
}

function mail(from: string, subject: string): string {
  const id = Bun.randomUUIDv7();
  return `From: ${from}\r\nMessage-ID: <${id}@${from.split("@")[1]}>\r\nSubject: ${subject}\r\n\r\nPlease answer ${id}.\r\n`;
}
