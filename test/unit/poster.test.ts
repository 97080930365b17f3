import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer, type Server } from "node:tls";
import { generate } from "selfsigned";
import { createPoster, type Poster, type PostRequest } from "../../src/lib/poster.ts";
import { networkFault } from "../../src/lib/responses.ts";
import { type RawReceiver, startRawReceiver } from "../support/webhook-receiver.ts";

const MAX_GROWTH_BYTES = 200 * 1_048_576;

const REQUEST: Omit<PostRequest, "url"> = {
  headers: { "x-one": "1" },
  body: "Grüße",
  timeout_ms: 1_000,
  connect_ms: 1_000,
  max_bytes: 1_000,
};

function posterTo(ca?: string): Poster {
  return createPoster({
    resolve: async (name, type) => (type === "A" && name.endsWith(".test") ? ["127.0.0.1"] : []),
    allow: ["127.0.0.1"],
    ...(ca === undefined ? {} : { ca }),
  });
}

describe("the answer", () => {
  let answer = "";
  let requests: string[] = [];
  let server: RawReceiver;
  const poster = posterTo();

  beforeAll(async () => {
    server = await startRawReceiver((socket, request) => {
      requests.push(request);
      socket.write(answer);
      if (!/content-length|chunked|\r\n204/i.test(answer)) socket.end();
    });
  });
  afterAll(async () => {
    poster[Symbol.dispose]();
    await server[Symbol.asyncDispose]();
  });

  const post = async (text: string) => {
    answer = text;
    requests = [];
    const { status, body } = await poster.post({ ...REQUEST, url: server.url });
    return `${status} ${body.toString()}`;
  };

  const good: [string, string, string][] = [
    ["with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"],
    ["without a reason", "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", "200 "],
    ["up to the end of the connection", "HTTP/1.0 502 Bad\r\n\r\nsorry", "502 sorry"],
    [
      "in chunks",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n1\r\nd\r\n0\r\n\r\n",
      "200 abcd",
    ],
    [
      "in chunks with a trailer",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n",
      "200 a",
    ],
    [
      "after interim ones",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\n!",
      "201 !",
    ],
    ["with nothing after the status", "HTTP/1.1 204 No Content\r\n\r\n", "204 "],
    [
      "that is longer than wanted",
      `HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n${"x".repeat(5_000)}`,
      `200 ${"x".repeat(1_000)}`,
    ],
    [
      "in one chunk that is longer than wanted",
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFF\r\n${"x".repeat(5_000)}`,
      `200 ${"x".repeat(1_000)}`,
    ],
    [
      "whose chunks are broken",
      "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
      "500 ",
    ],
  ];
  test.each(good)("is read %s", async (_name, text, expected) => {
    expect(await post(text)).toBe(expected);
  });

  const bad: [string, string][] = [
    ["another protocol", "220 mail.example ESMTP\r\n\r\n"],
    ["HTTP/2", "HTTP/2 200\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
    ["a header without a name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
    ["a negative length", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
    ["a head without an end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(40_000)}`],
  ];
  test.each(bad)("of %s is none", async (_name, text) => {
    const error: unknown = await post(text).catch((thrown: unknown) => thrown);
    expect(networkFault(error)).toMatchObject({ code: "unreachable" });
  });

  test("is asked for with the body as it is, and its length in bytes", async () => {
    await post("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    expect(requests).toHaveLength(1);
    const [head = "", body] = (requests[0] ?? "").split("\r\n\r\n");
    expect(body).toBe("Grüße");
    const [line, ...headers] = head.toLowerCase().split("\r\n");
    expect(line).toBe("post /hook http/1.1");
    expect(headers).toEqual(
      expect.arrayContaining(["x-one: 1", `host: 127.0.0.1:${server.port}`, "content-length: 7"]),
    );
  });
});

describe("an answer without end", () => {
  const CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  const floods: [string, string, string, 200 | "timeout" | "unreachable"][] = [
    ["in its body", "HTTP/1.1 200 OK\r\n\r\n", "x".repeat(1_000), 200],
    ["in a trailer", `${CHUNKED}0\r\nx: `, "a".repeat(1_000), 200],
    ["in the extension of a chunk", `${CHUNKED}1;x=`, "e".repeat(1_000), 200],
    ["in the extensions of chunks", CHUNKED, `1;x=${"e".repeat(3_000)}\r\na\r\n`, 200],
    ["in the size of a chunk", CHUNKED, "0".repeat(1_000), 200],
    ["in interim answers", "", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(30), "timeout"],
    ["in empty lines before it", "", "\r\n".repeat(500), "unreachable"],
    ["in a header", "HTTP/1.1 200 OK\r\nx: ", "h".repeat(1_000), "unreachable"],
  ];
  test.each(floods)("%s is cut off, and kept by nobody", async (_name, start, more, expected) => {
    await using server = await startRawReceiver((socket) => {
      socket.write(start);
      const pour = () => {
        let has_room = true;
        for (let n = 0; n < 100 && has_room && !socket.destroyed; n += 1) has_room = socket.write(more);
        // Somebody else has a turn in this process now and then.
        if (has_room) setImmediate(pour);
        else socket.once("drain", pour);
      };
      pour();
    });
    using poster = posterTo();
    const before = process.memoryUsage.rss();
    const answered = poster.post({ ...REQUEST, timeout_ms: 500, url: server.url });
    expect(
      await answered.then(
        ({ status }): unknown => status,
        (error: unknown) => networkFault(error)?.code,
      ),
    ).toBe(expected);
    expect(process.memoryUsage.rss() - before).toBeLessThan(MAX_GROWTH_BYTES);
  });
});

test("a head that comes byte by byte has as much time as all the rest", async () => {
  await using server = await startRawReceiver((socket) => {
    const trickle = setInterval(() => socket.write("H"), 10);
    socket.on("close", () => clearInterval(trickle));
    socket.write("HTTP/1.1 200 OK\r\nx: ");
  });
  using poster = posterTo();
  const posted = poster.post({ ...REQUEST, timeout_ms: 100, url: server.url });
  await expect(posted).rejects.toMatchObject({ name: "TimeoutError" });
});

test("a body that breaks off, or never ends, leaves the status", async () => {
  const ends = [(socket: Socket) => socket.destroy(), () => undefined];
  await using server = await startRawReceiver((socket) => {
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\nok", () => ends.shift()?.(socket));
  });
  using poster = posterTo();
  const post = async () => {
    const { status, body } = await poster.post({ ...REQUEST, timeout_ms: 100, url: server.url });
    return `${status} ${body.toString()}`;
  };
  expect([await post(), await post()]).toEqual(["200 ", "200 "]);
});

test("a redirect is an answer like any other", async () => {
  await using elsewhere = await startRawReceiver(() => undefined);
  await using server = await startRawReceiver((socket) =>
    socket.write(`HTTP/1.1 302 Found\r\nlocation: ${elsewhere.url}\r\ncontent-length: 0\r\n\r\n`),
  );
  using poster = posterTo();
  expect((await poster.post({ ...REQUEST, url: server.url })).status).toBe(302);
  expect(elsewhere.connections).toBe(0);
});

test("hundreds that hang hold up neither another one nor fetch, in a program that made room for them", async () => {
  const ran = Bun.spawn([process.execPath, join(import.meta.dir, "../fixtures/many-that-hang.ts")], {
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: undefined },
    stdout: "pipe",
  });
  expect(await new Response(ran.stdout).json()).toEqual({
    hanging: 400,
    posted: 200,
    fetched: 200,
    ended: 400,
  });
  expect(await ran.exited).toBe(0);
});

