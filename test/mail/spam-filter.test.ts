import { describe, expect, test } from "bun:test";
import { spamFilterWarning } from "../../src/inbound/spam-filter.ts";
import { mailroom, READS_ANYBODY, signedBy, signingZone } from "../support/mailroom.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { rawMail } from "../support/mails.ts";
import { startClock } from "../support/own-time.ts";

const EVE = "Eve <eve@example.net>";

/** A stand-in for rspamd that gives one answer to everything. */
function filterThat(answer: (request: Request) => Response | Promise<Response>) {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) };
}

async function roomWith(url: string) {
  return mailroom({
    inbox: READS_ANYBODY,
    config: { rspamd: { url, password: "sesame" }, smtp: { trusted_networks: [] } },
  });
}

const JUNK = {
  action: "add header",
  score: 7.25,
  required_score: 15,
  symbols: { A: { score: 1 }, B: { score: 6.25 }, C: { score: -1 } },
};

describe("a spam filter", () => {
  test("is told who sent what to whom, and asked once for each mail", async () => {
    const asked: { path: string; headers: Record<string, string>; body: string }[] = [];
    await using filter = filterThat(async (request) => {
      const { pathname: path } = new URL(request.url);
      asked.push({ path, headers: Object.fromEntries(request.headers), body: await request.text() });
      return Response.json({ action: "no action", score: 0, required_score: 15, symbols: {} });
    });
    await using room = await roomWith(filter.url);
    await room.send({ from: EVE, text: "Hello" });
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done" });
    expect(asked.map(({ path }) => path)).toEqual(["/checkv2"]);
    const { ip, from, rcpt, password } = asked[0]?.headers ?? {};
    expect({ ip, from, rcpt, password }).toEqual({
      ip: "127.0.0.1",
      from: "eve@example.net",
      rcpt: room.inbox.address,
      password: "sesame",
    });
    expect(asked[0]?.body).toContain("Hello");
  });

  test("is warned of with what is wrong now, since when it began, and odd symbols are none", async () => {
    let answer = (): Response => new Response("", { status: 403 });
    await using filter = filterThat(() => answer());
    await using room = await roomWith(filter.url);
    await room.send({ from: EVE, text: "Hello" });
    expect(spamFilterWarning(room.app)).toContain("status 403");
    const since = room.app.spam_filter.trouble?.since;
    room.clock.advance("5m");
    answer = () => new Response("", { status: 500 });
    await room.send({ from: EVE, text: "Hello again" });
    expect(spamFilterWarning(room.app)).toContain("status 500");
    expect(room.app.spam_filter.trouble?.since).toBe(since ?? 0);
    answer = () => Response.json({ ...JUNK, symbols: { A: null, B: { score: 2 } } });
    await room.send({ from: EVE, text: "Hello once more" });
    expect((await room.newest()).error).toContain("points, B)");
  });

  test("names what counted most where it takes a mail for junk", async () => {
    await using filter = filterThat(() => Response.json(JUNK));
    await using room = await roomWith(filter.url);
    await room.send({ from: EVE, text: "Hello" });
    const row = await room.newest();
    expect(row).toMatchObject({ state: "skipped", reason: "junk" });
    expect(row.error).toContain("(7.3 of 15 points, B, A)");
    expect(room.model.requests).toEqual([]);
  });

  test("says nothing against the owner", async () => {
    await using filter = filterThat(() => Response.json({ ...JUNK, action: "reject" }));
    await using dns = await startDnsServer(signingZone("example.com"));
    await using room = await mailroom({
      config: {
        rspamd: { url: filter.url },
        smtp: { trusted_networks: [] },
        dns: { servers: [dns.address] },
      },
    });
    const raw = await signedBy(
      "example.com",
      rawMail({ from: "Ada <ada@example.com>", to: room.inbox.address, text: "Say hello" }),
    );
    expect(await room.send({ raw })).toStartWith("250");
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", authority: "owner" });
  });

  const faults: [string, (request: Request) => Response | Promise<Response>][] = [
    ["answers with an error", () => new Response("no", { status: 500 })],
    ["answers with something else", () => new Response("<html>")],
    ["answers without an action", () => Response.json({ score: 1 })],
    ["answers without end", () => new Response("x".repeat(2_000_000))],
    ["never answers", () => new Promise<Response>(() => undefined)],
  ];
  for (const [what, answer] of faults)
    test(`that ${what} lets mail pass, and is warned of until it answers`, async () => {
      let answers = answer;
      await using filter = filterThat((request) => answers(request));
      await using room = await roomWith(filter.url);
      using clock = startClock();
      expect(await room.send({ from: EVE, text: "Hello" })).toStartWith("250");
      expect(clock.ms()).toBeLessThan(20_000);
      expect(spamFilterWarning(room.app)).toContain(filter.url);
      answers = () => Response.json({ action: "no action" });
      expect(await room.send({ from: EVE, text: "Hello again" })).toStartWith("250");
      expect(spamFilterWarning(room.app)).toBeUndefined();
    });

  test("is not asked about mail of trusted networks", async () => {
    let asked = 0;
    await using filter = filterThat(() => Response.json({ action: "reject", n: ++asked }));
    await using room = await mailroom({ inbox: READS_ANYBODY, config: { rspamd: { url: filter.url } } });
    expect(await room.send({ from: EVE, text: "Hello" })).toStartWith("250");
    expect(asked).toBe(0);
  });
});
