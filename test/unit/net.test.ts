import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { generate } from "selfsigned";
import { createResolver } from "../../src/net/dns.ts";
import {
  allowedByOperator,
  BlockedAddressError,
  createSafeFetch,
  isPublicAddress,
  judgeHost,
} from "../../src/net/guarded-fetch.ts";
import { networkFault, readCapped, retryAfterSeconds } from "../../src/net/responses.ts";
import { type DnsZone, startDnsServer } from "../support/dns-server.ts";

const LOOPBACK = ["127.0.0.0/8"];
const FIRST_PUBLIC = "93.184.216.34";

async function egress(zone: DnsZone, allow: string[], ca?: string) {
  const dns = await startDnsServer(zone);
  const rules = {
    resolve: createResolver({ servers: [dns.address] }),
    allow,
    ...(ca === undefined ? {} : { ca }),
  };
  return {
    dns,
    rules,
    fetch: createSafeFetch(rules),
    [Symbol.asyncDispose]: () => dns[Symbol.asyncDispose](),
  };
}

const thrownBy = async (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => {
      throw new Error("nothing was thrown");
    },
    (error: unknown) => error,
  );

describe("isPublicAddress", () => {
  test.each([
    FIRST_PUBLIC,
    "1.1.1.1",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00:1450:4001::5",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
  ])("%s is public", (ip) => {
    expect(isPublicAddress(ip)).toBe(true);
  });

  test.each([
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.255",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:a00:1",
    "0:0:0:0:0:ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:1ff::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "fc00::1",
    "fdff::1",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "5f00::1",
    "",
    "localhost",
    "127.1",
    "0x7f000001",
    "2130706433",
    "1.1.1.1:80",
    "1.1.1.1 ",
  ])("%s is not", (ip) => {
    expect(isPublicAddress(ip)).toBe(false);
  });
});

describe("allowedByOperator", () => {
  test.each([
    ["ollama.lan", "10.0.5.9", "10.0.5.0/24", true],
    ["ollama.lan", "10.0.6.9", "10.0.5.0/24", false],
    ["ollama.lan", "::ffff:10.0.5.9", "10.0.5.0/24", true],
    ["ollama.lan", "10.0.5.9", "10.0.5.9", true],
    ["ollama.lan", "10.0.5.99", "10.0.5.9", false],
    ["Ollama.LAN.", "10.0.5.9", "ollama.lan", true],
    ["ollama.lan", "10.0.5.9", "Ollama.lan.", true],
    ["evil-ollama.lan", "10.0.5.9", "ollama.lan", false],
    ["sub.ollama.lan", "10.0.5.9", "ollama.lan", false],
    ["::1", "::1", "0:0:0:0:0:0:0:1", true],
    ["x.lan", "fd00::5", "fd00::/8", true],
    ["x.lan", "fd00::5", "0.0.0.0/0", false],
    ["x.lan", "10.0.0.1", "", false],
  ])("%s at %s with %s: %p", (host, ip, entry, expected) => {
    expect(allowedByOperator(host, ip, ["unrelated.example", entry])).toBe(expected);
    expect(allowedByOperator(host, ip, [])).toBe(false);
  });
});

