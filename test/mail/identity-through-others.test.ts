import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { sealMessage } from "mailauth";
import { findingsOf, readArcResults, readAuthResults } from "../../src/mail/reading/auth-results.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { type Mailroom, mailroom, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { ownMs } from "../support/own-time.ts";

const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const SEALING_KEY = `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`;

describe("an Authentication-Results field", () => {
  test("is read with its comments, quotes, versions and reasons", () => {
    const read = readAuthResults(
      `mx.Example.org 1 (a (nested; comment) \\) ";); dkim/1=pass (good; d=evil.test) reason="a; dkim=pass" header.d=Example.com header.b="x;y"; spf = fail smtp.mailfrom="a\\"b"@c.test; iprev=pass policy.iprev=192.0.2.1`,
    );
    expect(read?.authserv_id).toBe("mx.example.org");
    expect(read?.results.map(({ method, result }) => `${method}=${result}`)).toEqual([
      "dkim=pass",
      "spf=fail",
      "iprev=pass",
    ]);
    expect(read?.results[0]?.properties.get("header.d")).toBe("Example.com");
  });

  test("gives nothing where it cannot be read", () => {
    for (const value of [
      "",
      ";",
      "a b c; dkim=pass",
      'mx; dkim=pass "open',
      "mx (open; dkim=pass",
      "dkim=pass",
    ])
      expect(readAuthResults(value)).toBeUndefined();
    for (const value of ["mx", "mx; none", "mx; dkim", "mx; =pass", "mx; dkim=", "mx; dkim=pa!ss"])
      expect(readAuthResults(value)?.results).toEqual([]);
  });

  test("counts no more than it says", () => {
    const aligned = (text: string) => {
      const results = readAuthResults(`mx; ${text}`);
      const { dkim, spf } = findingsOf(results ? [results] : [], "example.com");
      return [dkim.aligned, spf.aligned];
    };
    expect(aligned("dkim=pass header.d=example.com")).toEqual([["example.com"], []]);
    expect(aligned("dkim=pass header.i=@m.example.com")).toEqual([["m.example.com"], []]);
    expect(aligned("dkim=pass")).toEqual([[], []]);
    expect(aligned("dkim=pass header.d=evil.test header.i=@example.com")).toEqual([[], []]);
    expect(aligned("dkim=pass header.d=example.com header.d=evil.test")).toEqual([[], []]);
    expect(aligned("dkim=fail header.d=example.com")).toEqual([[], []]);
    expect(aligned('dkim=none reason="dkim=pass header.d=example.com"')).toEqual([[], []]);
    expect(aligned("x-dkim=pass header.d=example.com")).toEqual([[], []]);
    expect(aligned("spf=pass smtp.mailfrom=a@example.com")).toEqual([[], ["example.com"]]);
    expect(aligned("spf=pass smtp.mailfrom=example.com")).toEqual([[], ["example.com"]]);
    expect(aligned("spf=pass smtp.helo=mx.example.com")).toEqual([[], ["mx.example.com"]]);
    expect(aligned("spf=pass smtp.helo=mx.example.com; spf=fail smtp.mailfrom=a@evil.test")).toEqual([
      [],
      [],
    ]);
    expect(aligned("spf=softfail smtp.mailfrom=a@example.com")).toEqual([[], []]);
    expect(aligned("dmarc=pass header.from=example.com")).toEqual([[], []]);
  });

  test("of ARC begins with the number of its set", () => {
    expect(readArcResults("i=1; mx.example.org; dmarc=pass")).toMatchObject({
      authserv_id: "mx.example.org",
    });
  });

  test("takes no longer than its length, whatever is in it", () => {
    const began = ownMs();
    for (const piece of ["(", '"', "\\", " ", ";", "a=", "a.b=c ", "a .", "dkim=pass "])
      readAuthResults(`mx; dkim=pass ${piece.repeat(60_000 / piece.length)}`);
    expect(ownMs() - began).toBeLessThan(2_000);
  });
});

