import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createResolver } from "../../src/net/dns.ts";
import {
  askForProof,
  type DnsCounts,
  dnsTeller,
  dnsWarning,
  newDnsCounts,
  watchDns,
} from "../../src/net/dns-standing.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";

const MINUTE = 60_000;

/** A resolver of one server, and what is said of it minute by minute. */
function standing(servers: string[], system_file?: string) {
  const counts = newDnsCounts();
  let now = 0;
  const watch = watchDns(counts, () => now);
  const resolve = createResolver({ servers, counts, timeout_ms: 100, ...(system_file && { system_file }) });
  return {
    counts,
    words: () => dnsWarning(watch, servers, system_file),
    /** Asks for each name, whatever comes of it, and then lets time pass. */
    async ask(minutes: number, ...names: string[]) {
      await Promise.allSettled(names.map((name) => resolve(name, "TXT")));
      for (let minute = 0; minute < minutes; minute += 1) {
        watch.silentMinutes();
        await askForProof(counts, resolve, "mw.test");
        now += MINUTE;
      }
    },
  };
}

async function silentServer(fault: Parameters<TestDnsServer["fault"]>[1]): Promise<TestDnsServer> {
  const dns = await startDnsServer({ "well.test": { TXT: ["found"] } });
  dns.fault("*", fault);
  return dns;
}

test.each(["drop", "servfail", "refused"] as const)(
  "name servers that answer nothing for minutes (%s) are said by name, until they answer once",
  async (fault) => {
    await using dns = await silentServer(fault);
    const at = standing([dns.address]);
    expect(at.words()).toBeUndefined();
    await at.ask(2, "a.one.test", "b.two.test");
    expect(at.words()).toBeUndefined();
    await at.ask(2, "c.three.test");
    expect(at.words()).toContain(`answered for 4 minutes (asked: ${dns.address})`);
    expect(at.words()).toContain("dns.servers");
    dns.fault("*", undefined);
    await at.ask(0, "nowhere.test");
    expect(at.words()).toBeUndefined();
  },
);

test("a name server that nobody asks says nothing of the DNS; one that failed once is asked for proof", async () => {
  await using dns = await silentServer("drop");
  const at = standing([dns.address]);
  await at.ask(10);
  expect(at.words()).toBeUndefined();
  await at.ask(2, "a.one.test");
  expect(at.words()).toBeUndefined();
  await at.ask(2);
  expect(at.words()).toContain("answered for 4 minutes");
});

test("one domain whose own name servers are down is no fault of the DNS", async () => {
  await using dns = await startDnsServer({});
  const at = standing([dns.address]);
  for (const name of ["one.test", "_dmarc.one.test", "s._domainkey.one.test", "one.test"]) {
    dns.fault(name, "servfail");
    await at.ask(5, name);
  }
  expect(at.words()).toBeUndefined();
});

test.each(["drop", "servfail"] as const)(
  "many domains whose own name servers are down (%s) are no fault of the DNS either",
  async (fault) => {
    await using dns = await startDnsServer({});
    const at = standing([dns.address]);
    for (const name of ["one.test", "two.test", "three.test", "four.test"]) {
      dns.fault(name, fault);
      await at.ask(2, name);
      expect(at.words()).toBeUndefined();
    }
    // The control: as soon as nothing else is answered either, it is.
    dns.fault("*", fault);
    await at.ask(4, "one.test");
    expect(at.words()).toContain("No look-up of a name was answered");
  },
);

test("a name server that knows names of its own network only is one that answers", async () => {
  await using dns = await startDnsServer({});
  dns.fault("com", "refused");
  dns.fault("one.test", "servfail");
  dns.fault("two.test", "servfail");
  const at = standing([dns.address]);
  await at.ask(3, "one.test");
  await at.ask(3, "two.test");
  expect(at.words()).toBeUndefined();
});

test("a name server that is not there is known by any name, and an answer that was kept says nothing of it", async () => {
  const dns = await silentServer(undefined);
  const at = standing([dns.address]);
  await at.ask(5, "well.test");
  await dns[Symbol.asyncDispose]();
  await at.ask(2, "one.test");
  await at.ask(2, "one.test", "well.test");
  expect(at.words()).toContain("answered for 4 minutes");
});

test("what a thread has noted counts as well", async () => {
  await using dns = await silentServer("drop");
  const at = standing([dns.address]);
  const other: DnsCounts = structuredClone(at.counts);
  const resolve = createResolver({ servers: [dns.address], counts: other, timeout_ms: 50 });
  await Promise.allSettled([resolve("one.test", "A"), resolve("two.example", "A")]);
  await at.ask(4);
  await Promise.allSettled([resolve("three.example", "A")]);
  expect(at.words()).toContain("answered for 4 minutes");
});

test("the mend is where the servers are named", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-dns-"));
  const file = join(dir, "resolv.conf");
  await writeFile(file, "nameserver 127.0.0.1:9\n");
  const at = standing([], file);
  await at.ask(2, "one.test", "two.example");
  await at.ask(2, "one.test");
  expect(at.words()).toContain(`Name servers in ${file} that can be reached`);
  await rm(dir, { recursive: true });
  await using unread = await (async () => {
    const folder = await mkdtemp(join(tmpdir(), "mailwright-dns-"));
    return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
  })();
  const unreadable = standing([], unread.folder);
  await unreadable.ask(2, "one.test");
  await unreadable.ask(2, "one.test");
  expect(unreadable.words()).toContain(`${unread.folder} cannot be read`);
});

test("the log says it each time it is looked at, and once that it is over", () => {
  const said: string[] = [];
  const found = [undefined, "silent", "silent", undefined, undefined];
  const log = {
    warn: (words: string) => void said.push(`warn ${words}`),
    info: (words: string) => void said.push(words),
  };
  const tell = dnsTeller(log as never, () => found.shift());
  for (let minute = 0; minute < 5; minute += 1) tell();
  expect(said).toEqual(["warn silent", "warn silent", "the DNS answers again"]);
});
