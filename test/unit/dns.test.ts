import { describe, expect, test } from "bun:test";
import { createResolver, dnsErrorCode, isNoRecord, isUnreached } from "../../src/net/dns.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { startClock } from "../support/own-time.ts";

const codeOf = (promise: Promise<unknown>) => promise.then(() => "no error", dnsErrorCode);

describe("resolver", () => {
  test("answers every kind of record in the shapes of node:dns", async () => {
    await using dns = await startDnsServer({
      "example.com": {
        A: ["192.0.2.1"],
        AAAA: ["2001:db8::1"],
        MX: [[10, "mx.example.com"]],
        TXT: ["hello"],
        NS: ["ns.example.com"],
      },
      "1.2.0.192.in-addr.arpa": { PTR: ["example.com"] },
      "www.example.com": { CNAME: ["example.com"] },
    });
    const resolve = createResolver({ servers: [dns.address] });
    expect(await resolve("example.com", "A")).toEqual(["192.0.2.1"]);
    expect(await resolve("example.com", "AAAA")).toEqual(["2001:db8::1"]);
    expect(await resolve("example.com", "MX")).toEqual([{ exchange: "mx.example.com", priority: 10 }]);
    expect(await resolve("example.com", "TXT")).toEqual([["hello"]]);
    expect(await resolve("example.com", "NS")).toEqual(["ns.example.com"]);
    expect(await resolve("1.2.0.192.in-addr.arpa", "PTR")).toEqual(["example.com"]);
    expect(await resolve("www.example.com", "CNAME")).toEqual(["example.com"]);
  });

  test("keeps a TXT record of more than 255 octets in one piece", async () => {
    const key = `v=DKIM1; k=rsa; p=${"A".repeat(390)}`;
    await using dns = await startDnsServer({ "s._domainkey.example.com": { TXT: [key, "second record"] } });
    const records = await createResolver({ servers: [dns.address] })("s._domainkey.example.com", "TXT");
    expect(records).toHaveLength(2);
    expect(records[0]).toEqual([key.slice(0, 250), key.slice(250)]);
    expect(records[1]).toEqual(["second record"]);
  });

  test("takes a TXT record that is longer than any real one for an empty one", async () => {
    const key = `v=DKIM1; p=${"A".repeat(2_800)}`;
    const label = `v=spf1 redirect=a.${"a".repeat(60_000)}!`;
    await using dns = await startDnsServer({ "a.test": { TXT: [key, label] } });
    const records = await createResolver({ servers: [dns.address] })("a.test", "TXT");
    expect(records.map((parts) => parts.join(""))).toEqual([key, ""]);
  });

  test("takes a TXT record that its macros make longer than any real one for an empty one", async () => {
    const some = `v=spf1 exists:${"%{i}.".repeat(4)}a.test -all`;
    const many = `v=spf1 redirect=a.${"%{h}".repeat(100)}!`;
    await using dns = await startDnsServer({ "a.test": { TXT: [some, many] } });
    const records = await createResolver({ servers: [dns.address] })("a.test", "TXT");
    expect(records.map((parts) => parts.join(""))).toEqual([some, ""]);
  });

  test("cuts long runs of blanks in a TXT record to one, also over the ends of its strings", async () => {
    const blanks = " ".repeat(20_000);
    await using dns = await startDnsServer({ "a.test": { TXT: [`v=STSv1; id=3${blanks}x; y=1;`, "a  b"] } });
    const records = await createResolver({ servers: [dns.address] })("a.test", "TXT");
    expect(records).toEqual([["v=STSv1; id=3 x; y=1;"], ["a  b"]]);
  });

  test("follows aliases to the records they stand for", async () => {
    await using dns = await startDnsServer({
      "a.test": { CNAME: ["B.test"] },
      "b.test": { CNAME: ["c.test"] },
      "c.test": { TXT: ["found"] },
    });
    expect(await createResolver({ servers: [dns.address] })("a.test", "TXT")).toEqual([["found"]]);
  });

  test("ends with no record when aliases form a loop", async () => {
    await using dns = await startDnsServer({
      "a.test": { CNAME: ["b.test"] },
      "b.test": { CNAME: ["a.test"] },
    });
    expect(await codeOf(createResolver({ servers: [dns.address] })("a.test", "A"))).toBe("ENODATA");
  });

  test("asks again for somebody who wants it fresh, and remembers that answer", async () => {
    await using dns = await startDnsServer({ "a.test": { TXT: ["old"] } });
    const resolve = createResolver({ servers: [dns.address] });
    expect(await resolve("a.test", "TXT")).toEqual([["old"]]);
    dns.set("a.test", "TXT", ["new"]);
    expect(await resolve("a.test", "TXT")).toEqual([["old"]]);
    expect(await resolve("a.test", "TXT", { fresh: true })).toEqual([["new"]]);
    expect(await resolve("a.test", "TXT")).toEqual([["new"]]);
    expect(dns.queries).toHaveLength(2);
  });

  test("tells a missing name from a missing record", async () => {
    await using dns = await startDnsServer({ "example.com": { A: ["192.0.2.1"] } });
    const resolve = createResolver({ servers: [dns.address] });
    expect(await codeOf(resolve("example.com", "MX"))).toBe("ENODATA");
    expect(await codeOf(resolve("nowhere.test", "MX"))).toBe("ENOTFOUND");
    expect(isNoRecord(await resolve("nowhere.test", "MX").catch((error: unknown) => error))).toBe(true);
  });

  test("refuses names that cannot exist without asking anybody", async () => {
    await using dns = await startDnsServer();
    const resolve = createResolver({ servers: [dns.address] });
    for (const name of ["", ".", "a..b", `${"x".repeat(64)}.test`, `${"abc.".repeat(64)}test`, "a b.test"]) {
      expect(await codeOf(resolve(name, "A"))).toBe("EBADNAME");
    }
    expect(dns.queries).toEqual([]);
  });

  test("asks for international names by their A-labels", async () => {
    await using dns = await startDnsServer({ "xn--exmple-cua.test": { A: ["192.0.2.9"] } });
    expect(await createResolver({ servers: [dns.address] })("EXÄMPLE.test.", "A")).toEqual(["192.0.2.9"]);
  });

  test("reports a silent server as a timeout within the time given", async () => {
    await using dns = await startDnsServer();
    dns.fault("*", "drop");
    using clock = startClock();
    expect(await codeOf(createResolver({ servers: [dns.address], timeout_ms: 60 })("a.test", "A"))).toBe(
      "ETIMEOUT",
    );
    expect(clock.ms()).toBeLessThan(1_000);
    expect(dns.queries).toHaveLength(2);
  });

  test("reports SERVFAIL and REFUSED, and does not remember them", async () => {
    await using dns = await startDnsServer({ "a.test": { A: ["192.0.2.1"] } });
    const resolve = createResolver({ servers: [dns.address] });
    dns.fault("a.test", "servfail");
    expect(await codeOf(resolve("a.test", "A"))).toBe("ESERVFAIL");
    dns.fault("a.test", "refused");
    expect(await codeOf(resolve("a.test", "A"))).toBe("EREFUSED");
    dns.fault("a.test", undefined);
    expect(await resolve("a.test", "A")).toEqual(["192.0.2.1"]);
  });

  test("says so at once where a server cannot be reached at all", async () => {
    // A broadcast address: connecting to it fails as on a machine without a network.
    const nowhere = createResolver({ servers: ["255.255.255.255"] })("a.test", "A");
    expect(await codeOf(nowhere)).toBe("ESERVFAIL");
    expect(isUnreached(await nowhere.catch((error: unknown) => error))).toBe(true);
  });

  test("tells a server that answers with a fault from one that is not there", async () => {
    await using dns = await startDnsServer({ "a.test": { A: ["192.0.2.1"] } });
    dns.fault("a.test", "servfail");
    const faulty = createResolver({ servers: ["127.0.0.1:9", dns.address] })("a.test", "A");
    expect(isUnreached(await faulty.catch((error: unknown) => error))).toBe(false);
    expect(isUnreached(new Error("no"))).toBe(false);
  });

  test("asks the next server when one is silent, failing or gone", async () => {
    await using silent = await startDnsServer();
    await using failing = await startDnsServer();
    await using good = await startDnsServer({ "a.test": { A: ["192.0.2.1"] } });
    silent.fault("*", "drop");
    failing.fault("*", "servfail");
    const gone = await startDnsServer();
    await gone[Symbol.asyncDispose]();
    const servers = [silent.address, failing.address, gone.address, good.address];
    expect(await createResolver({ servers, timeout_ms: 800 })("a.test", "A")).toEqual(["192.0.2.1"]);
  });

  test("asks again over TCP when the reply was cut short", async () => {
    const long = "z".repeat(3_000);
    await using dns = await startDnsServer({ "a.test": { TXT: [long] } });
    dns.fault("a.test", "truncate");
    const [record] = await createResolver({ servers: [dns.address] })("a.test", "TXT");
    expect(record?.join("")).toBe(long);
    expect(dns.queries.map((query) => query.over)).toEqual(["udp", "tcp"]);
  });

  test("ignores replies with another id, another question or no sense", async () => {
    await using dns = await startDnsServer({
      "a.test": { A: ["192.0.2.1"] },
      "b.test": { A: ["192.0.2.2"] },
    });
    dns.fault("a.test", "forge");
    dns.fault("b.test", "garbage");
    const resolve = createResolver({ servers: [dns.address] });
    expect(await resolve("a.test", "A")).toEqual(["192.0.2.1"]);
    expect(await resolve("b.test", "A")).toEqual(["192.0.2.2"]);
  });

  test("asks from a new port each time", async () => {
    await using dns = await startDnsServer();
    const resolve = createResolver({ servers: [dns.address] });
    for (let i = 0; i < 8; i++) await codeOf(resolve(`n${i}.test`, "A"));
    expect(new Set(dns.queries.map((query) => query.from_port)).size).toBeGreaterThan(4);
  });

  test("remembers an answer for its TTL and no longer", async () => {
    await using dns = await startDnsServer({ "a.test": { A: ["192.0.2.1"] } });
    let clock = 0;
    const resolve = createResolver({ servers: [dns.address], now: () => clock });
    await resolve("a.test", "A");
    clock = 59_000;
    await resolve("A.TEST", "A");
    expect(dns.queries).toHaveLength(1);
    clock = 61_000;
    await resolve("a.test", "A");
    expect(dns.queries).toHaveLength(2);
  });

  test("remembers an absence for half a minute at most", async () => {
    await using dns = await startDnsServer();
    let clock = 0;
    const resolve = createResolver({ servers: [dns.address], now: () => clock });
    expect(await codeOf(resolve("a.test", "A"))).toBe("ENOTFOUND");
    dns.set("a.test", "A", ["192.0.2.1"]);
    clock = 29_000;
    expect(await codeOf(resolve("a.test", "A"))).toBe("ENOTFOUND");
    clock = 31_000;
    expect(await resolve("a.test", "A")).toEqual(["192.0.2.1"]);
  });

  test("does not keep an answer whose TTL is zero", async () => {
    await using dns = await startDnsServer({ "a.test": { A: ["192.0.2.1"] } });
    dns.ttl = 0;
    const resolve = createResolver({ servers: [dns.address] });
    await resolve("a.test", "A");
    await resolve("a.test", "A");
    expect(dns.queries).toHaveLength(2);
  });

  test("joins identical questions and gives every asker a copy of the answer", async () => {
    await using dns = await startDnsServer({
      "a.test": {
        MX: [
          [10, "m1"],
          [20, "m2"],
        ],
      },
    });
    const resolve = createResolver({ servers: [dns.address] });
    const [first, second] = await Promise.all([resolve("a.test", "MX"), resolve("a.test", "MX")]);
    first.reverse();
    expect(second.map((mx) => mx.exchange)).toEqual(["m1", "m2"]);
    expect((await resolve("a.test", "MX")).map((mx) => mx.exchange)).toEqual(["m1", "m2"]);
    expect(dns.queries).toHaveLength(1);
  });

  test("answers beside a thousand questions that hang", async () => {
    await using dns = await startDnsServer({ "good.test": { A: ["192.0.2.1"] } });
    const resolve = createResolver({ servers: [dns.address] });
    for (let hanging = 0; hanging <= 1_000; hanging += 1) {
      // Not all of them in one go, which would be too much for the server.
      if (hanging % 100 === 0)
        expect(await resolve("good.test", "A", { fresh: true })).toEqual(["192.0.2.1"]);
      dns.fault(`n${hanging}.test`, "drop");
      void codeOf(resolve(`n${hanging}.test`, "A"));
    }
  });

  test("refuses more questions at once than it may ask", async () => {
    await using dns = await startDnsServer();
    dns.fault("*", "drop");
    const resolve = createResolver({ servers: [dns.address], timeout_ms: 50, max_in_flight: 10 });
    const codes = await Promise.all(
      Array.from({ length: 11 }, (_, index) => codeOf(resolve(`n${index}.test`, "A"))),
    );
    expect(codes).toEqual([...Array<string>(10).fill("ETIMEOUT"), "ESERVFAIL"]);
  });

  test("names a server address that makes no sense", () => {
    for (const server of ["dns.example.com", "1.2.3", "1.1.1.1:99999", "[::1", ""]) {
      expect(() => createResolver({ servers: [server] })).toThrow("is not an address such as 1.1.1.1");
    }
    for (const server of ["1.1.1.1", "1.1.1.1:5353", "::1", "[::1]:53", "[::1]"]) {
      expect(createResolver({ servers: [server] })).toBeFunction();
    }
  });
});
