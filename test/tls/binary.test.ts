import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { house, type ServerProcess } from "../faults/house.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { shownByHttps, shownBySmtp } from "./doors.ts";
import { hasPebble, type Pebble, startPebble } from "./pebble.ts";
import { until } from "../support/until.ts";

const NAME = "www.mw.test";
const MX = "mx.mw.test";

describe.skipIf(!hasPebble)("the binary with a certificate from an authority", () => {
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

  const settings = (listen: string) => ({
    server: { listen: "127.0.0.1:0", tls: "acme", base_url: `https://${NAME}` },
    acme: { directory: pebble.directory, ca_file: pebble.ca_file, listen },
  });

  async function shown(server: ServerProcess) {
    const root = await pebble.root();
    const port = Number(new URL(server.http).port);
    return [
      await shownByHttps({ port, name: NAME, root }),
      await shownBySmtp({ port: server.smtp.port, name: MX, root }),
    ];
  }

  test("gets it by itself, shows it at both doors, and keeps it over a restart", async () => {
    await using at = await house(settings(pebble.door));
    let first: Awaited<ReturnType<typeof shown>>;
    {
      await using server = await at.start();
      await untilSaid(server, "there is a new certificate");
      first = await shown(server);
      expect(first.map(({ valid }) => valid)).toEqual([true, true]);
      server.kill("SIGTERM");
      expect(await server.exited).toBe(0);
    }
    await using server = await at.start();
    expect(await shown(server)).toEqual(first);
    expect(server.log()).not.toContain("may cost a few connections");
  });

  test("goes on with the same order after kill -9 in the middle of it", async () => {
    const asked = await pebble.orders();
    const { promise: held, resolve: holding } = Promise.withResolvers<void>();
    const { promise: target, resolve: goOn } = Promise.withResolvers<string>();
    const [hostname = "", port = ""] = pebble.door.split(":");
    // Between the authority and the server: the answers to challenges come when the test says so.
    await using stack = new AsyncDisposableStack();
    const front = Bun.serve({
      hostname,
      port,
      async fetch(request) {
        holding();
        const url = `${await target}${new URL(request.url).pathname}`;
        for (;;) {
          // The server that was killed answers nothing, and the next one is not there yet.
          const answer = await fetch(url, { tls: { rejectUnauthorized: false } }).catch(() => undefined);
          if (answer?.ok) return new Response(await answer.text());
          await Bun.sleep(20);
        }
      },
    });
    stack.defer(() => front.stop(true));
    await using at = await house(settings(""));
    const killed = await at.start();
    await held;
    const order = await readFile(join(at.dir, "tls/order.json"), "utf8");
    killed.kill("SIGKILL");
    await killed.exited;
    let first: Awaited<ReturnType<typeof shown>>;
    {
      await using server = await at.start();
      goOn(server.http);
      await untilSaid(server, "there is a new certificate");
      first = await shown(server);
      expect(first.map(({ valid }) => valid)).toEqual([true, true]);
    }
    // As if it had been killed when the certificate was issued and not stored yet.
    await rm(join(at.dir, "tls/certificate.json"));
    await writeFile(join(at.dir, "tls/order.json"), order);
    await using server = await at.start();
    await untilSaid(server, "there is a new certificate");
    expect(await shown(server)).toEqual(first);
    expect(await pebble.orders()).toBe(asked + 1);
    expect(await readdir(join(at.dir, "tls"))).not.toContain("order.json");
  });
});

async function untilSaid(server: ServerProcess, words: string): Promise<void> {
  await until(
    async () => server.log().includes(words),
    10_000,
    async () => server.log(),
  );
}
