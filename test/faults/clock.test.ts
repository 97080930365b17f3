import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { rawMail } from "../support/mails.ts";
import { startModelServer } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { type House, house, type ServerProcess } from "./house.ts";
import { closing, faultsOf, untilIdle } from "./load.ts";
import { ask, type Desk, desk, logged, mail, readyz, warnings } from "./surfaces.ts";
import { until } from "../support/until.ts";

const LIBRARY = `/usr/lib/${process.arch === "arm64" ? "aarch64" : "x86_64"}-linux-gnu/faketime/libfaketimeMT.so.1`;
const DAY = 86_400;

const reason = existsSync(LIBRARY) ? undefined : "no clock can be set: apt-get install libfaketime";
if (reason !== undefined) console.log(`Clocks are not set: ${reason}`);

test.skipIf(reason !== undefined)(
  "a clock that leaps by a day or by ten years, forth and back, loses, doubles and deletes nothing",
  async () => {
    await using model = startModelServer({ fault: "slow", slow_ms: 200 });
    await using sink = await startSmtpSink({ starttls: false });
    await using at = await house({
      llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [1, 1, 1] },
      egress: { allow: ["127.0.0.1"] },
    });
    const { server, leap } = await startWithClock(at);
    await using _server = server;
    const owner = await desk(at, server);
    const taken = new Set<string>();
    for (const [index, days] of [1, -1, 3_650, 0, -3_650, 0].entries()) {
      // In the middle of a run.
      const { id, reply } = await mail(server, owner);
      expect(reply).toStartWith("250 ");
      taken.add(id);
      await model.received(index + 1);
      await leap(days);
      await sink.next();
      expect((await readyz(server)).status).toBe(200);
      await logged(server, "was set to another time", index + 1);
    }
    // The other one was taken in a month of its own, and so was that of a day later on the last day of a month.
    const { used } = (await ask(server, owner, "/auth/me")).body.credits;
    expect([taken.size - 1, taken.size - 2]).toContain(used);
    await untilIdle(at);
    await ended(server);
    expect(sink.mails).toHaveLength(taken.size);
    using database = closing(at.database());
    expect(faultsOf(database.db, taken)).toEqual([]);
  },
  40_000,
);

test.skipIf(reason !== undefined)(
  "what was to be tried again in a future that is none is tried as soon as before the clock was set back",
  async () => {
    await using sink = await startSmtpSink({ starttls: false });
    sink.fault = "refuse";
    await using at = await house({
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [10, 10, 10] },
    });
    const { server, leap } = await startWithClock(at);
    await using _server = server;
    const owner = await desk(at, server);
    await leap(30);
    await logged(server, "was set to another time");
    await mail(server, owner);
    await putOff(at);
    sink.fault = undefined;
    await leap(0);
    await sink.next();
    // Thirty days, to the second or one less.
    expect(await logged(server, '"seconds":-259')).toHaveLength(1);
    await untilIdle(at);
    await ended(server);
  },
);