describe("a trusted relay in front", () => {
  const RELAY = "192.0.2.7";
  const OTHER = "192.0.2.8";
  const RECEIVED = "from client (client [198.51.100.9]) by mx.front.example; Thu, 1 Jan 2026 00:00:00 +0000";

  async function withRelay(
    run: (
      room: Mailroom,
      send: (from: string, head: string[], mail_from?: string) => Promise<string>,
    ) => Promise<void>,
  ) {
    await using dns = await startDnsServer({
      ...signingZone("example.com", "v=DMARC1; p=reject"),
      // What SPF would say of the relay's own address must not matter.
      "relayed.example": { TXT: [`v=spf1 ip4:${RELAY} -all`] },
      "_dmarc.relayed.example": { TXT: ["v=DMARC1; p=none"] },
      "_dmarc.strict.example": { TXT: ["v=DMARC1; p=none; adkim=s; aspf=s"] },
      "_dmarc.github.io": { TXT: ["v=DMARC1; p=none"] },
    });
    await using room = await mailroom({
      config: {
        dns: { servers: [dns.address] },
        smtp: {
          proxy_protocol: ["127.0.0.1"],
          trusted_networks: [],
          trusted_relays: ["192.0.2.7/32=mx.front.example"],
        },
        limits: { same_body_per_hour: 0, replies_per_sender_hour: 0, inbound_per_sender_hour: 0 },
      },
      parts: {},
    });
    await run(room, async (from, head, mail_from = "") => {
      const mail = rawMail({
        from,
        to: room.inbox.address,
        headers: { "Message-ID": `<${Bun.randomUUIDv7()}@x.test>` },
      });
      const raw = Buffer.concat([Buffer.from(head.map((line) => `${line}\r\n`).join("")), mail]);
      return await sendAs(room, RELAY, { raw, mail_from: mail_from || "bounces@elsewhere.test" });
    });
  }

  async function sendAs(
    { door, inbox }: Mailroom,
    address: string,
    { raw, mail_from }: { raw: Buffer; mail_from: string },
  ): Promise<string> {
    const { rawClient, upToData } = await import("../interop/raw-client.ts");
    using client = await rawClient(door, false);
    client.write(`PROXY TCP4 ${address} 127.0.0.1 1 25\r\n`);
    await client.reply();
    await upToData(client, mail_from, [inbox.address]);
    client.write(Buffer.concat([raw, Buffer.from("\r\n.\r\n")]));
    return await client.reply();
  }

  const RESULTS = "Authentication-Results: mx.front.example";
  const by = `Received: ${RECEIVED}`;
  const auth = async (room: Mailroom) =>
    JSON.parse((await room.newest()).auth ?? "{}") as Record<string, unknown>;

  test("is believed for what it wrote above its own Received field", async () => {
    await withRelay(async (room, send) => {
      expect(await send("ada@example.com", [`${RESULTS}; dkim=pass header.d=example.com`, by])).toStartWith(
        "250",
      );
      expect(await auth(room)).toMatchObject({
        dkim: "pass",
        dmarc: "pass",
        aligned: true,
        via: "relay:mx.front.example",
      });
      // Several fields, as the filters of Postfix write them, each with its own part.
      const fields = [
        `${RESULTS}; dmarc=pass header.from=example.com`,
        `${RESULTS}; spf=pass smtp.mailfrom=ada@example.com`,
      ];
      expect(await send("ada@example.com", [...fields, by], "ada@example.com")).toStartWith("250");
      expect(await room.newest()).toMatchObject({ authority: "owner" });
      expect(await auth(room)).toMatchObject({ spf: "pass", dmarc: "pass" });
    });
  });

  const refused: [string, string[]][] = [
    ["without a field of it", [by]],
    [
      "with a field of another name",
      ["Authentication-Results: mx.elsewhere.example; dkim=pass header.d=example.com", by],
    ],
    ["with a field below its Received field", [by, `${RESULTS}; dkim=pass header.d=example.com`]],
    ["with a field, but no Received field of it", [`${RESULTS}; dkim=pass header.d=example.com`]],
    ["with the signature of another domain", [`${RESULTS}; dkim=pass header.d=evil.test`, by]],
    ["with a DMARC verdict alone", [`${RESULTS}; dmarc=pass header.from=example.com`, by]],
    [
      "with a failure",
      [`${RESULTS}; dkim=fail header.d=example.com; spf=softfail smtp.mailfrom=ada@example.com`, by],
    ],
    ["with a field that cannot be read", [`${RESULTS}; dkim=pass header.d=example.com "`, by]],
    [
      "with a name that only begins like its own",
      ["Authentication-Results: mx.front.example.evil.test; dkim=pass header.d=example.com", by],
    ],
    [
      "with its own ARC field in place of it",
      ["ARC-Authentication-Results: i=1; mx.front.example; dkim=pass header.d=example.com", by],
    ],
  ];
  test("proves nothing of a mail without its word", async () => {
    await withRelay(async (_, send) => {
      for (const [claim, head] of refused)
        expect([claim, await send("ada@example.com", head)]).toEqual([
          claim,
          expect.stringContaining("550 5.7.26"),
        ]);
    });
  });

  test("is not itself what SPF is asked about, and alignment is by our rule", async () => {
    await withRelay(async (room, send) => {
      await send("bo@relayed.example", [`${RESULTS}; spf=none`, by], "bo@relayed.example");
      expect(await auth(room)).toMatchObject({ spf: "none", dmarc: "fail", aligned: false });
      await send("bo@strict.example", [`${RESULTS}; dkim=pass header.d=m.strict.example`, by]);
      expect(await auth(room)).toMatchObject({ dkim: "pass", dmarc: "fail", aligned: false });
      await send("owner@owner.github.io", [`${RESULTS}; dkim=pass header.d=thief.github.io; dmarc=pass`, by]);
      expect(await auth(room)).toMatchObject({ dmarc: "fail", aligned: false });
    });
  });

  test("cannot be claimed to be by anybody else", async () => {
    await withRelay(async (room) => {
      const head = Buffer.from(`${RESULTS}; dkim=pass header.d=example.com\r\n${by}\r\n`);
      const raw = Buffer.concat([head, rawMail({ from: "ada@example.com", to: room.inbox.address })]);
      expect(await sendAs(room, OTHER, { raw, mail_from: "x@elsewhere.test" })).toStartWith("550 5.7.26");
    });
  });

  test("passes on a mail whose own signature says what was meant for whom", async () => {
    await withRelay(async (room) => {
      const signed = await signedBy(
        "example.com",
        rawMail({ from: "ada@example.com", to: room.inbox.address }),
      );
      const head = Buffer.from(`${RESULTS}; dkim=pass header.d=example.com\r\n${by}\r\n`);
      const mail_from = "list@elsewhere.test";
      expect(await sendAs(room, RELAY, { raw: Buffer.concat([head, signed]), mail_from })).toStartWith("250");
      expect(await room.newest()).toMatchObject({ authority: "owner" });
      const other = Buffer.concat([
        head,
        rawMail({ from: "ada@example.com", to: "a@b.test", headers: { "Message-ID": "<2@example.com>" } }),
      ]);
      expect(await sendAs(room, RELAY, { raw: other, mail_from })).toStartWith("250");
      expect(await room.newest()).toMatchObject({ authority: "stranger" });
    });
  });
});

