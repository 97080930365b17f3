import Sqlite from "better-sqlite3";
import { addInbox } from "../../src/resources/inboxes/inboxes.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { chmod, chown, mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server as TcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App } from "../../src/app.ts";
import { type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { findFaults, findOrphans } from "../../src/db/integrity.ts";
import type { Targets } from "../../src/operation/doctor/check.ts";
import { judgeSpace, judgeSync } from "../../src/operation/doctor/machine-checks.ts";
import { judgeSendingAddress } from "../../src/operation/doctor/mail-checks.ts";
import { examine } from "../../src/operation/doctor/doctor.ts";
import { ensureUser } from "../../src/resources/accounts/accounts.ts";
import { newConnection } from "../../src/resources/connections/connections.ts";
import { judgeAddresses } from "../../src/resources/domains/service-check.ts";
import { serviceRecords } from "../../src/resources/domains/service-records.ts";
import { holdKinds } from "../../src/jobs/holds.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { makeBackupsLater } from "../../src/backup/schedule.ts";
import { createLog } from "../../src/lib/log.ts";
import { serve } from "../../src/serve.ts";
import { createPeerCount } from "../../src/smtp/peers.ts";
import { type Authority, createAuthority } from "../support/authority.ts";
import { commandLine } from "../support/command-line.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { freePort } from "../support/free-port.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startClock } from "../support/own-time.ts";

const HOST = "mx.acme.org";
const PTR_NAME = "1.0.0.127.in-addr.arpa";

let dns: TestDnsServer;
let authority: Authority;
let folder: string;

beforeAll(async () => {
  dns = await startDnsServer();
  // The tests share a server: none may look at a record that an earlier one has changed.
  dns.ttl = 0;
  authority = await createAuthority();
  folder = await mkdtemp(join(tmpdir(), "mailwright-doctor-"));
});