describe("what is not dialled", () => {
  test("refuses a name as soon as one of its addresses is special, and names all that is needed to mend it", async () => {
    const zone = { "mixed.example": { A: [FIRST_PUBLIC, "10.0.0.5"], AAAA: ["2606:4700:4700::1111"] } };
    await using out = await egress(zone, []);
    const error = await thrownBy(out.fetch("https://mixed.example/"));
    expect(error).toBeInstanceOf(BlockedAddressError);
    const blocked = error as BlockedAddressError;
    expect([blocked.host, blocked.address]).toEqual(["mixed.example", "10.0.0.5"]);
    expect(blocked.message).toContain("10.0.0.5 of mixed.example");
    expect(blocked.message).toContain('add "mixed.example" to egress.allow');
    expect(networkFault(error)).toEqual({ code: "blocked_address", message: blocked.message });
  });

  test.each([
    ["AAAA only", { AAAA: ["::1"] }],
    ["IPv4 inside of IPv6", { AAAA: ["::ffff:127.0.0.1"] }],
    ["the cloud's metadata", { A: ["169.254.169.254"] }],
    ["behind a CNAME", { CNAME: ["inside.example"] }],
  ])("refuses a name that leads inside: %s", async (_, records) => {
    const zone: DnsZone = { "trap.example": records, "inside.example": { A: ["192.168.0.1"] } };
    await using out = await egress(zone, []);
    expect(await thrownBy(out.fetch("https://trap.example/"))).toBeInstanceOf(BlockedAddressError);
  });

  test.each([
    "https://127.0.0.1/",
    "https://[::1]/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.1/",
    "https://[::ffff:7f00:1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://a.localhost/",
    "http://93.184.216.34/",
    "ftp://93.184.216.34/",
    "file:///etc/passwd",
    "data:text/plain,x",
  ])("refuses %s without asking the DNS for an address", async (url) => {
    await using out = await egress({}, []);
    const error = await thrownBy(out.fetch(url));
    expect(error).toBeInstanceOf(BlockedAddressError);
    expect(out.dns.queries).toEqual([]);
  });

  test("names the webhooks' setting where that one counts", async () => {
    const rules = { resolve: async () => ["10.1.1.1"], allow: [], setting: "webhooks.allow" };
    const error = await thrownBy(judgeHost("hook.example", rules));
    expect(String(error)).toContain("webhooks.allow");
  });

  test("plain http stays refused for a public host, and for one that is only partly allowed", async () => {
    const zone = { "web.example": { A: [FIRST_PUBLIC] }, "half.example": { A: ["127.0.0.1", FIRST_PUBLIC] } };
    await using out = await egress(zone, LOOPBACK);
    for (const host of ["web.example", "half.example"]) {
      const error = await thrownBy(out.fetch(`http://${host}/`));
      expect(error).toBeInstanceOf(BlockedAddressError);
      expect((error as Error).message).toContain("Use an https:// address");
    }
  });
});

const PACKERS: Record<string, (bytes: Buffer) => Buffer<ArrayBuffer>> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

