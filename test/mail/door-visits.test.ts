import { describe, expect, spyOn, test } from "bun:test";
import { connectAs, upToData } from "../interop/raw-client.ts";
import { smtpDoor } from "../interop/smtp-door.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom } from "../support/mailroom.ts";

/** Who connects is who the header names, so that one test can be many clients. */
const BEHIND_PROXY = { proxy_protocol: ["127.0.0.0/8"] };

describe("one client", () => {
  test("makes no more connections in a minute than it may, and others are not held up", async () => {
    await using door = await smtpDoor({
      smtp: { ...BEHIND_PROXY, trusted_networks: ["198.51.100.0/24"], trusted_relays: ["203.0.113.9=mx"] },
    });
    door.app.config.limits.smtp_connections_per_ip_minute = 2;
    const greeting = async (address: string): Promise<string> => {
      const { client, greeting: text } = await connectAs(door.address, address);
      client[Symbol.dispose]();
      return text;
    };
    for (const address of ["192.0.2.1", "192.0.2.1", "192.0.2.2"])
      expect(await greeting(address)).toStartWith("220");
    expect(await greeting("192.0.2.1")).toStartWith(
      "421 More than 2 connections in a minute; please try again",
    );
    // An IPv6 client has a whole /64.
    expect(await greeting("2001:db8::1")).toStartWith("220");
    expect(await greeting("2001:db8::2")).toStartWith("220");
    expect(await greeting("2001:db8::3")).toStartWith("421");
    expect(await greeting("2001:db8:0:1::3")).toStartWith("220");
    for (const known of ["198.51.100.1", "203.0.113.9"])
      for (let count = 0; count < 4; count++) expect(await greeting(known)).toStartWith("220");
    door.clock.advance("30s");
    expect(await greeting("192.0.2.1")).toStartWith("220");
  });

  test("has no more connections open than it may, in all of an IPv6 /64, and the operator's machines as many as they like", async () => {
    const known = { trusted_networks: ["198.51.100.0/24"], trusted_relays: ["203.0.113.9=mx"] };
    await using door = await smtpDoor({
      smtp: { ...BEHIND_PROXY, ...known, max_connections_per_address: 1 },
    });
    using open = new DisposableStack();
    const greeting = async (address: string): Promise<string> => {
      const { client, greeting: text } = await connectAs(door.address, address);
      open.use(client);
      return text;
    };
    expect(await greeting("2001:db8::1")).toStartWith("220");
    expect(await greeting("2001:db8::2")).toStartWith("421 Too many connections from 2001:db8::2");
    expect(await greeting("2001:db8:0:1::1")).toStartWith("220");
    for (const address of ["198.51.100.1", "198.51.100.1", "203.0.113.9", "203.0.113.9"])
      expect(await greeting(address)).toStartWith("220");
  });

  test("brings no more mails in an hour than it may, and is asked for patience before it sends one", async () => {
    await using door = await smtpDoor({ smtp: BEHIND_PROXY });
    door.app.config.limits.smtp_mails_per_ip_hour = 2;
    const { client } = await connectAs(door.address, "192.0.2.1");
    using _ = client;
    await client.say("EHLO client.test");
    for (let mail = 0; mail < 2; mail++) {
      expect(await client.say("MAIL FROM:<a@example.net>")).toStartWith("250");
      await client.say("RSET");
    }
    expect(await client.say("MAIL FROM:<a@example.net>")).toBe(
      "451 4.7.1 More than 2 mails in an hour from your address; please try again later",
    );
    door.clock.advance("30m");
    expect(await client.say("MAIL FROM:<a@example.net>")).toStartWith("250");
  });

  test("is sent away after ten recipients that are not here, and one session only counts its own", async () => {
    await using door = await smtpDoor({ smtp: BEHIND_PROXY });
    const guess = async (count: number, address = "192.0.2.1") => {
      const { client } = await connectAs(door.address, address);
      await client.say("EHLO client.test");
      await client.say("MAIL FROM:<a@example.net>");
      for (let index = 0; index < count; index++)
        expect(await client.say(`RCPT TO:<guess${index}@mw.test>`)).toStartWith("550 5.1.1");
      return client;
    };
    using ten = await guess(10);
    expect(await ten.say(`RCPT TO:<${door.inbox}>`)).toStartWith("250");
    expect(await ten.say("RCPT TO:<guess10@mw.test>")).toStartWith(
      "421 4.7.0 Too many recipients that are not here",
    );
    expect(await ten.reply()).toBe("");
    using other = await guess(1);
    expect(await other.say(`RCPT TO:<${door.inbox}>`)).toStartWith("250");
    // A machine of the operator's brings other people's mistakes.
    using known = await guess(11, "127.0.0.1");
    expect(await known.say(`RCPT TO:<${door.inbox}>`)).toStartWith("250");
  });
});