test("a connection is used again where the answer ended cleanly, and only there", async () => {
  const answers = [
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 204 No\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: close\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
    "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
  ];
  await using server = await startRawReceiver((socket) => socket.write(answers.shift() ?? ""));
  using poster = posterTo();
  const connections: number[] = [];
  while (answers.length > 0) {
    const { body } = await poster.post({ ...REQUEST, url: server.url });
    expect(["ok", ""]).toContain(body.toString());
    connections.push(server.connections);
  }
  expect(connections).toEqual([1, 1, 1, 2, 3, 4]);
});

test("a kept connection that the other side closes is not used again", async () => {
  const closed = Promise.withResolvers<void>();
  await using server = await startRawReceiver((socket) => {
    socket.once("close", closed.resolve);
    socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  });
  using poster = posterTo();
  const post = async () => (await poster.post({ ...REQUEST, url: server.url })).status;
  const first = await post();
  await closed.promise;
  expect([first, await post()]).toEqual([200, 200]);
  expect(server.connections).toBe(2);
});

test("nothing is sent in plain text to a host that the operator did not allow", async () => {
  using poster = createPoster({ resolve: async () => ["93.184.216.34"], allow: [] });
  for (const url of ["http://hooks.test/", "ftp://hooks.test/"])
    await expect(poster.post({ ...REQUEST, url })).rejects.toThrow("Only https");
});