describe("over plain http to an allowed host", () => {
  let asked: string | null = null;
  const seen: { host: string | null; method: string; body: string }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      seen.push({
        host: request.headers.get("host"),
        method: request.method,
        body: await request.text(),
      });
      const { pathname } = new URL(request.url);
      if (pathname === "/hang") {
        return new Promise<never>(() => undefined);
      }
      if (pathname === "/long") return new Response(Buffer.alloc(20_000_000));
      if (pathname === "/bomb") {
        asked = request.headers.get("accept-encoding");
        const encoding = new URL(request.url).search.slice(1);
        return new Response(PACKERS[encoding]?.(Buffer.alloc(20_000_000)) ?? "packed", {
          headers: { "content-encoding": encoding },
        });
      }
      return pathname === "/redirect"
        ? Response.redirect("http://169.254.169.254/", 302)
        : new Response("hello");
    },
  });
  afterAll(() => server.stop(true));

  test("keeps name and port in Host, the whole address in url, and sends the body once", async () => {
    await using out = await egress({ "model.lan": { A: ["127.0.0.1"] } }, ["model.lan"]);
    const url = `http://model.lan:${server.port}/path?q=1`;
    const response = await out.fetch(url, {
      method: "POST",
      body: "ping",
      headers: { host: "forged.example" },
    });
    expect(await response.text()).toBe("hello");
    expect(response.url).toBe(url);
    expect(seen.at(-1)).toEqual({ host: `model.lan:${server.port}`, method: "POST", body: "ping" });
  });

  test("looks a name up once for many requests, and goes where it was judged to lead", async () => {
    await using out = await egress({ "model.lan": { A: ["127.0.0.1"] } }, LOOPBACK);
    out.dns.ttl = 0;
    const url = `http://model.lan:${server.port}/`;
    await Promise.all(Array.from({ length: 10 }, async () => (await out.fetch(url)).text()));
    out.dns.set("model.lan", "A", ["10.9.9.9"]);
    expect((await out.fetch(url)).status).toBe(200);
    expect(out.dns.queries.map(({ type }) => type).sort()).toEqual(["A", "AAAA"]);
  });

  test("returns a redirect instead of following it", async () => {
    await using out = await egress({}, LOOPBACK);
    const response = await out.fetch(`http://127.0.0.1:${server.port}/redirect`, { redirect: "follow" });
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toBe("http://169.254.169.254/");
  });

  test("goes on to the next address where nothing listens at the first", async () => {
    await using out = await egress({ "two.lan": { A: ["127.0.0.7", "127.0.0.1"] } }, LOOPBACK);
    const before = seen.length;
    const response = await out.fetch(`http://two.lan:${server.port}/`, { method: "POST", body: "once" });
    expect(response.status).toBe(200);
    expect(seen.slice(before)).toHaveLength(1);
  });

  test("says that nothing answers where no address does", async () => {
    await using out = await egress({ "none.lan": { A: ["127.0.0.7", "127.0.0.8"] } }, LOOPBACK);
    const error = await thrownBy(out.fetch(`http://none.lan:${server.port}/`));
    expect(networkFault(error)).toEqual({
      code: "unreachable",
      message: "Nothing answers at that address and port: see that the server runs, and that both are right.",
    });
  });

  test("sends nothing twice to a server that breaks off", async () => {
    let connections = 0;
    const rude = createTcpServer((socket) => {
      connections += 1;
      socket.on("error", () => undefined);
      socket.once("data", () => socket.destroy());
    });
    rude.listen(0, "127.0.0.1");
    await once(rude, "listening");
    const { port } = rude.address() as AddressInfo;
    await using out = await egress({ "rude.lan": { A: ["127.0.0.1", "127.0.0.1"] } }, LOOPBACK);
    const error = await thrownBy(out.fetch(`http://rude.lan:${port}/`, { method: "POST", body: "once" }));
    expect(networkFault(error)?.message).toContain("broke off");
    expect(connections).toBe(1);
    rude.close();
  });

  test("an abort ends the wait for an answer, and says whether it was time", async () => {
    await using out = await egress({}, LOOPBACK);
    const url = `http://127.0.0.1:${server.port}/hang`;
    const late = await thrownBy(out.fetch(url, { signal: AbortSignal.timeout(30) }));
    expect(networkFault(late)?.code).toBe("timeout");
    const controller = new AbortController();
    const pending = thrownBy(out.fetch(url, { signal: controller.signal }));
    controller.abort();
    expect(networkFault(await pending)?.code).toBe("cancelled");
    expect(networkFault(await thrownBy(out.fetch(url, { signal: AbortSignal.abort() })))?.code).toBe(
      "cancelled",
    );
  });

  test("an abort ends the wait for a silent name server", async () => {
    await using out = await egress({}, []);
    out.dns.fault("*", "drop");
    const error = await thrownBy(out.fetch("https://slow.example/", { signal: AbortSignal.timeout(30) }));
    expect(networkFault(error)?.code).toBe("timeout");
  });

  test("a failed lookup is told apart and not remembered", async () => {
    await using out = await egress({}, []);
    const missing = await thrownBy(out.fetch("https://no-such.example/"));
    expect(networkFault(missing)).toEqual({ code: "unreachable", message: "That host name does not exist." });
    out.dns.fault("late.example", "servfail");
    const failed = await thrownBy(out.fetch("https://late.example/"));
    expect(networkFault(failed)?.message).toContain("name server");
    out.dns.fault("late.example", undefined);
    out.dns.set("late.example", "A", ["10.0.0.1"]);
    expect(await thrownBy(out.fetch("https://late.example/"))).toBeInstanceOf(BlockedAddressError);
  });

  test.each(["gzip", "deflate", "br", "zstd", "x-own"])(
    "asks for no packed answer, and reads none (%s)",
    async (encoding) => {
      await using out = await egress({}, LOOPBACK);
      const url = `http://127.0.0.1:${server.port}/bomb?${encoding}`;
      const headers = { "Accept-Encoding": "zstd" };
      expect(networkFault(await thrownBy(out.fetch(url, { headers })))).toEqual({
        code: "unreachable",
        message: expect.stringMatching(/^The answer is packed .* does not pack it\.$/),
      });
      expect(asked).toBe("identity");
    },
  );

  test("reads no more of a body than asked", async () => {
    await using out = await egress({}, LOOPBACK);
    const long = await readCapped(await out.fetch(`http://127.0.0.1:${server.port}/long`), 1_000);
    expect([long.bytes.length, long.truncated]).toEqual([1_000, true]);
    const exact = await readCapped(await out.fetch(`http://127.0.0.1:${server.port}/`), 5);
    expect([new TextDecoder().decode(exact.bytes), exact.truncated]).toEqual(["hello", false]);
    expect((await readCapped(new Response(null), 5)).bytes).toHaveLength(0);
  });
});

