import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { type ConfigOverrides, defaultConfig } from "../../src/config/config.ts";
import { type Server, serve } from "../../src/serve.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { layKeys } from "../support/keys.ts";
import type { Plan } from "./clients.ts";
import { shownByHttps, shownBySmtp } from "./doors.ts";
import { startClients } from "./load.ts";
import { hasPebble, type Pebble, startPebble } from "./pebble.ts";
import { DAY_MS } from "../../src/lib/durations.ts";
import { until } from "../support/until.ts";

const NAME = "www.mw.test";
const MX = "mx.mw.test";
const YEAR_MS = 365 * DAY_MS;
/** Each order loads its library anew, on a machine that may be busy. */
const PATIENCE_MS = 40_000;

describe.skipIf(!hasPebble)("a certificate from an authority", () => {
  let dns: TestDnsServer;
  let pebble: Pebble;

  beforeAll(async () => {
    dns = await startDnsServer({ [NAME]: { A: ["127.0.0.1"] }, [MX]: { A: ["127.0.0.1"] } });
    pebble = await startPebble(dns);
  });
  afterAll(async () => {
    await pebble[Symbol.asyncDispose]();
    await dns[Symbol.asyncDispose]();
  });

  async function house(overrides: ConfigOverrides = {}) {
    const dir = await mkdtemp(join(tmpdir(), "mailwright-acme-"));
    await layKeys(dir);
    const config = defaultConfig({
      ...overrides,
      server: { tls: "acme", listen: "127.0.0.1:0", base_url: `https://${NAME}`, ...overrides.server },
      smtp: { listen: "127.0.0.1:0", hostname: MX, early_talker_ms: 0 },
      acme: {
        directory: pebble.directory,
        ca_file: pebble.ca_file,
        listen: pebble.door,
        ...overrides.acme,
      },
      data: { dir },
    });
    const lines: { msg: string; level: number; [name: string]: unknown }[] = [];
    const log = pino({ level: "info", base: null }, { write: (line) => void lines.push(JSON.parse(line)) });
    let ahead_ms = 0;
    return {
      dir,
      lines,
      config,
      start: () =>
        serve(config, {
          log,
          nowMs: () => Date.now() + ahead_ms,
          steadyMs: () => performance.now() + ahead_ms,
        }),
      /** Time passes, and the server looks whether something is due. */
      advance(server: Server, ms: number) {
        ahead_ms += ms;
        server.app.worker?.wake("keep_certificate");
      },
      said: (words: string) => lines.filter(({ msg }) => msg.includes(words)),
      untilSaid: (words: string, times = 1) =>
        until(
          async () => lines.filter(({ msg }) => msg.includes(words)).length >= times,
          PATIENCE_MS,
          async () => JSON.stringify(lines),
        ),
      [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
    };
  }

  /** What both doors show for both names. */
  async function shown(server: Server) {
    const root = await pebble.root();
    const [https, smtp] = [portOf(server.http), portOf(server.smtp ?? "")];
    return {
      https: await shownByHttps({ port: https, name: NAME, root }),
      https_as_mx: await shownByHttps({ port: https, name: MX, root }),
      smtp: await shownBySmtp({ port: smtp, name: MX, root }),
    };
  }

  async function warnings(server: Server): Promise<unknown> {
    const answer = await fetch(`${server.http}/readyz`, { tls: { rejectUnauthorized: false } });
    expect(answer.status).toBe(200);
    return ((await answer.json()) as { warnings: unknown }).warnings;
  }

  test("is got at the first start, shown by both doors, and used again at the next start without asking", async () => {
    await using at = await house();
    const before = await pebble.orders();
    let first: Awaited<ReturnType<typeof shown>>;
    {
      await using server = await at.start();
      expect(await warnings(server)).toEqual({
        certificate: `There is no certificate for ${NAME}, ${MX} yet.`,
      });
      // Never two orders at once, however often somebody asks.
      await Promise.all([server.reload?.(), server.reload?.(), server.reload?.()]);
      await at.untilSaid("there is a new certificate");
      first = await shown(server);
      expect(first).toMatchObject({
        https: { valid: true },
        https_as_mx: { valid: true },
        smtp: { valid: true },
      });
      expect(first.smtp.fingerprint).toBe(first.https.fingerprint);
      expect(await warnings(server)).toEqual({});
    }
    const files = await readdir(join(at.dir, "tls"));
    expect(files.sort()).toEqual(["account-key.pem", "certificate.json"]);
    for (const name of files) expect((await stat(join(at.dir, "tls", name))).mode & 0o777).toBe(0o600);
    await using server = await at.start();
    expect(await shown(server)).toEqual(first);
    await server.app.worker?.drain();
    expect(await pebble.orders()).toBe(before + 1);
    expect(at.said("there is a new certificate")).toHaveLength(1);
  });

  test("is renewed after two thirds of its life while clients come and go, and none of them notices", async () => {
    await using at = await house();
    await using server = await at.start();
    await at.untilSaid("there is a new certificate");
    const plan: Plan = {
      https_port: portOf(server.http),
      smtp_port: portOf(server.smtp ?? ""),
      name: NAME,
      root: await pebble.root(),
    };
    await using load = startClients(plan);
    await load.untilSeen(1);
    // They live five years.
    at.advance(server, 3 * YEAR_MS);
    await server.app.worker?.drain();
    expect(at.said("there is a new certificate")).toHaveLength(1);
    for (const [index, ms] of [YEAR_MS, DAY_MS, DAY_MS].entries()) {
      at.advance(server, ms);
      await load.untilSeen(index + 2);
    }
    const report = await load.end();
    console.log(
      `three renewals under load: ${report.http.answered} requests, ${report.smtp.answered} STARTTLS sessions, ${report.failures.length} failures`,
    );
    expect(report).toMatchObject({ failures: [], http: { certificates: 4 }, smtp: { certificates: 4 } });
    expect(report.http.answered).toBeGreaterThan(100);
    expect(report.smtp.answered).toBeGreaterThan(20);
    // By a clock that is years ahead it is old at once, which must not order one after the other.
    expect(at.said("set the clock right")).toHaveLength(3);
  });

  test("is waited for with the doors open when the authority is down, and tried for later and later", async () => {
    await using at = await house();
    await pebble.stop();
    await using server = await at.start();
    await at.untilSaid("no new certificate");
    expect(at.said("no new certificate")[0]).toMatchObject({
      level: 40,
      msg: `no new certificate: The authority at ${new URL(pebble.directory).host} cannot be reached. Nothing answers at that address and port: see that the server runs, and that both are right.`,
      names: [NAME, MX],
    });
    expect((await shown2(server)).map(({ valid }) => valid)).toEqual([false, false]);
    expect(await warnings(server)).toEqual({
      certificate: `There is no certificate for ${NAME}, ${MX} yet. The authority at ${new URL(pebble.directory).host} cannot be reached. Nothing answers at that address and port: see that the server runs, and that both are right.`,
    });
    for (const [index, minutes] of [5, 10, 20].entries()) {
      at.advance(server, (minutes - 1) * 60_000);
      await server.app.worker?.drain();
      expect(at.said("no new certificate")).toHaveLength(index + 1);
      at.advance(server, 60_000);
      await at.untilSaid("no new certificate", index + 2);
    }
    await pebble.start();
    // As `kill -HUP` does.
    await server.reload?.();
    await at.untilSaid("there is a new certificate");
    expect((await shown(server)).smtp.valid).toBe(true);
  }, 60_000);

  async function shown2(server: Server) {
    return [
      await shownByHttps({ port: portOf(server.http), name: NAME, root: "" }),
      await shownBySmtp({ port: portOf(server.smtp ?? ""), name: MX, root: "" }),
    ];
  }

  test("is refused with the name and the mend, and a restart does not ask again at once", async () => {
    await using at = await house({ acme: { names: [NAME, "elsewhere.mw.test", "unknown.mw.test"] } });
    // Somebody else's machine.
    dns.set("elsewhere.mw.test", "A", ["127.0.0.2"]);
    {
      await using server = await at.start();
      await at.untilSaid("no new certificate");
      const [said] = at.said("no new certificate");
      expect(said?.msg).toContain(
        `The authority got no connection to http://elsewhere.mw.test/ on port 80. Let port 80 through the firewall and the router to acme.listen (${pebble.door}).`,
      );
      expect(said?.msg).toContain("The authority got no connection to http://unknown.mw.test/");
      expect(said?.msg).not.toContain(NAME);
      expect(server.app.certificates.challenges.size).toBe(0);
    }
    const asked = await pebble.orders();
    {
      await using server = await at.start();
      await server.app.worker?.drain();
      expect(await pebble.orders()).toBe(asked);
    }
    // Other names are another matter.
    at.config.acme.names = [NAME];
    await using server = await at.start();
    await at.untilSaid("there is a new certificate");
    const root = await pebble.root();
    expect(await shownByHttps({ port: portOf(server.http), name: NAME, root })).toMatchObject({
      valid: true,
    });
    expect(await shownByHttps({ port: portOf(server.http), name: MX, root })).toMatchObject({ valid: false });
  });

  test("is proven through another program on port 80 that passes challenges on, when acme.listen is empty", async () => {
    await using at = await house({ acme: { listen: "" } });
    let server: Server | undefined;
    const [hostname = "", port = ""] = pebble.door.split(":");
    const front = Bun.serve({
      hostname,
      port,
      fetch: (request) =>
        fetch(`${server?.http}${new URL(request.url).pathname}`, { tls: { rejectUnauthorized: false } }),
    });
    server = await at.start();
    await at.untilSaid("there is a new certificate");
    expect((await shown(server)).https.valid).toBe(true);
    const stranger = await fetch(`${server.http}/.well-known/acme-challenge/x`, {
      tls: { rejectUnauthorized: false },
    });
    expect(stranger.status).toBe(404);
    await front.stop(true);
    await server[Symbol.asyncDispose]();
  });

  test("needs a door on port 80 that sends everybody else to https, to our own name only", async () => {
    await using at = await house();
    await using server = await at.start();
    const ask = (path: string, init: RequestInit = {}) =>
      fetch(`http://${pebble.door}${path}`, { redirect: "manual", ...init });
    const page = await ask("/inboxes?limit=2", { headers: { host: "evil.example" } });
    expect([page.status, page.headers.get("location")]).toEqual([301, `https://${NAME}/inboxes?limit=2`]);
    const posted = await ask("/inboxes", { method: "POST", body: "x" });
    expect([posted.status, posted.headers.get("location")]).toEqual([308, `https://${NAME}/inboxes`]);
    expect((await ask("/.well-known/acme-challenge/../../etc/passwd")).status).toBe(301);
    expect((await ask("/.well-known/acme-challenge/unknown")).status).toBe(404);
    await at.untilSaid("there is a new certificate");
    expect(server.app.certificates.challenges.size).toBe(0);
  });

  test("is not what a start waits for: port 80 may be taken, and that is said", async () => {
    const [hostname = "", port = ""] = pebble.door.split(":");
    const other = Bun.serve({ hostname, port, fetch: () => new Response("not yours") });
    await using at = await house();
    await using server = await at.start();
    expect(at.said(`${pebble.door} is in use by another program`)).toHaveLength(1);
    await at.untilSaid("no new certificate");
    expect(at.said("no new certificate")[0]?.msg).toContain(`Not this server answered at http://${NAME}/.`);
    expect(await warnings(server)).toHaveProperty("certificate");
    await other.stop(true);
  });

  test("is warned about 14 days before its end, when it could not be renewed", async () => {
    await using at = await house();
    await using server = await at.start();
    await at.untilSaid("there is a new certificate");
    await pebble.stop();
    at.advance(server, 5 * YEAR_MS - 20 * DAY_MS);
    await at.untilSaid("no new certificate");
    expect(at.said("no new certificate").at(-1)?.level).toBe(40);
    expect(await warnings(server)).toEqual({});
    at.advance(server, 10 * DAY_MS);
    await at.untilSaid("no new certificate", 2);
    expect(at.said("no new certificate").at(-1)?.level).toBe(50);
    const { certificate } = (await warnings(server)) as { certificate: string };
    expect(certificate).toMatch(
      /^The certificate for www\.mw\.test, mx\.mw\.test ends on \d{4}-\d\d-\d\d\. The authority at /,
    );
    await pebble.start();
  });

  test("is never written to the log, nor is its key", async () => {
    await using at = await house();
    await using server = await at.start();
    await at.untilSaid("there is a new certificate");
    const stored = JSON.parse(await readFile(join(at.dir, "tls/certificate.json"), "utf8")) as {
      key: string;
    };
    const secret = stored.key.split("\n")[1] ?? "";
    expect(secret.length).toBeGreaterThan(40);
    expect(JSON.stringify(at.lines)).not.toContain(secret);
    expect(JSON.stringify(at.lines)).not.toContain("PRIVATE KEY");
    expect(server.smtp).not.toBeNull();
  });
});

function portOf(address: string): number {
  return Number(/:(\d+)$/.exec(address)?.[1]);
}
