import { afterAll, describe, expect, test } from "bun:test";
import { deadline } from "../../src/lib/deadline.ts";
import { createPoster } from "../../src/net/poster.ts";
import { timeoutSignal, waitLimit } from "../../src/lib/wait-limit.ts";

const LIMIT_MS = 1_000;
const BLOCKED_MS = 2_000;
const ANSWER_AFTER_MS = 200;

/** Another process, which goes on while this one stands still: it says each path that it is asked for. */
const peer = Bun.spawn(
  [
    process.execPath,
    "-e",
    `const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: async (request) => {
      const { pathname } = new URL(request.url);
      console.log(pathname);
      await Bun.sleep(pathname === "/never" ? 3_600_000 : ${ANSWER_AFTER_MS});
      return new Response("here");
    } });
    console.log("http://127.0.0.1:" + server.port);`,
  ],
  { stdout: "pipe", stdin: "ignore" },
);
afterAll(() => peer.kill());
const said = peer.stdout.pipeThrough(new TextDecoderStream()).getReader() as unknown as {
  read(): Promise<{ value: string }>;
};
const base_url = (await said.read()).value.trim();

/** Holds the event loop until all limits are over, from when the other process was asked. */
async function standStill(): Promise<void> {
  await said.read();
  Bun.sleepSync(BLOCKED_MS);
}

describe("a limit that is over while this process stands still", () => {
  const WAYS: [name: string, ask: (path: string) => Promise<string>][] = [
    [
      "of a signal",
      async (path) => (await fetch(base_url + path, { signal: timeoutSignal(LIMIT_MS) })).text(),
    ],
    [
      "of a part of a run",
      async (path) => {
        using cap = deadline(new AbortController().signal, LIMIT_MS);
        return await (await fetch(base_url + path, { signal: cap.signal })).text();
      },
    ],
    [
      "of a webhook",
      async (path) => {
        using poster = createPoster({
          resolve: () => Promise.reject(new Error("unused")),
          allow: ["127.0.0.1"],
          setting: "webhooks.allow",
        });
        const answer = await poster.post({
          url: base_url + path,
          headers: {},
          body: "x",
          timeout_ms: LIMIT_MS,
          connect_ms: LIMIT_MS,
          max_bytes: 100,
          fresh: true,
        });
        return String(answer.status);
      },
    ],
  ];
  test.each(WAYS)("%s lets the answer in that has come meanwhile", async (_name, ask) => {
    const asking = ask("/soon");
    await standStill();
    expect(["here", "200"]).toContain(await asking);
  });

  test.each(WAYS)("%s ends the wait for one who said nothing", async (_name, ask) => {
    const asking = ask("/never").catch((error: Error) => error.name);
    await standStill();
    expect(await asking).toBe("TimeoutError");
  });
});

test("a limit goes off once and in time, and not when it is taken back, before its time or late", async () => {
  const seen: string[] = [];
  const last = Promise.withResolvers<void>();
  waitLimit(5, () => seen.push("first"));
  waitLimit(5, () => seen.push("cleared")).clear();
  const late = waitLimit(10, () => seen.push("cleared late"));
  const plain = setTimeout(() => late.clear(), 20);
  waitLimit(600, last.resolve);
  Bun.sleepSync(200);
  await last.promise;
  clearTimeout(plain);
  expect(seen).toEqual(["first"]);
});