test("a lookup that hangs ends with the time there is", async () => {
  using poster = createPoster({ resolve: () => new Promise(() => undefined), allow: [] });
  const request = { ...REQUEST, url: "https://hooks.test/", timeout_ms: 20 };
  await expect(poster.post(request)).rejects.toMatchObject({ name: "TimeoutError" });
});

test("an address that takes no connection is left for the next one in its time", async () => {
  await using server = await startRawReceiver((socket) =>
    socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
  );
  await using silent = await fullAddress(server.port);
  const addresses = [silent.address, "127.0.0.1"];
  using poster = createPoster({
    resolve: async (_name, type) => (type === "A" ? addresses : []),
    allow: ["127.0.0.0/8"],
  });
  const request = {
    ...REQUEST,
    url: `http://hooks.test:${server.port}/`,
    timeout_ms: 5_000,
    connect_ms: 200,
  };
  expect((await poster.post(request)).status).toBe(200);
  addresses.pop();
  using other = createPoster({
    resolve: async (_name, type) => (type === "A" ? addresses : []),
    allow: ["127.0.0.0/8"],
  });
  await expect(other.post(request)).rejects.toMatchObject({ name: "TimeoutError" });
});

describe("over TLS", () => {
  let server: Server;
  let ca = "";
  let names: (string | false)[] = [];

  // One for each test: the runtime keeps connections for whoever comes next.
  beforeEach(async () => {
    const made = await generate([{ name: "commonName", value: "hooks.test" }], {
      keySize: 2048,
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "hooks.test" }] }],
    });
    ca = made.cert;
    server = createTlsServer({ key: made.private, cert: made.cert }, (socket) => {
      names.push((socket as { servername?: string | false }).servername ?? false);
      socket.on("error", () => undefined);
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    });
    server.on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(() => void server.close());

  const post = (poster: Poster, host: string) => {
    names = [];
    const { port } = server.address() as AddressInfo;
    return poster.post({ ...REQUEST, url: `https://${host}:${port}/` });
  };

  test("a certificate of the name is accepted, and the name is in the handshake", async () => {
    using poster = posterTo(ca);
    expect((await post(poster, "hooks.test")).status).toBe(200);
    expect(names).toEqual(["hooks.test"]);
  });

  test("one of another name is not, nor for the address, also beside a connection that is kept", async () => {
    using poster = posterTo(ca);
    await post(poster, "hooks.test");
    await expect(post(poster, "other.test")).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
    await expect(post(poster, "127.0.0.1")).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
  });

  test("nor is one that nobody vouches for", async () => {
    using poster = posterTo();
    await expect(post(poster, "hooks.test")).rejects.toThrow();
    expect(names).toEqual([]);
  });
});

/** An address on loopback with a listener that takes nothing, and whose queue is full. */
async function fullAddress(port: number): Promise<{ address: string } & AsyncDisposable> {
  const address = "127.0.0.9";
  const script = `import socket, time
s = socket.socket(); s.bind(("${address}", ${port})); s.listen(0); print("up", flush=True); time.sleep(60)`;
  const child = Bun.spawn(["python3", "-c", script], { stdout: "pipe" });
  await child.stdout.getReader().read();
  const waiting = Array.from({ length: 4 }, () =>
    connect({ port, host: address }).on("error", () => undefined),
  );
  return {
    address,
    async [Symbol.asyncDispose]() {
      for (const socket of waiting) socket.destroy();
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
