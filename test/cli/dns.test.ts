import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultConfig } from "../../src/config/config.ts";
import { findKeyHome } from "../../src/resources/domains/key-home.ts";
import {
  type CheckedOperatorRecord,
  checkedRecords,
  type OperatorRecord,
  wantedRecords,
} from "../../src/resources/domains/operator-view.ts";
import { createLog } from "../../src/lib/log.ts";
import { serviceKeys } from "../../src/mail/writing/dkim-keys.ts";
import { serve } from "../../src/serve.ts";
import { builtBinary } from "../support/binary.ts";
import { type CommandLine, commandLine } from "../support/command-line.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { type DomainDesk, domainDesk } from "../support/domain-desk.ts";
import { freePort } from "../support/free-port.ts";

interface Printed {
  type: OperatorRecord["type"];
  name: string;
  value: string | null;
  priority: number | null;
  purpose: string;
  required: boolean;
  status: string;
  found: string[];
  reason: string;
}

const ADDRESS = "203.0.113.7";
const PTR_NAME = "7.113.0.203.in-addr.arpa";

let dns: TestDnsServer;
let desk: CommandLine;
let records: Printed[];

beforeAll(async () => {
  dns = await startDnsServer();
  desk = await commandLine({
    dns: { servers: [dns.address] },
    smtp: { hostname: "mx.acme.org", domain: "mail.acme.org", mta_sts: "testing" },
    outbound: { mode: "direct" },
  });
  records = (await desk.json("dns", "records", "--address", ADDRESS)).data.records;
});

afterAll(async () => {
  await dns[Symbol.asyncDispose]();
  await desk[Symbol.asyncDispose]();
});

describe("mailwright dns records", () => {
  test("says how the address is filled in that this machine does not know of itself", async () => {
    const words = "With --address 203.0.113.7 (yours) it is filled in.";
    const [own, given] = [
      await desk.run("dns", "records"),
      await desk.run("dns", "records", "--address", ADDRESS),
    ];
    expect(given.out).not.toContain(words);
    expect(own.out.includes(words)).toBe(own.out.includes("the public IPv4 address of this machine"));
  });

  test("prints everything to publish, before the first start as well", () => {
    expect(
      records.map(({ type, name, purpose, required }) => `${type} ${name} ${purpose} ${required}`),
    ).toEqual([
      "A mx.acme.org address true",
      "MX mail.acme.org inbound_mx true",
      "TXT mail.acme.org spf true",
      "TXT s1._domainkey.mail.acme.org dkim true",
      "TXT e1._domainkey.mail.acme.org dkim false",
      "TXT _dmarc.mail.acme.org dmarc false",
      "TXT _mta-sts.mail.acme.org mta_sts false",
      "CNAME mta-sts.mail.acme.org mta_sts_host false",
      "TXT _smtp._tls.mail.acme.org tls_rpt false",
      `PTR ${PTR_NAME} ptr true`,
    ]);
    const [a, mx, spf, , , dmarc] = records.map(({ value }) => value);
    expect([a, mx, spf, dmarc]).toEqual([
      ADDRESS,
      "mx.acme.org",
      "v=spf1 a:mx.acme.org -all",
      "v=DMARC1; p=none; rua=mailto:postmaster@mail.acme.org",
    ]);
  });

  test("prints them for people too, with the text of the MTA-STS policy", async () => {
    const { code, out } = await desk.run("dns", "records", "--address", ADDRESS);
    expect(code).toBe(0);
    for (const { name, value, priority } of records)
      expect(out).toContain(`${name}\n      ${priority === null ? "" : `${priority} `}${value}\n`);
    expect(out).toContain("https://mta-sts.mail.acme.org/.well-known/mta-sts.txt");
    expect(out).toContain("mode: testing");
  });

  test("says that a name nobody can look up is of no use", async () => {
    await using local = await commandLine({ smtp: { hostname: "localhost" } });
    const { out } = await local.run("dns", "records");
    expect(out).toContain('smtp.hostname is "localhost", which nobody outside can look up');
    expect(out).not.toMatch(/^ +(10 )?(\S+\.)?localhost$/m);
    const { data } = await local.json("dns", "records", "--address", ADDRESS);
    const told = data.records.flatMap(({ name, value }: Printed) => [name, value]);
    expect(told.filter((text: string | null) => /(^|\.)localhost$/.test(text ?? ""))).toEqual([]);
  });

  test("offers no record for publishing that leads to a name without a dot", async () => {
    await using local = await commandLine({
      dns: { servers: [dns.address] },
      smtp: { hostname: "vm", domain: "mail.acme.org", mta_sts: "testing" },
      server: { base_url: "http://127.0.0.1:8080" },
      outbound: { mode: "direct" },
    });
    const when = 'once smtp.hostname is the public name of this machine: nobody outside can look up "vm"';
    const listed = await local.run("dns", "records", "--address", ADDRESS);
    expect(listed.out).toContain(`MX    mail.acme.org\n      required: ${when}\n`);
    const checked = await local.run("dns", "check");
    expect(checked.out).toContain(
      `missing  MX    mail.acme.org\n         It would lead to "vm", a name that nobody outside can look up.\n         publish: (${when})\n`,
    );
    const found = await local.run("doctor", "--web", "https://127.0.0.1:1/");
    expect(found.out).toContain(`Mend: Publish: mail.acme.org MX (${when})`);
    for (const { out } of [listed, checked, found]) {
      expect(out).not.toMatch(/(\b10|a:|CNAME|PTR) vm\b/);
      expect(out).not.toMatch(/\bvm A\b|A +vm\b/);
    }
  }, 20_000);

  test("leads the host of the MTA-STS policy to a name, also where base_url has none", async () => {
    await using bare = await commandLine({
      server: { base_url: "http://127.0.0.1:8080" },
      smtp: { hostname: "mx.acme.org", domain: "mail.acme.org", mta_sts: "testing" },
    });
    const { data } = await bare.json("dns", "records");
    const host = data.records.find(({ purpose }: Printed) => purpose === "mta_sts_host");
    expect(host.value).toBe("mx.acme.org");
  });

  test("refuses an address that is none, and a domain that is not ours", async () => {
    const bad = await desk.run("dns", "records", "--address", "here");
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining('"here" is not an IP address')]);
    const foreign = await desk.run("dns", "records", "other.org");
    expect([foreign.code, foreign.err]).toEqual([
      1,
      expect.stringContaining("other.org is no domain of this server"),
    ]);
  });

  test("has no private key in anything it prints", async () => {
    for (const words of [
      ["dns", "records"],
      ["dns", "records", "--zone"],
      ["dkim", "show"],
    ]) {
      const { out } = await desk.run(...words, "--json");
      expect(out).not.toContain("PRIVATE");
      expect(out).not.toContain("sealed");
    }
  });
});