describe("block lists", () => {
  const LISTS = ["bl.example.org", "second.example.org"];
  const zone = {
    "10.113.9.93.bl.example.org": {
      A: ["127.0.0.2"],
      TXT: ["Listed: see https://bl.example.org/?93.9.113.10\r\n250 ok\u00e9"],
    },
    "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.a.2.second.example.org": {
      A: ["127.0.0.4"],
    },
    // A list that was sold answers every name with the address of a web page.
    "11.113.9.93.bl.example.org": { A: ["203.0.113.80"] },
    "12.113.9.93.bl.example.org": { A: ["127.255.255.254"], TXT: ["Error: open resolver"] },
  };

  async function withLists(
    run: (
      say: (address: string, line?: string) => Promise<string>,
      door: Awaited<ReturnType<typeof smtpDoor>>,
    ) => Promise<void>,
  ) {
    await using dns = await startDnsServer(zone);
    await using door = await smtpDoor({
      dns: { servers: [dns.address] },
      auth: { admin_email: "admin@example.net" },
      smtp: {
        ...BEHIND_PROXY,
        dnsbl: LISTS,
        trusted_networks: ["198.51.100.0/24"],
        trusted_relays: ["203.0.113.9=mx"],
      },
    });
    await run(async (address, to = door.inbox) => {
      const { client } = await connectAs(door.address, address);
      using _ = client;
      await client.say("EHLO client.test");
      await client.say("MAIL FROM:<a@example.net>");
      return await client.say(`RCPT TO:<${to}>`);
    }, door);
    return dns.queries.map(({ name, type }) => `${type} ${name}`);
  }

  test("keep out the clients that are on one, with the list's words", async () => {
    await withLists(async (rcpt, { app }) => {
      const info = spyOn(app.log, "info");
      expect(await rcpt("93.9.113.10")).toBe(
        "554 5.7.1 Mail from 93.9.113.10 is not taken: it is on the block list bl.example.org. " +
          "Listed: see https://bl.example.org/?93.9.113.10 250 ok",
      );
      const line = { reason: "block_list", from: "a@example.net", peer: "93.9.113.10" };
      expect(info.mock.calls).toEqual([[line, "mail refused"]]);
      expect(await rcpt("2a01:db8::7")).toContain("on the block list second.example.org.");
      // Who is listed by mistake must be able to say so.
      expect(await rcpt("93.9.113.10", "postmaster@mw.test")).toStartWith("250");
    });
  });

  test("keep nobody out by answers that are none, or by an answer that does not come", async () => {
    await using dns = await startDnsServer();
    dns.fault("*", "servfail");
    await using door = await smtpDoor({
      dns: { servers: [dns.address] },
      smtp: { ...BEHIND_PROXY, dnsbl: LISTS },
    });
    const { client } = await connectAs(door.address, "93.9.113.10");
    using _ = client;
    await upToData(client, "a@example.net", [door.inbox]);
    await withLists(async (rcpt) => {
      for (const address of ["93.9.113.11", "93.9.113.12", "93.9.113.13"])
        expect(await rcpt(address)).toStartWith("250");
    });
  });

  test("are not asked about the operator's own machines, nor about private addresses", async () => {
    const asked = await withLists(async (rcpt) => {
      for (const address of ["198.51.100.7", "203.0.113.9", "10.0.0.1", "fe80::1", "127.0.0.1"])
        expect(await rcpt(address)).toStartWith("250");
    });
    expect(asked.filter((question) => question.includes("example.org"))).toEqual([]);
  });

  test("are asked once for a connection, and nobody is asked where none is named", async () => {
    const asked = await withLists(async (rcpt) => void (await rcpt("93.9.113.13")));
    expect(asked.filter((question) => question.includes("example.org")).toSorted()).toEqual(
      LISTS.map((list) => `A 13.113.9.93.${list}`),
    );
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: { dns: { servers: [dns.address] } } });
    expect(await room.send({})).toStartWith("250");
    expect(dns.queries).toEqual([]);
  });

  test("are not asked about who is turned away anyhow", async () => {
    await using dns = await startDnsServer(zone);
    await using door = await smtpDoor({
      dns: { servers: [dns.address] },
      smtp: { ...BEHIND_PROXY, dnsbl: LISTS, max_connections_per_address: 1 },
    });
    const { client } = await connectAs(door.address, "2a01:b8::1");
    using _ = client;
    for (const address of ["2a01:b8::2", "2a01:b8::3"]) {
      const { client: another, greeting } = await connectAs(door.address, address);
      another[Symbol.dispose]();
      expect(greeting).toStartWith("421");
    }
    expect(dns.queries.filter(({ name }) => name.includes(".8.b.0.0.1.0.a.2."))).toHaveLength(LISTS.length);
  });
});