afterAll(async () => {
  await dns[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

describe("a server with everything as it should be", () => {
  test("has no check that fails", async () => {
    await using desk = await doctorDesk();
    const findings = await desk.look();
    expect(findings.filter(({ verdict }) => verdict === "fail")).toEqual([]);
    // A busy machine may be slow to write.
    const rest = findings.filter(({ name }) => name !== "disk speed");
    expect(rest.filter(({ verdict }) => verdict === "warn").map(({ name }) => name)).toEqual([]);
    for (const { verdict, mend } of findings)
      expect(mend === undefined).toBe(verdict === "ok" || verdict === "skip");
    expect(findings.find(({ name }) => name === "administrator")?.found).toBe(
      "The account that is made first administers this server.",
    );
    const names = rest.filter(({ verdict }) => verdict === "ok").map(({ name }) => name);
    expect(names.toSorted()).toEqual([
      "DKIM e1 (ed25519)",
      "DKIM keys",
      "DKIM s1 (rsa)",
      "DMARC",
      "HTTPS certificate",
      "MTA-STS host",
      "MTA-STS policy",
      "MTA-STS record",
      "MX",
      "SPF",
      "STARTTLS certificate",
      "TLS reports",
      "address of the mail host (A)",
      "addresses",
      "administrator",
      "backup",
      "clock",
      "data folder",
      "database",
      "disk space",
      "held work",
      "jobs in question",
      "leaps of the clock",
      "mail files",
      "mail host name",
      "model provider",
      "name server",
      "outgoing mail",
      "port 25 in",
      "port 25 out",
      "registration",
      "reverse entry",
      "server",
      "web address",
      "webhook egress",
    ]);
  }, 30_000);
});

describe("what is wrong is found", () => {
  let desk: Desk;
  beforeAll(async () => {
    desk = await doctorDesk();
  });
  afterAll(() => desk[Symbol.asyncDispose]());
  beforeEach(() => desk.mend());

  type Break = (at: Desk) => void | Promise<void>;
  const BROKEN: [claim: string, name: string, verdict: string, found: RegExp, change: Break][] = [
    ["a stopped server", "server", "warn", /No server runs/, (at) => void (at.running = false)],
    [
      "a machine's own name",
      "mail host name",
      "fail",
      /"box"/,
      ({ app }) => void (app.config.smtp.hostname = "box"),
    ],
    [
      "a web address at which nothing answers",
      "HTTPS certificate",
      "fail",
      /^No certificate was shown at mx\.acme\.org, port 1: /,
      ({ app }) => void (app.config.server.base_url = `https://${HOST}:1`),
    ],
    [
      "inboxes at a former domain",
      "addresses",
      "warn",
      /1 at old\.acme\.org\. The next start moves them to mail\.acme\.org/,
      async ({ app, user }) => {
        const id = await user();
        const owner = await app.db
          .selectFrom("users")
          .selectAll()
          .where("id", "=", id)
          .executeTakeFirstOrThrow();
        await app.write((tx) => addInbox(app, tx, owner, {}));
        await app.db.updateTable("inboxes").set({ domain: "old.acme.org" }).execute();
      },
    ],
    [
      "captured mail",
      "outgoing mail",
      "warn",
      /kept here/,
      ({ app }) => void (app.config.outbound.mode = "capture"),
    ],
    [
      "open registration",
      "registration",
      "warn",
      /Everybody.*spend the model/,
      ({ app }) => void (app.config.auth.registration = "open"),
    ],
    [
      "open registration without a model of the operator's",
      "registration",
      "warn",
      /^Everybody with a mail address can make an account here\.$/,
      ({ app }) => {
        app.config.auth.registration = "open";
        app.config.llm.kind = "";
      },
    ],
    [
      "MX elsewhere",
      "MX",
      "fail",
      /another server/,
      () => dns.set("mail.acme.org", "MX", [[1, "mx.other.org"]]),
    ],
    ["no address", "address of the mail host (A)", "fail", /knows no name/, () => dns.remove(HOST)],
    ["no SPF", "SPF", "fail", /Publish it/, () => dns.set("mail.acme.org", "TXT", ["hello"])],
    [
      "no RSA record",
      "DKIM s1 (rsa)",
      "fail",
      /knows no name/,
      () => dns.remove("s1._domainkey.mail.acme.org"),
    ],
    [
      "no Ed25519 record",
      "DKIM e1 (ed25519)",
      "warn",
      /knows no name/,
      () => dns.remove("e1._domainkey.mail.acme.org"),
    ],
    ["no DMARC", "DMARC", "warn", /knows no name/, () => dns.remove("_dmarc.mail.acme.org")],
    [
      "another reverse entry",
      "reverse entry",
      "fail",
      /static/,
      () => dns.set(PTR_NAME, "PTR", ["static.isp.net"]),
    ],
    [
      "no MTA-STS record",
      "MTA-STS record",
      "warn",
      /knows no name/,
      () => dns.remove("_mta-sts.mail.acme.org"),
    ],
    [
      "no TLS reports",
      "TLS reports",
      "warn",
      /v=TLSRPTv1/,
      () => dns.set("_smtp._tls.mail.acme.org", "TXT", ["x"]),
    ],
    [
      "no MTA-STS host",
      "MTA-STS policy",
      "fail",
      /could not be fetched/,
      () => dns.remove("mta-sts.mail.acme.org"),
    ],
    [
      "a blocked port 25",
      "port 25 out",
      "fail",
      /could not be reached/,
      (at) => void (at.targets.mail_port = 1),
    ],
    [
      "nothing at our port 25",
      "port 25 in",
      "fail",
      /Nothing answers at 127\.0\.0\.1 port 1/,
      (at) => void (at.targets.mail_port = 1),
    ],
    [
      "a certificate of nobody known",
      "STARTTLS certificate",
      "fail",
      /not trusted/,
      (at) => void delete at.targets.ca,
    ],
    [
      "a certificate of another name",
      "STARTTLS certificate",
      "fail",
      /not for mx2/,
      ({ app }) => void (app.config.smtp.hostname = "mx2.acme.org"),
    ],
    [
      "a certificate near its end",
      "STARTTLS certificate",
      "warn",
      /good for \d days/,
      (at) => at.daysOn(355),
    ],
    ["a certificate that has ended", "STARTTLS certificate", "fail", /ended/, (at) => at.daysOn(400)],
    ["no web address", "web address", "warn", /not set/, ({ app }) => void (app.config.server.base_url = "")],
    [
      "nothing at the web address",
      "web address",
      "fail",
      /Nothing answers/,
      ({ app }) => void (app.config.server.base_url = "https://127.0.0.1:1"),
    ],
    [
      "somebody else at the web address",
      "web address",
      "fail",
      /not this server/,
      ({ app, web }) => void (app.config.server.base_url = web.url),
    ],
    [
      "a web address with a certificate of another name",
      "web address",
      "fail",
      /^https:\S+ answers, but nobody can trust it: The server's TLS certificate/,
      ({ app }) =>
        void (app.config.server.base_url = app.config.server.base_url.replace("mail.acme.org", "localhost")),
    ],
    [
      "a web certificate of another name",
      "HTTPS certificate",
      "fail",
      /not for localhost/,
      ({ app }) =>
        void (app.config.server.base_url = app.config.server.base_url.replace("mail.acme.org", "localhost")),
    ],
    [
      "no way out for webhooks",
      "webhook egress",
      "fail",
      /could not be reached/,
      (at) => void (at.targets.web_url = "https://127.0.0.1:1/"),
    ],
    ["a clock that is slow", "clock", "fail", /\d+ seconds slow/, ({ web }) => void (web.ahead_ms = 90_000)],
    ["a clock that has leapt", "leaps of the clock", "warn", /9 days ahead/, (at) => at.daysOn(9)],
    [
      "a job in the middle of which the server ended again and again",
      "jobs in question",
      "warn",
      /^1 job waits while others are tried/,
      (at) => at.suspect(),
    ],
    [
      "work that is held",
      "held work",
      "warn",
      /^Held by the operator: route_message, send_mail\./,
      ({ app }) => app.write((tx) => holdKinds(tx, ["send_mail", "route_message"], app.now())),
    ],
    ["a clock that is fast", "clock", "fail", /\d+ seconds fast/, ({ web }) => void (web.ahead_ms = -90_000)],
    [
      "nothing that tells the time",
      "clock",
      "skip",
      /nothing to compare/,
      (at) => void (at.targets.web_url = "https://127.0.0.1:1/"),
    ],
    [
      "a refused model key",
      "model provider",
      "fail",
      /did not accept/,
      ({ web }) => void (web.model_status = 401),
    ],
    [
      "a model provider that is away",
      "model provider",
      "fail",
      /could not be reached/,
      ({ app }) => void (app.config.llm.base_url = "http://127.0.0.1:1/v1"),
    ],
    ["the demo model", "model provider", "warn", /no AI/, ({ app }) => void (app.config.llm.kind = "demo")],
    [
      "an old backup",
      "backup",
      "warn",
      /9 days old/,
      ({ dir }) => utimes(join(dir, "backups/a.zip"), ago(9), ago(9)),
    ],
    ["no backup", "backup", "warn", /There is no backup/, ({ dir }) => rm(join(dir, "backups/a.zip"))],
    ["an open data folder", "data folder", "warn", /can look into/, ({ dir }) => chmod(dir, 0o755)],
  ];
  test.each(BROKEN)("%s", async (_claim, ...row) => {
    const [name, verdict, found, change] = row;
    await change(desk);
    const finding = (await desk.look()).find((one) => one.name === name && one.verdict === verdict);
    expect(finding?.found).toMatch(found);
    if (verdict !== "skip") expect(finding?.mend?.length).toBeGreaterThan(10);
  });

  test("models of accounts are told of as they were last found, and none is asked", async () => {
    const { app } = desk;
    const seen = async () => (await desk.look()).find(({ name }) => name === "models of accounts");
    expect(await seen()).toMatchObject({ verdict: "skip" });
    const user = await app.write((tx) => ensureUser(app, tx, "cleo@example.com"));
    const row = newConnection(app, user, "openai_compatible");
    const base_url = `${desk.web.url}/v1`;
    const model = { ...row, label: "Lab", base_url, model: "m" };
    await app.db.insertInto("connections").values(model).execute();
    const untested = await seen();
    expect([untested?.verdict, untested?.found]).toEqual(["ok", expect.stringContaining("1 of them")]);
    const failed = {
      status: "error" as const,
      last_tested_at: 1_768_478_400,
      last_error: "Lab (500) has a fault of its own. It said: the words of a mail",
    };
    await app.db.updateTable("connections").set(failed).execute();
    const { verdict, found, mend } = (await seen()) ?? {};
    expect(verdict).toBe("warn");
    expect(found).toContain(
      "1 of 1 model connections of accounts did not work when last tested or asked. “Lab” of cleo@example.com, at least since Thursday, 2026-01-15, 12:00 (UTC): Lab (500) has a fault of its own.",
    );
    expect(found).not.toContain("the words of a mail");
    expect(mend).toContain("Connections");
    await app.db.updateTable("connections").set({ status: "ok", last_error: null }).execute();
    expect(await seen()).toMatchObject({ verdict: "ok" });
    await app.db.deleteFrom("connections").execute();
  });

  test("a schedule that is set is not asked for, and what it will do or could not do is said", async () => {
    const seen = async () => (await desk.look()).find(({ name }) => name === "backup");
    const { app } = desk;
    await rm(join(desk.dir, "backups/a.zip"));
    app.config.backup.schedule = "30 3 * * *";
    const unplanned = await seen();
    expect([unplanned?.verdict, unplanned?.mend]).toEqual([
      "warn",
      expect.stringMatching(/^\[backup\] schedule is set, and a server that runs keeps it/),
    ]);
    await app.write((tx) => makeBackupsLater(app, tx));
    const planned = await seen();
    expect([planned?.verdict, planned?.found]).toEqual([
      "skip",
      expect.stringMatching(/^There is no backup yet; the first one is made at \d{4}-\d\d-\d\d 03:30 UTC\.$/),
    ]);
    const failed = { failures: 1, last_error: "The disk is full." };
    await app.db.updateTable("jobs").set(failed).where("kind", "=", "make_backup").execute();
    expect(await seen()).toMatchObject({
      verdict: "fail",
      found: "The last backup failed: The disk is full.",
      mend: expect.stringMatching(/^It is tried again at /),
    });
    await app.db.deleteFrom("jobs").where("kind", "=", "make_backup").execute();
  });

  test("no sentence names an option of a function", async () => {
    const { app } = desk;
    app.config.server.base_url = "https://127.0.0.1:1";
    desk.targets.web_url = "https://127.0.0.1:1/";
    const findings = await desk.look();
    for (const { found, mend = "" } of findings)
      expect(found + mend).not.toMatch(/verbose|fetch\(|second argument/);
  });

  test("a backup that is made as doctor says is one that it sees", async () => {
    const seen = async () => (await desk.look()).find(({ name }) => name === "backup");
    await rm(join(desk.dir, "backups"), { recursive: true });
    const [, ...commands] =
      /(mkdir \S+) && mailwright backup (\S+\.zip)/.exec((await seen())?.mend ?? "") ?? [];
    const [folder = "", path = ""] = commands.map((words) => words.replace("mkdir ", ""));
    await mkdir(folder);
    expect((await seen())?.mend).not.toContain("mkdir");
    await writeFile(path, "x");
    const made = await seen();
    await rm(path);
    expect(made).toMatchObject({ verdict: "ok" });
  });

  test("with a relay the SPF record is what its provider says, missing or one of several", async () => {
    const { outbound, smtp } = desk.app.config;
    Object.assign(outbound, { mode: "relay", relay_url: "smtp://127.0.0.1:1" });
    const seen = async () => (await desk.look()).find(({ name }) => name === "SPF");
    dns.set(smtp.domain, "TXT", []);
    const missing = await seen();
    expect([missing?.verdict, missing?.mend]).toEqual([
      "warn",
      expect.stringContaining("what the provider of your relay says"),
    ]);
    dns.set(smtp.domain, "TXT", ["v=spf1 include:a.example ~all", "v=spf1 -all"]);
    const several = await seen();
    expect(several?.verdict).toBe("warn");
    expect(JSON.stringify(several)).not.toContain(`a:${smtp.hostname}`);
    dns.set(smtp.domain, "TXT", ["v=spf1 include:a.example ~all"]);
    expect(await seen()).toMatchObject({ verdict: "ok" });
  });

  test("custom domains whose records were not right", async () => {
    const row = {
      id: "a",
      user_id: await desk.user(),
      domain: "ai.acme.test",
      status: "active" as const,
      ownership_token: "x",
      findings: "{}",
      misses: 0,
      created: 1,
      verified_at: 1,
      last_checked_at: 1,
    };
    await desk.app.db
      .insertInto("custom_domains")
      .values({ ...row, error: null })
      .execute();
    const seen = async () => (await desk.look()).find(({ name }) => name === "custom domains")?.verdict;
    expect(await seen()).toBe("ok");
    await desk.app.db.updateTable("custom_domains").set({ error: "Inbound mail: gone" }).execute();
    expect(await seen()).toBe("warn");
    await desk.app.db.deleteFrom("custom_domains").execute();
  });

  test("mail that all comes from one private address, and worse, from one that is trusted", async () => {
    const { app } = desk;
    const seen = async () => (await desk.look()).find(({ name }) => name === "where mail comes from");
    const countPeer = createPeerCount(app);
    const bring = async (address: string, mails: number) => {
      for (let mail = 0; mail < mails; mail++) countPeer(address);
      // Behind whatever it has written.
      await app.write(() => Promise.resolve());
    };
    expect((await seen())?.verdict).toBe("skip");
    await bring("172.17.0.1", 7);
    expect((await seen())?.verdict).toBe("skip");
    await bring("172.17.0.1", 1);
    expect(await seen()).toMatchObject({ verdict: "warn", mend: expect.stringContaining("proxy_protocol") });
    app.config.smtp.trusted_networks = ["172.16.0.0/12"];
    expect(await seen()).toMatchObject({ verdict: "fail", mend: expect.stringContaining("Take it out") });
    await bring("203.0.113.9", 1);
    expect((await seen())?.verdict).toBe("ok");
    await app.db.deleteFrom("installation").where("name", "=", "smtp_peers").execute();
  });

  test("the login at a relay: right, wrong, not offered, not needed, and nobody there", async () => {
    await using relay = await startSmtpSink({ auth: { user: "ada", password: "secret-word" } });
    desk.app.config.outbound.mode = "relay";
    const at = async (login: string, port = relay.port) => {
      desk.app.config.outbound.relay_url = `smtp://${login === "" ? "" : `${login}@`}127.0.0.1:${port}`;
      return (await desk.look()).find(({ name }) => name === "relay login");
    };
    expect(await at("ada:secret-word")).toMatchObject({ verdict: "ok" });
    const wrong = await at("ada:other-word");
    expect([wrong?.verdict, wrong?.found]).toEqual(["fail", expect.stringMatching(/535/)]);
    expect(wrong?.found).not.toContain("other-word");
    expect(await at("ada:secret-word", 1)).toMatchObject({ verdict: "fail" });
    expect((await at("ada"))?.found).toContain("outbound.relay_url names a user and no password");
    await using open = await startSmtpSink();
    const unused = await at("ada:secret-word", open.port);
    expect(unused).toMatchObject({ verdict: "fail", found: expect.stringContaining("offers no login") });
    expect(await at("", open.port)).toMatchObject({
      verdict: "ok",
      found: "The relay answers; no login is set. Nothing was sent.",
    });
    expect((await at("", 1))?.found).toContain("nothing answers at 127.0.0.1:1");
    expect(relay.mails).toEqual([]);
  });

  test("a relay that refuses the senders of notices, of answers, or none", async () => {
    const auth = { user: "ada", password: "secret-word" };
    let refuse = (_address: string): boolean => false;
    const reject_sender = (address: string) => (refuse(address) ? "553 5.7.1 not yours" : undefined);
    await using relay = await startSmtpSink({ auth, reject_sender });
    const relay_url = `smtp://ada:secret-word@127.0.0.1:${relay.port}`;
    Object.assign(desk.app.config.outbound, { mode: "relay", relay_url });
    const look = async () => (await desk.look()).find(({ name }) => name === "relay senders");
    expect((await look())?.verdict).toBe("ok");
    refuse = (address) => address === "";
    expect(await look()).toMatchObject({
      verdict: "warn",
      found: expect.stringContaining("553 5.7.1 not yours"),
    });
    refuse = (address) => address.startsWith("b+");
    expect(await look()).toMatchObject({
      verdict: "fail",
      mend: expect.stringContaining("send from all addresses"),
    });
    desk.app.config.outbound.relay_url = "smtp://127.0.0.1:1";
    expect((await look())?.verdict).toBe("skip");
    expect(relay.mails).toEqual([]);
  });

  test("a relay that is spoken to in TLS where it waits for STARTTLS", async () => {
    await using relay = await startSmtpSink();
    Object.assign(desk.app.config.outbound, { mode: "relay", relay_url: `smtps://127.0.0.1:${relay.port}` });
    expect((await desk.look()).find(({ name }) => name === "relay login")).toMatchObject({
      verdict: "fail",
      found: `The relay speaks no TLS from the first byte at port ${relay.port}.`,
      mend: "In outbound.relay_url, write smtp:// for this port, which uses STARTTLS, or take port 465.",
    });
  });

  test("another server at our port 25", async () => {
    await using sink = await startSmtpSink();
    desk.targets.mail_port = sink.port;
    const finding = (await desk.look()).find(({ name }) => name === "port 25 in");
    expect(finding).toMatchObject({
      verdict: "fail",
      found: expect.stringContaining("Another server answers"),
    });
  });

  test("whatever hangs ends in time, and all else is told", async () => {
    await using silent = await silentServer();
    // One of its own, whose questions still wait for the DNS when the test ends.
    await using desk = await doctorDesk();
    desk.targets.mail_port = silent.port;
    desk.targets.web_url = `http://127.0.0.1:${silent.port}/`;
    desk.app.config.llm.base_url = `http://127.0.0.1:${silent.port}/v1`;
    dns.fault("mail.acme.org", "drop");
    using clock = startClock();
    const findings = await desk.look(1_500);
    expect(clock.ms()).toBeLessThan(5_000);
    const late = findings.filter(({ found }) => found.includes("within 1.5 seconds")).map(({ name }) => name);
    for (const name of ["DNS records", "port 25 in", "web address", "model provider"])
      expect(late).toContain(name);
    expect(findings.find(({ name }) => name === "database")?.verdict).toBe("ok");
  });

  const REFUSALS: [fault: "refused" | "servfail", found: string, mend: string][] = [
    ["refused", "refuses to answer this machine", "must be told that this machine may ask"],
    ["servfail", "(SERVFAIL)", "Restart it and see its log"],
  ];
  test.each(REFUSALS)("a name server that answers %s is told with the mend", async (fault, found, mend) => {
    dns.fault("*", fault);
    const findings = await desk.look().finally(() => dns.fault("*", undefined));
    const server = findings.find(({ name }) => name === "name server");
    expect(findings.find(({ name }) => name === "port 25 in")?.verdict).toBe("skip");
    expect(server?.verdict).toBe("fail");
    expect(server?.mend).toContain(mend);
    expect(server?.found).toContain(`${dns.address} `);
    expect(server?.found).toContain(found);
    expect(server?.mend).toContain('dns.servers = ["127.0.0.1"]');
    for (const name of ["MX", "DMARC"])
      expect(findings.find((one) => one.name === name)?.mend).toContain(
        'If the line "name server" is not ok',
      );
  });

  test("one domain without an answer is not blamed on the resolver", async () => {
    dns.fault("mail.acme.org", "servfail");
    const findings = await desk.look();
    expect(findings.find(({ name }) => name === "name server")?.verdict).toBe("ok");
    expect(findings.find(({ name }) => name === "MX")).toMatchObject({
      verdict: "warn",
      mend: expect.stringContaining("name servers of that domain"),
    });
  });

  const SHOWN = new Set(["STARTTLS certificate", "HTTPS certificate", "web address", "MTA-STS policy"]);
  test("certificates of an authority of one's own are good where acme.ca_file names it", async () => {
    delete desk.targets.ca;
    desk.app.config.acme.ca_file = join(desk.dir, "root.pem");
    await writeFile(desk.app.config.acme.ca_file, authority.cert);
    const verdicts = async () =>
      (await desk.look()).filter(({ name }) => SHOWN.has(name)).map(({ verdict }) => verdict);
    expect(await verdicts()).toEqual(["ok", "ok", "ok", "ok"]);
    await writeFile(desk.app.config.acme.ca_file, (await createAuthority()).cert);
    expect(await verdicts()).toEqual(["fail", "fail", "fail", "fail"]);
    desk.app.config.acme.ca_file = join(desk.dir, "gone.pem");
    const unread = (await desk.look()).find(({ name }) => name === "STARTTLS certificate");
    expect(unread).toMatchObject({
      verdict: "fail",
      found: expect.stringContaining("acme.ca_file cannot be read"),
      mend: "Set it to a file in PEM form that this user may read.",
    });
  });

  test("a certificate that is not trusted is told with who gave it, and what to do", async () => {
    delete desk.targets.ca;
    const shown = async () => (await desk.look()).find(({ name }) => name === "STARTTLS certificate");
    const unknown = await shown();
    expect(unknown?.found).toContain("given by Test authority,");
    for (const word of ["fullchain.pem", "acme.ca_file", 'server.tls = "acme"'])
      expect(unknown?.mend).toContain(word);
    const staging = await createAuthority("(STAGING) Pretend Pear");
    const { cert, key } = await staging.issue(HOST);
    const before = await desk.app.certificates.current();
    await desk.app.certificates.swap({ cert, key });
    const test_one = await shown().finally(() => desk.app.certificates.swap(before));
    expect(test_one?.mend).toContain("take the address of the testing service out of acme.directory");
  });

  test("a DNS that never answers is told record by record, within the time of one check", async () => {
    const { resolver } = desk.app;
    // A lookup is given up after a quarter of the time that a check has, as outside of tests.
    desk.app.resolver = async (_name, rrtype) => {
      await Bun.sleep(250);
      throw Object.assign(new Error("no answer"), { code: "ETIMEOUT", rrtype });
    };
    const findings = await desk.look(1_000).finally(() => (desk.app.resolver = resolver));
    for (const name of ["MX", "SPF", "DMARC", "DKIM s1 (rsa)", "MTA-STS host"])
      expect(findings.find((finding) => finding.name === name)).toMatchObject({
        verdict: "warn",
        found: expect.stringContaining("The DNS did not answer in time"),
        mend: expect.stringContaining("dns.servers"),
      });
    const mends = (name: string) => findings.find((finding) => finding.name === name)?.mend;
    expect(mends("name server")).toContain("port 53");
    expect(mends("port 25 out")).toContain('If the line "name server" is not ok');
  });

  test("a name server that cannot be reached is told once, and not again for each record", async () => {
    const { resolver } = desk.app;
    desk.app.resolver = async (_name, rrtype) => {
      throw Object.assign(new Error("no route"), { code: "ETIMEOUT", rrtype, unreached: true });
    };
    const findings = await desk.look().finally(() => (desk.app.resolver = resolver));
    expect(findings.find(({ name }) => name === "name server")?.verdict).toBe("fail");
    expect(findings.find(({ name }) => name === "DNS records")).toMatchObject({
      verdict: "skip",
      found: expect.stringContaining('see the line "name server"'),
    });
    expect(findings.filter(({ name }) => ["MX", "SPF", "DMARC"].includes(name))).toEqual([]);
  });

  test("nothing is changed by looking", async () => {
    // One of its own: a clock that leapt in another case has this server plan its work anew at some time.
    await using desk = await doctorDesk();
    const rows = async () => {
      const tables = await desk.app.db.introspection.getTables();
      const counts = tables.map(async ({ name }) => [
        name,
        await desk.app.db
          .selectFrom(name as "users")
          .selectAll()
          .execute(),
      ]);
      return JSON.stringify(await Promise.all(counts));
    };
    // What its start has planned is done: the rest waits for its time.
    await desk.app.worker?.drain();
    const before = await rows();
    await desk.look();
    expect(await rows()).toBe(before);
  });
});

describe("by themselves", () => {
  test("an address in the DNS is this machine, another, or cannot be told", () => {
    expect(judgeAddresses(["203.0.113.7"], ["203.0.113.7"])).toMatchObject({
      status: "verified",
      reason: "It is this machine.",
    });
    expect(judgeAddresses(["203.0.113.9"], ["203.0.113.7"])).toMatchObject({ status: "mismatch" });
    expect(judgeAddresses(["203.0.113.9"], []).reason).toContain("cannot be seen");
  });

  test("the disk is roomy, low, or full, and quick or slow", () => {
    const verdicts = [5_000, 500, 50].map(
      (mb) => judgeSpace({ bytes: mb * 1_048_576, files: null }, "/data").verdict,
    );
    expect(verdicts).toEqual(["ok", "warn", "fail"]);
    const roomy = { bytes: 5_000 * 1_048_576 };
    const files = [1_000_000, 5_000, 50].map(
      (count) => judgeSpace({ ...roomy, files: count }, "/data").verdict,
    );
    expect(files).toEqual(["ok", "warn", "fail"]);
    expect([5, 500].map((ms) => judgeSync(ms).verdict)).toEqual(["ok", "warn"]);
  });

  test("the address that mail goes out from is the host's, another, or hidden by a router", () => {
    const host = { hostname: HOST, known: ["203.0.113.7"] };
    expect(judgeSendingAddress("198.51.100.9", host).verdict).toBe("skip");
    expect(judgeSendingAddress("8.8.4.4", { ...host, known: ["8.8.4.4"] }).verdict).toBe("ok");
    expect(judgeSendingAddress("8.8.4.4", host).verdict).toBe("fail");
  });

  test("a database with a broken page, and one that is no database, are told; a changed letter in a text is not", async () => {
    const path = join(folder, "broken.db");
    const { Database } = await import("bun:sqlite");
    {
      using made = new Database(path);
      made.run("create table t (a text)");
      for (let row = 0; row < 500; row++) made.run("insert into t values (?)", ["x".repeat(100)]);
    }
    expect([await findFaults(path), await findOrphans(path)]).toEqual([[], []]);
    {
      using made = new Database(path);
      made.run("create table u (id integer primary key, above integer references u (id))");
      made.run("insert into u values (1, 1), (2, 1000), (3, 1001)");
    }
    expect([await findFaults(path), await findOrphans(path)]).toEqual([
      [],
      ["2 rows of u name others that are not there"],
    ]);
    const bytes = await Bun.file(path).bytes();
    // A letter of a text: nobody can tell that it was another one.
    bytes[9_000] = (bytes[9_000] as number) ^ 1;
    await writeFile(path, bytes);
    expect(await findFaults(path)).toEqual([]);
    bytes.fill(0xff, 8_192, 9_000);
    await writeFile(path, bytes);
    expect((await findFaults(path))?.length).toBeGreaterThan(0);
    await writeFile(path, "no database at all, but long enough to be taken for one by its size".repeat(100));
    expect((await findFaults(path))?.[0]).toContain("not a database");
  });
});

test("mailwright doctor prints verdicts as lines and as JSON, and ends with 1 when a check fails", async () => {
  await using desk = await commandLine({
    dns: { servers: [dns.address] },
    smtp: { hostname: HOST, domain: "none.acme.org" },
  });
  await desk.run("dns", "records");
  const web = ["--web", "https://127.0.0.1:1/"];
  const { code, data, err } = await desk.json("doctor", ...web);
  expect([code, data.ok]).toEqual([1, false]);
  expect(err).toMatch(/^\d checks failed\.$/m);
  const mx = data.checks.find(({ name }: { name: string }) => name === "MX");
  expect(mx).toEqual({
    name: "MX",
    verdict: "fail",
    found: expect.any(String),
    mend: `Publish: none.acme.org MX 10 ${HOST}`,
  });
  const { out } = await desk.run("doctor", ...web);
  expect(out).toStartWith("This server mails nothing to anybody");
  expect(out).toContain(`fail  MX: none.acme.org MX:`);
  expect(out).toContain(`      Mend: Publish: none.acme.org MX 10 ${HOST}`);
  expect(out).toMatch(/\d+ ok, \d+ to look at, \d+ failed, \d+ not looked at\./);
}, 20_000);

test("mailwright doctor tells of a master key that others can read, of a damaged key for DKIM, and of files of another user", async () => {
  await using desk = await commandLine({ dns: { servers: [dns.address] }, smtp: { hostname: "localhost" } });
  await desk.run("dns", "records");
  const check = async (wanted: string) => {
    const { data } = await desk.json("doctor", "--web", "https://127.0.0.1:1/");
    return data.checks.find(({ name }: { name: string }) => name === wanted);
  };
  const folderCheck = () => check("data folder");
  await chmod(join(desk.dir, "master.key"), 0o644);
  expect(await folderCheck()).toMatchObject({ verdict: "fail", found: expect.stringContaining("chmod 600") });
  await chmod(join(desk.dir, "master.key"), 0o600);
  expect((await folderCheck()).verdict).toBe("ok");
  const sqlite = new Sqlite(join(desk.dir, "mailwright.db"));
  sqlite.prepare("update dkim_keys set sealed = x'00' where selector = 's1'").run();
  sqlite.close();
  expect(await check("DKIM keys")).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining("s1 of "),
    mend: expect.stringContaining("mailwright dkim rotate"),
  });
  if (process.getuid?.() !== 0) return;
  await chown(join(desk.dir, "mail"), 65_534, 65_534);
  expect(await folderCheck()).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining("another user"),
  });
}, 20_000);

