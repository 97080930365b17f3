import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { generate } from "selfsigned";
import { defaultConfig } from "../../src/config/config.ts";
import { serve } from "../../src/serve.ts";
import { layKeys } from "../support/keys.ts";
import { until } from "../support/until.ts";

const ORIGIN = "https://www.mw.test";
const CLIENT = "198.51.100.7";

/** A server that is told to be behind a proxy, and one such proxy, which takes the TLS off. */
async function behindProxy(trusted_proxies: string[]) {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-proxy-"));
  await layKeys(dir);
  const clients: unknown[] = [];
  const log = pino(
    { level: "debug", base: null },
    {
      write(text) {
        const line = JSON.parse(text) as { msg: string; client?: string };
        if (line.msg === "request") clients.push(line.client);
      },
    },
  );
  const config = defaultConfig({
    server: { listen: "127.0.0.1:0", base_url: ORIGIN, trusted_proxies },
    smtp: { listen: "" },
    data: { dir },
  });
  const server = await serve(config, { log });
  const { cert, private: key } = await generate([{ name: "commonName", value: "www.mw.test" }]);
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const headers = new Headers(request.headers);
      // As proxies do it: what the client wrote stays, and its address is added.
      headers.append("x-forwarded-for", CLIENT);
      const { method } = request;
      const body = method === "GET" ? null : await request.text();
      return fetch(`${server.http}${pathname}`, { method, headers, body, redirect: "manual" });
    },
  });
  return {
    /** The clients of the first requests; the log has them when the answer has gone. */
    async seen(count: number): Promise<unknown[]> {
      await until(async () => clients.length >= count);
      return clients;
    },
    direct: (path: string, init: RequestInit = {}) => fetch(`${server.http}${path}`, init),
    proxied: (path: string, init: RequestInit = {}) =>
      fetch(`https://127.0.0.1:${proxy.port}${path}`, { ...init, tls: { rejectUnauthorized: false } }),
    async [Symbol.asyncDispose]() {
      await proxy.stop(true);
      await server[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const FORGED = {
  "x-forwarded-for": "203.0.113.9",
  "x-forwarded-host": "evil.example",
  "x-forwarded-proto": "http",
  forwarded: "for=203.0.113.9;host=evil.example;proto=http",
};
test("behind a trusted proxy cookies are Secure, HSTS is sent, and the client is the one that the proxy saw", async () => {
  await using t = await behindProxy(["127.0.0.1"]);
  const answer = await t.proxied("/auth/register", {
    method: "POST",
    headers: { ...FORGED, "content-type": "application/json" },
    body: JSON.stringify({ email: "ada@example.com", password: "quiet river 42" }),
  });
  expect(answer.status).toBe(202);
  expect(answer.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^mw_registration=.*; Secure/),
    expect.stringMatching(/^mw_code=.*; Secure/),
  ]);
  expect(answer.headers.get("strict-transport-security")).toBe("max-age=31536000");
  expect(await t.seen(1)).toEqual([CLIENT]);
});

test("the host that a request was forwarded from is believed to nobody", async () => {
  await using t = await behindProxy(["127.0.0.1"]);
  for (const ask of [t.proxied, t.direct]) {
    const refused = await ask("/nothing", { headers: FORGED });
    expect(refused.status).toBe(404);
    const text = await refused.text();
    expect(text).toContain(ORIGIN);
    expect(text + JSON.stringify([...refused.headers])).not.toContain("evil.example");
  }
});

test("of anybody else no forwarded address is believed", async () => {
  await using t = await behindProxy(["127.0.0.2"]);
  await t.direct("/livez", { headers: FORGED });
  await t.proxied("/livez", { headers: FORGED });
  expect(await t.seen(2)).toEqual(["127.0.0.1", "127.0.0.1"]);
});