describe.skipIf(reason !== undefined).each(["while the server runs", "at a start"])("a leap %s", (when) => {
  /** What `leap` gives is to be called again, as a start makes another server. */
  async function leaping(at: House, earlier: Awaited<ReturnType<typeof startWithClock>>, days: number) {
    if (when === "while the server runs") {
      await earlier.leap(days);
      return earlier;
    }
    await ended(earlier.server);
    return startWithClock(at, days);
  }

  test.each([2, 9])(
    "by %p days, and back, runs no call and no mail twice, gives no domain up, and is told of",
    async (days) => {
      await using model = startModelServer();
      await using dns = await startDnsServer();
      await using at = await house({
        llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
        dns: { servers: [dns.address] },
      });
      const clock = await startWithClock(at);
      await using before = clock.server;
      const owner = await desk(at, before);
      const raw = rawMail({
        to: owner.to,
        from: "ann@client.example",
        headers: { "Message-ID": "<once@x>" },
      });
      const sendIt = (server: ServerProcess): Promise<string> =>
        deliver(server.smtp, { from: "ann@client.example", to: owner.to, raw });
      const first = await pay(before, owner);
      expect(await sendIt(before)).toStartWith("250 ");
      await model.received(2);
      expect((await ask(before, owner, "/custom-domains", { domain: "ai.acme.test" })).status).toBe(201);
      await untilIdle(at);
      expect(await warned(before)).toBeUndefined();

      const wrong = await leaping(at, clock, days);
      await using _wrong = wrong.server;
      await logged(wrong.server, `${days} days ahead`);
      expect(await warned(wrong.server)).toContain(`${days} days ahead`);
      expect(await pay(wrong.server, owner)).toBe(first);
      expect(await sendIt(wrong.server)).toStartWith("250 ");
      expect(await looked(at)).toBe("pending");

      const right = await leaping(at, wrong, 0);
      await using _right = right.server;
      expect(await warned(right.server)).toBeUndefined();
      expect(await pay(right.server, owner)).toBe(first);
      expect(await sendIt(right.server)).toStartWith("250 ");
      await untilIdle(at);
      await ended(right.server);
      expect(model.requests).toHaveLength(2);
    },
    40_000,
  );

  test.each<[string, number[]]>([
    ["back by hours", [-0.2]],
    ["ahead by days, and back,", [9, 0]],
  ])(
    "%s keeps a conversation in order, and the newest on page 1",
    async (_claim, days) => {
      await using model = startModelServer();
      await using at = await house({
        llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" },
      });
      let clock = await startWithClock(at);
      await using servers = new AsyncDisposableStack();
      servers.use(clock.server);
      const owner = await desk(at, clock.server);
      const say = async (words: object): Promise<{ message_id: string; conversation_id: string }> =>
        (await ask(clock.server, owner, "/v1/messages", words)).body;
      const { message_id, conversation_id } = await say({ instruction: "My name is Ada." });
      const turns = [message_id];
      for (const by of days) {
        await say({ instruction: "Something else." });
        clock = await leaping(at, clock, by);
        servers.use(clock.server);
        turns.push((await say({ instruction: "What is my name?", conversation_id })).message_id);
        expect(JSON.stringify(model.requests.at(-1)?.body)).toContain("My name is Ada.");
        const page = await ask(clock.server, owner, "/messages?limit=1");
        expect(page.body.items[0].message_id).toBe(turns.at(-1));
      }
      const story = await ask(clock.server, owner, `/conversations/${conversation_id}`);
      expect(story.body.turns.map((turn: { message_id: string }) => turn.message_id)).toEqual(turns);
      await ended(clock.server);
    },
    40_000,
  );
});

/** The same call, with the same key; gives the id of its message. */
async function pay(server: ServerProcess, { api_key }: Desk): Promise<string> {
  const response = await fetch(`${server.http}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": api_key, "content-type": "application/json", "idempotency-key": "k1" },
    body: JSON.stringify({ instruction: "Pay." }),
  });
  return ((await response.json()) as { message_id: string }).message_id;
}

async function warned(server: ServerProcess): Promise<string | undefined> {
  return (await warnings(server))["clock"];
}

/** What has become of the domain once its records have been looked for. */
async function looked(at: House): Promise<string> {
  using database = closing(at.database());
  const domain = database.db.prepare<[], { status: string }>(
    "select status from custom_domains where last_checked_at is not null",
  );
  for (;;) {
    const row = domain.get();
    if (row !== undefined) return row.status;
    await Bun.sleep(20);
  }
}

test("a start tries at once what a wrong clock had put off for years", async () => {
  await using sink = await startSmtpSink({ starttls: false });
  sink.fault = "refuse";
  await using at = await house({
    outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [600, 600] },
  });
  {
    await using server = await at.start();
    await mail(server, await desk(at, server));
    await putOff(at);
    await ended(server);
  }
  {
    using database = closing(at.database());
    database.db.exec(`update jobs set run_at = run_at + ${3_650 * DAY} where kind = 'send_mail'`);
  }
  sink.fault = undefined;
  await using server = await at.start();
  await sink.next();
  await untilIdle(at);
  await ended(server);
});

async function putOff(at: House): Promise<void> {
  using database = closing(at.database());
  const waiting = database.db.prepare("select failures from jobs where kind = 'send_mail' and failures > 0");
  await until(() => waiting.all().length !== 0);
}

async function ended(server: ServerProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

/** A server whose clock is so many days ahead, and can be set to another number of them; how much time passes it still knows. */
async function startWithClock(at: House, days = 0) {
  const file = join(at.dir, "..", "clock");
  const leap = (by: number): Promise<void> => writeFile(file, `${by < 0 ? "-" : "+"}${Math.abs(by) * DAY}`);
  await leap(days);
  const server = await at.start({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  return { server, leap };
}