describe("ARC", () => {
  const AUTHOR = "ada@example.com";
  const zone = {
    ...signingZone("example.com", "v=DMARC1; p=reject"),
    ...signingZone("plain.example", null),
    ...signingZone("strict.example", "v=DMARC1; p=reject; adkim=s"),
    "s._domainkey.list.example": { TXT: [SEALING_KEY] },
    "s._domainkey.forwarder.example": { TXT: [SEALING_KEY] },
    "s._domainkey.evil.test": { TXT: [SEALING_KEY] },
  };

  interface Seal {
    by: string;
    results: string;
    cv?: string;
    /** What the server changed before it sealed. */
    change?: (raw: string) => string;
  }

  const footer = (raw: string): string => `${raw}\r\n--\r\nA mailing list\r\n`;

  async function sealed(raw: Buffer, seals: Seal[]): Promise<Buffer> {
    let mail = raw;
    for (const [index, { by: signingDomain, results, change, cv }] of seals.entries()) {
      if (change) mail = Buffer.from(change(mail.toString()));
      const seal = await sealMessage(mail, {
        signingDomain,
        selector: "s",
        privateKey: privateKey.export({ type: "pkcs8", format: "pem" }),
        authResults: `mx.${signingDomain}; ${results}`,
        cv: cv ?? (index === 0 ? "none" : "pass"),
      });
      mail = Buffer.concat([seal, mail]);
    }
    return mail;
  }

  async function verdict(
    seals: Seal[],
    more: {
      from?: string;
      sealers?: string[];
      tamper?: (raw: string) => string;
      to?: string;
      silent?: string;
    } = {},
  ): Promise<{ reply: string; authority: string | null; auth: Record<string, unknown> | null }> {
    const { from = AUTHOR, sealers = ["list.example", "forwarder.example"], tamper } = more;
    await using dns = await startDnsServer(zone);
    if (more.silent !== undefined) dns.fault(more.silent, "servfail");
    await using room = await mailroom({
      config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [], arc_sealers: sealers } },
    });
    const domain = from.slice(from.indexOf("@") + 1);
    const raw = await sealed(
      await signedBy(domain, rawMail({ from, to: more.to ?? room.inbox.address, text: "Hi" })),
      seals,
    );
    const sent = tamper ? Buffer.from(tamper(raw.toString())) : raw;
    const reply = await deliver(room.door, {
      from: "bounce@list.example",
      to: room.inbox.address,
      raw: sent,
    });
    const row = await room.app.db.selectFrom("messages").selectAll().executeTakeFirst();
    return { reply, authority: row?.authority ?? null, auth: row?.auth ? JSON.parse(row.auth) : null };
  }

  const PASS =
    "dkim=pass header.d=example.com; spf=pass smtp.mailfrom=ada@example.com; dmarc=pass header.from=example.com";
  const list: Seal = { by: "list.example", results: PASS, change: footer };

  test("of a named list lets a mail through that the list has changed", async () => {
    const { reply, auth, authority } = await verdict([list]);
    expect(reply).toStartWith("250");
    expect(auth).toMatchObject({ dmarc: "fail", aligned: true, via: "arc:list.example", vouched: true });
    // Its To field names the inbox, and the seal covers it.
    expect(authority).toBe("owner");
  });

  test("says what is read of the mail: what was sealed, whatever white space was added since", async () => {
    const sealed = await verdict([list]);
    const spaced = await verdict([list], { tamper: (raw) => raw.replace("\r\n\r\nHi", "\r\n\r\nHi \t") });
    expect(spaced).toMatchObject({ authority: "owner" });
    expect(sealed.auth?.["signed_form"]).toMatchObject({ header: "relaxed", body: "relaxed" });
    expect(spaced.auth?.["signed_form"]).toEqual(sealed.auth?.["signed_form"]);
  });

  test.each([
    ["of a named list", [list], "s._domainkey.list.example"],
    [
      "of one of two named servers",
      [list, { by: "forwarder.example", results: "arc=pass; dkim=fail header.d=example.com; dmarc=fail" }],
      "s._domainkey.list.example",
    ],
  ])("%s puts the mail off while the DNS does not answer for its key", async (_, seals, silent) => {
    expect(await verdict(seals, { silent })).toMatchObject({
      reply: expect.stringMatching(/^451 4\.7\.0 /),
      authority: null,
    });
  });

  test("puts no mail off that was changed behind it, or whose own signature is whole", async () => {
    const silent = "s._domainkey.list.example";
    const tamper = (raw: string) => raw.replace("\r\n\r\nHi", "\r\n\r\nPay eve");
    const changed = await verdict([list], { silent, tamper });
    expect(changed.reply).toStartWith("550 5.7.");
    expect((await verdict([{ ...list, change: (raw) => raw }], { silent })).reply).toStartWith("250");
  });

  test("of a server that is not named puts no mail off, whatever the DNS says of its key", async () => {
    const { reply } = await verdict([list], { sealers: [], silent: "s._domainkey.list.example" });
    expect(reply).toStartWith("550 5.7.");
    const older = { by: "forwarder.example", results: PASS };
    const { reply: second } = await verdict([older, { ...list, results: "arc=pass; dmarc=fail" }], {
      sealers: ["list.example"],
      silent: "s._domainkey.forwarder.example",
    });
    expect(second).toStartWith("550 5.7.");
  });

  test("of a forwarder lets no mail instruct that was written to somebody else", async () => {
    const { auth, authority } = await verdict([{ ...list, by: "forwarder.example" }], {
      to: "ada@home.example",
    });
    expect(auth).toMatchObject({ via: "arc:forwarder.example", vouched: false });
    expect(authority).toBe("stranger");
  });

  test("of two named servers in a row counts, by what the first of them saw", async () => {
    const second = {
      by: "forwarder.example",
      results: "arc=pass; dkim=fail header.d=example.com; dmarc=fail",
    };
    const { auth } = await verdict([list, second]);
    expect(auth).toMatchObject({ via: "arc:list.example" });
  });

  test("is not looked at where the author's own signature is whole", async () => {
    const { auth } = await verdict([{ ...list, change: (raw) => raw }]);
    expect(auth).toMatchObject({ dmarc: "pass", aligned: true });
    expect(auth?.["via"]).toBeUndefined();
  });

  test("counts where the domain publishes no DMARC record, if the server saw a signature of it", async () => {
    const results = "dkim=pass header.d=plain.example";
    expect((await verdict([{ ...list, results }], { from: "bo@plain.example" })).auth).toMatchObject({
      via: "arc:list.example",
    });
    const spf = "spf=pass smtp.mailfrom=bo@plain.example";
    const { auth } = await verdict([{ ...list, results: spf }], { from: "bo@plain.example" });
    expect(auth).toMatchObject({ dmarc: "none" });
    expect(auth?.["via"]).toBeUndefined();
  });

  const refused: [string, Seal[], Parameters<typeof verdict>[1]?][] = [
    ["of a server that is not named", [{ ...list, by: "evil.test" }]],
    ["of a named server, where none is named any more", [list], { sealers: [] }],
    ["of a server that is not named, over one of a named", [list, { by: "evil.test", results: "arc=pass" }]],
    [
      "of a named server, over one that is not",
      [
        { ...list, by: "evil.test" },
        { by: "list.example", results: "arc=pass" },
      ],
    ],
    [
      "over a mail that did not pass there",
      [{ ...list, results: "dkim=fail header.d=example.com; dmarc=fail header.from=example.com" }],
    ],
    [
      "over a mail that passed for another domain",
      [{ ...list, results: "dkim=pass header.d=evil.test; dmarc=pass header.from=evil.test" }],
    ],
    [
      "over a verdict without what it came from",
      [{ ...list, results: "dmarc=pass header.from=example.com" }],
    ],
    ["that the mail was changed after", [list], { tamper: (raw) => raw.replace("Hi", "Ho") }],
    [
      "whose results were changed",
      [{ ...list, results: "dkim=fail header.d=example.com" }],
      { tamper: (raw) => raw.replace("dkim=fail", "dkim=pass") },
    ],
    [
      "with another From above it",
      [list],
      {
        tamper: (raw) =>
          raw.replace("ada@example.com", "eve@example.com").replace(/^/, "X: ada@example.com\r\n"),
      },
    ],
    ["that says that the chain before it failed", [{ ...list, cv: "fail" }]],
    [
      "of which a part was taken away",
      [list],
      { tamper: (raw) => raw.replace(/ARC-Message-Signature:[^]*?\r\n(?=\S)/, "") },
    ],
    [
      "that a second one of the same number stands beside",
      [list],
      { tamper: (raw) => `ARC-Authentication-Results: i=1; x; ${PASS}\r\n${raw}` },
    ],
    [
      "under a strict policy, for a subdomain's signature",
      [{ ...list, results: "dkim=pass header.d=m.strict.example" }],
      { from: "ada@strict.example" },
    ],
  ];
  for (const [claim, seals, more] of refused) {
    test(`lets nothing through by a seal ${claim}`, async () => {
      const { reply, auth } = await verdict(seals, more);
      expect(reply).toStartWith("550 5.7.26");
      expect(auth).toMatchObject({ dmarc: "fail", aligned: false });
    });
  }
});
