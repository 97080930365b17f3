import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { generate } from "selfsigned";
import { defaultConfig } from "../../src/config/config.ts";
import { serve } from "../../src/serve.ts";
import { layKeys } from "../support/keys.ts";
import { until } from "../support/until.ts";

/** An authority that answers every request to its account door in one way, and the server that asks it. */
async function refusedBy(answer: () => Response) {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-limits-"));
  await layKeys(dir);
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  await writeFile(join(dir, "ca.pem"), cert);
  let asked = 0;
  const authority = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    fetch(request) {
      const { pathname, origin } = new URL(request.url);
      if (pathname === "/dir")
        return Response.json({ newNonce: `${origin}/nonce`, newAccount: `${origin}/account` });
      if (pathname === "/nonce") return new Response(null, { headers: { "replay-nonce": "abc" } });
      asked += 1;
      return answer();
    },
  });
  const lines: { msg: string; next_try?: string }[] = [];
  const log = pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) });
  const config = defaultConfig({
    server: { tls: "acme", listen: "127.0.0.1:0", base_url: "https://www.mw.test" },
    smtp: { listen: "" },
    acme: { directory: `https://localhost:${authority.port}/dir`, ca_file: join(dir, "ca.pem"), listen: "" },
    data: { dir },
  });
  const server = await serve(config, { log });
  const refusals = () => lines.filter(({ msg }) => msg.startsWith("no new certificate"));
  return {
    asked: () => asked,
    async refusal() {
      await until(async () => refusals().length > 0);
      const { msg = "", next_try = "" } = refusals()[0] ?? {};
      return { msg, minutes: Math.round((Date.parse(next_try) - Date.now()) / 60_000) };
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await authority.stop(true);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const problem = (kind: string, headers: Record<string, string> = {}): Response =>
  Response.json(
    { type: `urn:ietf:params:acme:error:${kind}`, detail: "too many certificates" },
    {
      status: 429,
      headers: { "content-type": "application/problem+json", "replay-nonce": "abc", ...headers },
    },
  );

test("an authority that wants to be left alone for six hours is, and is asked once", async () => {
  await using at = await refusedBy(() => problem("rateLimited", { "retry-after": "21600" }));
  const { msg, minutes } = await at.refusal();
  expect(msg).toBe(
    "no new certificate: The authority gives no more certificates for now. Nothing is to be done but to wait. (It says: too many certificates)",
  );
  expect(minutes).toBe(360);
  expect(at.asked()).toBe(1);
});

test("one that names no time is asked again after five minutes", async () => {
  await using at = await refusedBy(() => problem("rateLimited"));
  expect((await at.refusal()).minutes).toBe(5);
});

test("an answer that is none, as of a proxy in between, is told as what it is", async () => {
  await using at = await refusedBy(() => new Response("<html>Bad gateway</html>", { status: 502 }));
  expect((await at.refusal()).msg).toBe(
    "no new certificate: The authority refused. (It says: It answered with HTTP status 502.)",
  );
  expect(at.asked()).toBe(1);
});

test("one that takes no nonce of its own is not asked for ever", async () => {
  await using at = await refusedBy(() => problem("badNonce"));
  const refused = await at.refusal();
  expect(refused.minutes).toBe(5);
  expect(at.asked()).toBeLessThan(10);
});