const NAMED = Bun.which("/usr/sbin/named") ?? Bun.which("named");
const CHECKZONE = Bun.which("named-checkzone") ?? Bun.which("/usr/bin/named-checkzone");
if (!NAMED || !CHECKZONE) console.log("the zone file is not tried: apt-get install bind9 bind9-utils");

describe.skipIf(!NAMED || !CHECKZONE)("mailwright dns records --zone", () => {
  test("prints a zone file that BIND takes, with addresses known and not", async () => {
    for (const words of [["--address", ADDRESS], []]) {
      const { out } = await desk.run("dns", "records", "--zone", ...words);
      const path = join(desk.dir, "zone");
      await writeFile(path, out);
      const checked = Bun.spawnSync([CHECKZONE ?? "", "acme.org", path]);
      expect([checked.exitCode, checked.stdout.toString()]).toEqual([0, expect.stringContaining("OK")]);
    }
  });

  test("gives no SPF record with a relay, whose provider knows it: one that names this server alone would disown every answer", async () => {
    await using relayed = await commandLine({
      smtp: { hostname: "mx.acme.org", domain: "mail.acme.org" },
      outbound: { mode: "relay", relay_url: "smtps://relay.acme.org" },
    });
    const { out } = await relayed.run("dns", "records", "--zone");
    expect(out).toContain("; mail.acme.org. IN TXT …");
    expect(out).not.toContain("v=spf1 a:");
  });

  test("served by BIND as it stands, is all that `dns check` asks for, but the reverse entry", async () => {
    const { out: zone } = await desk.run("dns", "records", "--zone", "--address", ADDRESS);
    await using named = await startNamedWith(zone, "acme.org");
    const env = { ...process.env, MAILWRIGHT_DNS__SERVERS: named.address };
    const { data } = await jsonWith(env, desk);
    // However many keys there are by now.
    expect([...new Set(data.records.map(({ purpose, status }: Printed) => `${purpose} ${status}`))]).toEqual([
      "address ok",
      "inbound_mx ok",
      "spf ok",
      "dkim ok",
      "dmarc ok",
      "mta_sts ok",
      "mta_sts_host ok",
      "tls_rpt ok",
      "ptr unknown",
    ]);
  }, 30_000);
});