describe("over TLS", () => {
  let ca = "";
  let port = 0;
  const connections = new Map<number, number>();
  let server: Server;
  const zone: DnsZone = {
    "a.example": { A: ["127.0.0.1"] },
    "b.example": { A: ["127.0.0.1"] },
    "other.example": { A: ["127.0.0.1"] },
  };

  beforeAll(async () => {
    const authority = await generate([{ name: "commonName", value: "Test authority" }], {
      extensions: [
        { name: "basicConstraints", cA: true, critical: true },
        { name: "keyUsage", keyCertSign: true, critical: true },
      ],
    });
    const leaf = await generate([{ name: "commonName", value: "a.example" }], {
      ca: { key: authority.private, cert: authority.cert },
      extensions: [
        {
          name: "subjectAltName",
          altNames: [
            { type: 2, value: "a.example" },
            { type: 2, value: "b.example" },
          ],
        },
      ],
    });
    ca = authority.cert;
    server = createServer({ key: leaf.private, cert: leaf.cert });
    server.on("request", (request, response) => {
      const { remotePort = 0 } = request.socket;
      const connection = connections.get(remotePort) ?? connections.size;
      connections.set(remotePort, connection);
      const servername = "servername" in request.socket ? request.socket.servername : null;
      response.end(JSON.stringify({ connection, servername, host: request.headers.host }));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test("asks for the name, checks the certificate against it, and keeps the connection for that name alone", async () => {
    await using out = await egress(zone, LOOPBACK, ca);
    const get = async (host: string): Promise<{ connection: number }> => {
      const response = await out.fetch(`https://${host}:${port}/`);
      return (await response.json()) as { connection: number };
    };
    const first = await get("a.example");
    expect(first).toMatchObject({ servername: "a.example", host: `a.example:${port}` });
    expect(await get("a.example")).toEqual(first);
    // Same address, same port, a certificate good for both: still no shared connection.
    const second = await get("b.example");
    expect(second).toMatchObject({ servername: "b.example", host: `b.example:${port}` });
    expect(second.connection).not.toBe(first.connection);
    expect(await get("a.example")).toEqual(first);
  });

  test("refuses a certificate for another name, also while a good connection to that address is open", async () => {
    await using out = await egress(zone, LOOPBACK, ca);
    expect((await out.fetch(`https://a.example:${port}/`)).status).toBe(200);
    const error = await thrownBy(out.fetch(`https://other.example:${port}/`));
    expect(networkFault(error)?.code).toBe("tls_error");
    const byAddress = await thrownBy(out.fetch(`https://127.0.0.1:${port}/`));
    expect(networkFault(byAddress)?.code).toBe("tls_error");
  });

  test("refuses a certificate of an authority it does not know, whatever the caller asks for", async () => {
    await using out = await egress(zone, LOOPBACK);
    const lax = { tls: { rejectUnauthorized: false } } as RequestInit;
    const error = await thrownBy(out.fetch(`https://a.example:${port}/`, lax));
    expect(networkFault(error)?.code).toBe("tls_error");
  });

  test("tells a server without TLS from one that is down", async () => {
    using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("plain") });
    await using out = await egress({}, LOOPBACK);
    const error = await thrownBy(out.fetch(`https://127.0.0.1:${plain.port}/`));
    expect(networkFault(error)?.code).toBe("tls_error");
  });
});

test("reads Retry-After as seconds or as a date, never negative and at most a day", () => {
  const of = (value: string) => retryAfterSeconds(new Headers({ "retry-after": value }));
  expect(of("7")).toBe(7);
  expect(of("0")).toBe(0);
  expect(of("99999999")).toBe(86_400);
  expect(of(new Date(Date.now() + 30_000).toUTCString())).toBeWithin(28, 32);
  expect(of(new Date(0).toUTCString())).toBe(0);
  expect(of("soon")).toBeNull();
  expect(of("-5") ?? 0).toBe(0);
  expect(retryAfterSeconds(new Headers())).toBeNull();
});

test("leaves mistakes of our own alone", () => {
  expect(networkFault(new TypeError("x is not a function"))).toBeNull();
  expect(networkFault("text")).toBeNull();
});