interface Web {
  url: string;
  /** How far its clock is ahead of ours. */
  ahead_ms: number;
  model_status: number;
}

interface Desk extends AsyncDisposable {
  app: App;
  dir: string;
  targets: Targets;
  running: boolean;
  web: Web;
  look(check_ms?: number): ReturnType<typeof examine>;
  /** Puts all back as it was. */
  mend(): Promise<void>;
  daysOn(days: number): void;
  /** Has a job wait that the server did not outlive five times. */
  suspect(): Promise<void>;
  user(): Promise<string>;
}

/** A running server with certificates, its records in the DNS, and a web and a model beside it. */
async function doctorDesk(): Promise<Desk> {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(folder, "data-"));
  const ports = { http: await freePort(), smtp: await freePort() };
  const web: Web = { url: "", ahead_ms: 0, model_status: 200 };
  const pages = stack.use(webServer(web));
  web.url = `http://127.0.0.1:${pages.port}`;
  await layCertificate(dir);
  const config = doctorConfig(dir, ports, web);
  let shift_ms = 0;
  const server = stack.use(
    await serve(config, {
      log: createLog({ level: "silent", format: "text" }),
      nowMs: () => Date.now() + shift_ms,
    }),
  );
  const { app } = server;
  const usual = structuredClone(app.config);
  const desk: Desk = {
    app,
    dir,
    web,
    running: true,
    targets: {} as Targets,
    look: (check_ms = 15_000) => examine(app, { running: desk.running, targets: desk.targets, check_ms }),
    async mend() {
      shift_ms = 0;
      await app.db.deleteFrom("inboxes").execute();
      desk.running = true;
      Object.assign(web, { ahead_ms: 0, model_status: 200 });
      Object.assign(app.config, structuredClone(usual));
      desk.targets = {
        mail_domain: "someone.acme.org",
        mail_port: ports.smtp,
        https_port: ports.http,
        web_url: `${web.url}/`,
        ca: authority.cert,
      };
      await app.db.deleteFrom("jobs").where("kind", "=", "fan_out_event").execute();
      await publishAll(app);
      dns.set("someone.acme.org", "MX", [[1, HOST]]);
      await chmod(dir, 0o700);
      await mkdir(join(dir, "backups"), { recursive: true });
      await writeFile(join(dir, "backups/a.zip"), "x");
    },
    daysOn: (days) => void (shift_ms = days * 86_400_000),
    suspect: () =>
      app.write(async (tx) => {
        const run_at = app.now() + 5;
        const job = await enqueue(app, tx, { kind: "fan_out_event", payload: { event_id: "e" }, run_at });
        await tx
          .updateTable("jobs")
          .set({ attempts: 5 })
          .where("id", "=", job?.id as string)
          .execute();
      }),
    user: async () => {
      const user = {
        id: Bun.randomUUIDv7(),
        email: `${crypto.randomUUID()}@example.com`,
        email_verified: 1,
        plan: "team" as const,
        is_admin: 0,
        name: null,
        created: 1,
        password_hash: null,
        timezone: "UTC",
        reply_footer: 1,
      };
      await app.db.insertInto("users").values(user).execute();
      return user.id;
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
  await desk.mend();
  const built = stack.move();
  return desk;
}

function doctorConfig(dir: string, ports: { http: number; smtp: number }, web: Web) {
  const overrides: ConfigOverrides = {
    data: { dir },
    dns: { servers: [dns.address] },
    server: {
      listen: `127.0.0.1:${ports.http}`,
      base_url: `https://mail.acme.org:${ports.http}`,
      tls: "files",
      cert: join(dir, "cert.pem"),
      key: join(dir, "key.pem"),
    },
    smtp: {
      listen: `127.0.0.1:${ports.smtp}`,
      hostname: HOST,
      domain: "mail.acme.org",
      early_talker_ms: 0,
      mta_sts: "testing",
    },
    // All knocking comes from here.
    limits: { smtp_connections_per_ip_minute: 0 },
    outbound: { mode: "direct" },
    auth: { registration: "closed" },
    egress: { allow: ["127.0.0.1"] },
    webhooks: { allow: ["127.0.0.1"] },
    llm: { kind: "openai_compatible", base_url: `${web.url}/v1`, api_key: "k", model: "m" },
  };
  return defaultConfig(overrides);
}

/** One certificate for all the names that lead to the server. */
async function layCertificate(dir: string): Promise<void> {
  const { generate } = await import("selfsigned");
  const altNames = [HOST, "mail.acme.org", "mta-sts.mail.acme.org"].map((value) => ({
    type: 2 as const,
    value,
  }));
  const leaf = await generate([{ name: "commonName", value: HOST }], {
    keyType: "ec",
    curve: "P-256",
    ca: { key: authority.key, cert: authority.cert },
    extensions: [{ name: "subjectAltName", altNames }],
  });
  await writeFile(join(dir, "cert.pem"), `${leaf.cert}\n${authority.cert}`);
  await writeFile(join(dir, "key.pem"), leaf.private, { mode: 0o600 });
}

async function publishAll(app: App): Promise<void> {
  dns.fault("mail.acme.org", undefined);
  for (const { type, name, value, priority } of await serviceRecords(app, ["127.0.0.1"]))
    if (type === "MX") dns.set(name, "MX", [[priority ?? 0, value ?? ""]]);
    else dns.set(name, type, [value ?? ""]);
  dns.set("mail.acme.org", "A", ["127.0.0.1"]);
}

/** A page of somebody else's, and a model's interface. */
function webServer(web: Web) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => {
      if (url.includes("/v1/")) return Response.json({ data: [{ id: "m" }] }, { status: web.model_status });
      return new Response("hello", { headers: { date: new Date(Date.now() + web.ahead_ms).toUTCString() } });
    },
  });
  return { port: server.port, [Symbol.asyncDispose]: () => server.stop(true) };
}

/** Takes connections and says nothing. */
async function silentServer(): Promise<{ port: number } & AsyncDisposable> {
  const server: TcpServer = createServer((socket) => void socket.on("error", () => undefined));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

function ago(days: number): Date {
  return new Date(Date.now() - days * 86_400_000 - 60_000);
}