describe("mailwright dns check", () => {
  test("does not blame the domain where its own name server cannot be reached", async () => {
    await using lost = await commandLine({
      dns: { servers: ["127.0.0.1:9"] },
      smtp: { hostname: "mx.acme.org", domain: "mail.acme.org" },
      outbound: { mode: "direct" },
    });
    await lost.json("dns", "records");
    const { code, out, err } = await lost.run("dns", "check");
    expect(code).toBe(1);
    expect(err).toMatch(/Of \d required records the DNS did not say anything, so they may be right\./);
    expect(err).toContain("mailwright doctor");
    expect(out).toContain("The name server that this server asks cannot be reached");
    expect(out).not.toMatch(/publish:|of this domain have a fault|missing/);
  });

  test("finds nothing in an empty DNS, says what to publish, and ends with 1", async () => {
    await using empty = await startDnsServer();
    await using fresh = await commandLine({
      dns: { servers: [empty.address] },
      smtp: { hostname: "mx.acme.org", domain: "mail.acme.org", mta_sts: "testing" },
      outbound: { mode: "direct" },
    });
    const { data: wanted } = await fresh.json("dns", "records");
    const { code, data, err } = await fresh.json("dns", "check");
    expect([code, data.ok]).toEqual([1, false]);
    expect(err).toContain("4 required records are not right yet.");
    for (const { status } of data.records.filter(({ purpose }: Printed) => purpose !== "ptr"))
      expect(status).toBe("missing");
    const { out } = await fresh.run("dns", "check");
    expect(out).toContain("missing  MX    mail.acme.org");
    expect(out).toContain("publish: 10 mx.acme.org");
    expect(out).toContain(
      `publish: ${wanted.records.find(({ purpose }: Printed) => purpose === "dkim")?.value}`,
    );
  });

  test("finds all of it once it is published, and ends with 0", async () => {
    publishAll(dns, records);
    const { code, data } = await desk.json("dns", "check");
    expect(data.records.filter(({ status }: Printed) => status !== "ok")).toEqual([]);
    expect([code, data.ok]).toEqual([0, true]);
  });

  test("shows hostile records as text: no escape, no control, no turned letters reach the terminal", async () => {
    publishAll(dns, records);
    const evil = [
      "v=spf1 \u001b]0;owned\u0007 \u001b[2J\u009b31m \r\nfake line \u202egnp \u0000 -all",
      `v=spf1 ${"x".repeat(60_000)}`,
    ];
    dns.set("mail.acme.org", "TXT", evil);
    dns.set("_dmarc.mail.acme.org", "TXT", ["\u001b[31mv=DMARC1\u2028"]);
    for (const words of [
      ["dns", "check"],
      ["dns", "check", "--json"],
      ["doctor", "--web", "https://127.0.0.1:1/"],
    ]) {
      const { out, err } = await desk.run(...words);
      expect(out).toContain("v=spf1");
      for (const text of [out, err]) {
        // oxlint-disable-next-line no-control-regex -- none of these may reach a terminal
        expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]/);
        expect(text.split("\n").every((line) => line.length < 2_000)).toBe(true);
        expect(text).not.toMatch(/^fake line/m);
      }
    }
  }, 40_000);
});

