import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { type House, house, type ServerProcess } from "./house.ts";
import { closing, faultsOf, untilIdle } from "./load.ts";
import { ask, desk, linesWith, logged, mail, readyz } from "./surfaces.ts";

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
    // The other two were taken in months of their own.
    expect((await ask(server, owner, "/auth/me")).body.credits).toMatchObject({ used: taken.size - 2 });
    await untilIdle(at, 10_000);
    await ended(server);
    expect(sink.mails).toHaveLength(taken.size);
    using database = closing(at.database());
    expect(faultsOf(database.db, taken)).toEqual([]);
  },
  40_000,
);

test.skipIf(reason !== undefined)(
  "what was to be tried again in a future that is none is tried when the clock is set back",
  async () => {
    await using sink = await startSmtpSink({ starttls: false });
    sink.fault = "refuse";
    await using at = await house({
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [600, 600] },
    });
    const { server, leap } = await startWithClock(at, 30);
    await using _server = server;
    const owner = await desk(at, server);
    await mail(server, owner);
    await putOff(at);
    sink.fault = undefined;
    await leap(0);
    await sink.next();
    expect(linesWith(server, "the clock of this machine was set to another time")).toHaveLength(1);
    expect(linesWith(server, `"seconds":${-30 * DAY}`)).toHaveLength(1);
    await untilIdle(at, 10_000);
    await ended(server);
  },
);

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
  await untilIdle(at, 10_000);
  await ended(server);
});

async function putOff(at: House): Promise<void> {
  using database = closing(at.database());
  const waiting = database.db.prepare("select failures from jobs where kind = 'send_mail' and failures > 0");
  while (waiting.all().length === 0) await Bun.sleep(20);
}

async function ended(server: ServerProcess): Promise<void> {
  server.kill("SIGTERM");
  expect(await server.exited).toBe(0);
}

/** A server whose clock is so many days ahead, and can be set; how much time passes it still knows. */
async function startWithClock(at: House, days = 0) {
  const file = join(at.dir, "..", "clock");
  const leap = (by: number): Promise<void> => writeFile(file, `${by < 0 ? "-" : "+"}${Math.abs(by)}d`);
  await leap(days);
  const server = await at.start({
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  });
  return { server, leap };
}