describe("a check of the records", () => {
  let t: DomainDesk;
  beforeAll(async () => {
    const smtp = { hostname: "mx.acme.org", domain: "mail.acme.org", mta_sts: "testing" } as const;
    t = await domainDesk({ smtp, outbound: { mode: "direct" } });
  });
  afterAll(() => t[Symbol.asyncDispose]());

  type Change = (zone: TestDnsServer, records: OperatorRecord[]) => void;

  /** What it says when the DNS has everything but for one change. */
  async function checkAfter(change: Change): Promise<CheckedOperatorRecord[]> {
    const home = await findKeyHome(t.app);
    const wanted = await wantedRecords(t.app, home, [ADDRESS]);
    publishAll(t.dns, wanted);
    change(t.dns, wanted);
    return checkedRecords(t.app, home);
  }

  const BROKEN: [
    claim: string,
    purpose: string,
    change: Change,
    status: CheckedOperatorRecord["status"],
    reason: RegExp,
    required: boolean,
  ][] = [
    [
      "mail that goes elsewhere",
      "inbound_mx",
      (zone) => zone.set("mail.acme.org", "MX", [[5, "mx.other.org"]]),
      "mismatch",
      /Point its MX record to mx\.acme\.org/,
      true,
    ],
    [
      "an SPF record that leaves us out",
      "spf",
      (zone) => zone.set("mail.acme.org", "TXT", ["v=spf1 include:_spf.other.org -all"]),
      "mismatch",
      /does not name this server/,
      true,
    ],
    [
      "two SPF records",
      "spf",
      (zone) => zone.set("mail.acme.org", "TXT", ["v=spf1 -all", "v=spf1 a:mx.acme.org -all"]),
      "mismatch",
      /several SPF records/,
      true,
    ],
    [
      "an RSA key that was cut off",
      "dkim",
      (zone, records) => cut(zone, records, "s1"),
      "mismatch",
      /nothing of it was cut off/,
      true,
    ],
    [
      "an Ed25519 key that is missing, which is not needed",
      "dkim",
      (zone) => zone.remove("e1._domainkey.mail.acme.org"),
      "missing",
      /Publish it/,
      false,
    ],
    [
      "no DMARC record, which is not needed",
      "dmarc",
      (zone) => zone.remove("_dmarc.mail.acme.org"),
      "missing",
      /Publish it/,
      false,
    ],
    [
      "a reverse entry of the provider's",
      "ptr",
      (zone) => zone.set(PTR_NAME, "PTR", ["static-7.provider.net"]),
      "mismatch",
      /Set it to mx\.acme\.org/,
      true,
    ],
    ["no reverse entry", "ptr", (zone) => zone.remove(PTR_NAME), "missing", /Publish it/, true],
    [
      "a host without an address",
      "address",
      (zone) => zone.remove("mx.acme.org"),
      "missing",
      /mx\.acme\.org/,
      true,
    ],
    [
      "an id of another MTA-STS policy",
      "mta_sts",
      (zone) => zone.set("_mta-sts.mail.acme.org", "TXT", ["v=STSv1; id=1"]),
      "mismatch",
      /publish the new id/,
      false,
    ],
    ["a DNS that fails", "inbound_mx", (zone) => zone.fault("*", "servfail"), "pending", /SERVFAIL/, true],
  ];
  test.each(BROKEN)("tells of %s", async (_claim, ...row) => {
    const [purpose, change, status, reason, required] = row;
    const records = await checkAfter(change);
    const broken = records.find((one) => one.purpose === purpose && one.status !== "verified");
    expect([broken?.status, broken?.required]).toEqual([status, required]);
    expect(broken?.reason).toMatch(reason);
  });

  test("takes an SPF record in other words that means the same", async () => {
    for (const text of [
      `v=spf1 ip4:${ADDRESS} -all`,
      "v=spf1 mx ~all",
      "v=spf1 include:_spf.acme.org -all",
    ]) {
      const records = await checkAfter((zone) => {
        zone.set("_spf.acme.org", "TXT", ["v=spf1 ip4:203.0.113.0/28 -all"]);
        zone.set("mail.acme.org", "TXT", [text]);
      });
      expect([text, records.filter(({ status }) => status !== "verified")]).toEqual([text, []]);
    }
  });
});

describe("mailwright dkim", () => {
  test("shows the keys, makes new ones, and goes over to them once they are published", async () => {
    publishAll(dns, records);
    const selectors = async () =>
      (await desk.json("dkim", "show")).data.keys.map(
        ({ selector, state, signs }: { selector: string; state: string; signs: boolean }) =>
          `${selector} ${state} ${signs}`,
      );
    expect(await selectors()).toEqual(["s1 signing true", "e1 signing true"]);
    const made = await desk.json("dkim", "rotate");
    expect([made.code, made.data.step]).toEqual([0, "made"]);
    expect(await selectors()).toEqual([
      "s1 signing true",
      "s2 waiting false",
      "e1 signing true",
      "e2 waiting false",
    ]);
    const { out } = await desk.run("dkim", "rotate");
    expect(out).toContain("are not all to be seen yet");
    const printed: Printed[] = (await desk.json("dns", "records", "--address", ADDRESS)).data.records;
    expect(printed.filter(({ purpose }) => purpose === "dkim")).toHaveLength(4);
    for (const { type, name, value } of printed) if (type === "TXT") dns.set(name, "TXT", [value ?? ""]);
    expect((await desk.run("dkim", "rotate")).out).toContain("they sign from now on");
    expect(await selectors()).toEqual([
      "s1 retired false",
      "s2 signing true",
      "e1 retired false",
      "e2 signing true",
    ]);
    expect((await desk.run("dkim", "show")).out).toMatch(/Keep this record until \d{4}-\d\d-\d\d/);
  }, 40_000);

  test("refuses a domain that is not ours", async () => {
    const { code, err } = await desk.run("dkim", "rotate", "other.org");
    expect([code, err]).toEqual([1, expect.stringContaining("other.org is no domain of this server")]);
  });
});

describe("beside a running server", () => {
  test("a change of keys needs no restart: the server signs with what the command line has made", async () => {
    const smtp = { hostname: "mx.acme.org", domain: "own.acme.org" };
    await using own = await commandLine({ dns: { servers: [dns.address] }, smtp });
    const config = defaultConfig({
      data: { dir: own.dir },
      dns: { servers: [dns.address] },
      server: { listen: "127.0.0.1:0" },
      smtp: { ...smtp, listen: "127.0.0.1:0" },
      outbound: { mode: "direct" },
    });
    await using server = await serve(config, { log: createLog({ level: "silent", format: "text" }) });
    const signers = async () => (await serviceKeys(server.app)).map(({ selector }) => selector);
    expect(await signers()).toEqual(["s1", "e1"]);
    expect((await own.json("dkim", "rotate")).data.step).toBe("made");
    for (const { type, name, value } of (await own.json("dns", "records")).data.records)
      if (type === "TXT") dns.set(name, "TXT", [value]);
    const { db } = server.app;
    const planned = db.selectFrom("jobs").select("run_at").where("kind", "=", "check_service_keys");
    expect(await planned.execute()).toHaveLength(1);
    expect((await own.json("dkim", "rotate")).data.step).toBe("switched");
    expect(await signers()).toEqual(["s2", "e2"]);
  }, 30_000);
});

test("commands that need a server's data folder say so where there is none", async () => {
  await using empty = await commandLine();
  for (const words of [["dns", "check"], ["dkim", "show"], ["doctor"]]) {
    const { code, err } = await empty.run(...words);
    expect([code, err]).toEqual([1, expect.stringContaining("There is no Mailwright in the data folder")]);
  }
});

test("dns records makes nothing in a folder that is none of ours, and says where it looked", async () => {
  const wrong = await mkdtemp(join(tmpdir(), "mailwright-wrong-"));
  try {
    const child = Bun.spawn(
      [process.execPath, join(import.meta.dir, "../../src/main.ts"), "dns", "records"],
      {
        cwd: wrong,
        stderr: "pipe",
      },
    );
    const err = await new Response(child.stderr).text();
    expect(err).toStartWith(
      `There is no Mailwright in the data folder ${join(wrong, "data")}. Go to the folder`,
    );
    expect([await child.exited, await readdir(wrong)]).toEqual([1, []]);
  } finally {
    await rm(wrong, { recursive: true });
  }
});

function publishAll(
  zone: TestDnsServer,
  wanted: Pick<Printed, "type" | "name" | "value" | "priority">[],
): void {
  zone.fault("*", undefined);
  for (const { type, name, value, priority } of wanted)
    if (type === "MX") zone.set(name, "MX", [[priority ?? 0, value ?? ""]]);
    else zone.set(name, type as "TXT", [value ?? ""]);
}

function cut(zone: TestDnsServer, wanted: OperatorRecord[], selector: string): void {
  const record = wanted.find(({ name }) => name.startsWith(`${selector}.`));
  zone.set(record?.name ?? "", "TXT", [(record?.value ?? "").slice(0, 255)]);
}

async function jsonWith(env: Record<string, string | undefined>, at: CommandLine) {
  const config = join(at.dir, "../config.toml");
  const child = Bun.spawn([await builtBinary(), "dns", "check", "--json", "--config", config], {
    env,
    stdout: "pipe",
    stderr: "ignore",
  });
  return { data: JSON.parse(await new Response(child.stdout).text()) };
}

/** BIND as the authority of one zone. */
async function startNamedWith(zone: string, origin: string): Promise<{ address: string } & AsyncDisposable> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-named-"));
  await chmod(dir, 0o755);
  const port = await freePort();
  await writeFile(join(dir, "zone"), zone);
  await writeFile(
    join(dir, "named.conf"),
    `options { directory "${dir}"; pid-file "${dir}/pid"; session-keyfile "${dir}/key"; listen-on port ${port} { 127.0.0.1; };
     listen-on-v6 { none; }; recursion no; dnssec-validation no; };
     controls { };
     zone "${origin}" { type primary; file "${dir}/zone"; };`,
  );
  const run = Bun.spawn([NAMED ?? "", "-g", "-c", join(dir, "named.conf")], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const reader = run.stderr.getReader();
  let log = "";
  while (!log.includes(" running")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(log);
    log += new TextDecoder().decode(value);
  }
  return {
    address: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      run.kill();
      await run.exited;
      await rm(dir, { recursive: true });
    },
  };
}
