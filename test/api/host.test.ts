import { expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { openChallengeDoor } from "../../src/http/challenges.ts";
import { openMetricsDoor } from "../../src/http/metrics.ts";
import { createHttp } from "../../src/api.ts";
import { testApp } from "../support/app.ts";
import { freePort } from "../support/free-port.ts";
import { LISTEN, openDoor } from "./door.ts";

/** What is no host, and what Bun's own parser lets through of it. */
const NO_HOSTS = [
  "Host:",
  ...[
    ["a b", "a\tb", "a\x7fb", "a\\b", "<a>", "\xe4.example", "a%2fb", "a%41b", "a..b", ".a", ".", "a*"],
    ["[", "[::1", "::1", "[v1.a]", "[::1]x", "256.1.1.1", "a.1"],
    ["a:99999", "a:65536", "a:0", "a:8a", "a:-1", "a:80:80", ":80"],
    ["us@er", "us:er@a.example", "@a.example", "a/b", "a/", "http://a", "a?b", "a#b"],
    ["a,b", "a.example, b.example", "a;b", "a".repeat(300)],
  ]
    .flat()
    .map((host) => `Host: ${host}`),
];
/** Each of the readers of a request could take another one (RFC 9112 §3.2), even where they seem to be the same. */
const TWO_HOSTS = [
  ["a.example", "b.example"],
  ["a.example", "a.example"],
  ["", "b.example"],
  ["a.example", ""],
  ["", ""],
  ["a.example", "b.example:99999"],
  ["a.example:80", "a.example"],
].flatMap(([one, other]) => [
  `Host: ${one}\r\nHost: ${other}`,
  `HOST: ${one}\r\nAccept: */*\r\nhost: ${other}`,
]);
/** The first reads as the way to another route in front of which `/auth/accou` is a host. */
const PATHS = ["/auth/accou/inboxes", "/v1/messages/x", "/nowhere", "//other.example/livez", "/livez"];

test("a request that names no host is refused with 400 and the mend, whatever it asks for", async () => {
  await using t = await testApp({ server: { ...LISTEN, cors_origins: ["https://page.example"] } });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (const line of [...NO_HOSTS, ...TWO_HOSTS])
    for (const path of PATHS) {
      const head = `GET ${path} HTTP/1.1\r\n${line}\r\nOrigin: https://page.example\r\nX-API-Key: ${ada.key}`;
      const answer = await ask(door.port, head);
      const { status, code, request_id, fix } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")));
      expect([line, path, status, code]).toEqual([line, path, 400, "invalid_host"]);
      expect(answer).toContain(`\r\nx-request-id: ${request_id}\r\n`);
      expect(fix).toContain("Host: mail.example.org");
    }
  for (const head of [
    "GET /v1/messages/x HTTP/1.0",
    "GET /livez HTTP/1.1\r\nHost:",
    "CONNECT evil:.other.example/x HTTP/1.1\r\nHost:",
  ])
    expect([head, await ask(door.port, head)]).toEqual([head, expect.stringMatching(/^HTTP\/1.1 400 /)]);
});

test("a host of any form is one, and so is none at all for a health check in HTTP/1.0", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  for (const host of [
    "a",
    "mx",
    "vm1",
    "my_box",
    "MAIL.example.",
    "xn--bcher-kva.example",
    "[::1]:8080",
    "10.0.0.1",
    "10.0.0.1:65535",
    "a.example:",
    "a.example:080",
    "-a-.example",
  ])
    for (const [path, status] of [
      ["/livez", 200],
      ["/inboxes", 401],
      ["/aa/inboxes", 404],
      ["/v1/inboxes", 404],
    ] as const) {
      const answer = await ask(door.port, `GET ${path} HTTP/1.1\r\nHost: ${host}`);
      expect([host, path, answer.slice(0, 12)]).toEqual([host, path, `HTTP/1.1 ${status}`]);
    }
  for (const path of ["/livez", "/readyz"])
    expect(await ask(door.port, `GET ${path} HTTP/1.0`)).toStartWith("HTTP/1.1 200");
});

test("a request is for the host of its Host field, whatever host stands in its target", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  for (const target of ["http://other.example", "https://us:er@other.example:99999", "http://mx.mw.test"])
    for (const [path, status] of [
      ["/livez", 200],
      ["/inboxes", 401],
      ["/nowhere", 404],
    ]) {
      const answer = await ask(door.port, `GET ${target}${path} HTTP/1.1\r\nHost: mx.mw.test`);
      expect([target, path, answer.slice(0, 12)]).toEqual([target, path, `HTTP/1.1 ${status}`]);
      const none = await ask(door.port, `GET ${target}${path} HTTP/1.1\r\nHost: a, b`);
      expect([target, path, none.slice(0, 12)]).toEqual([target, path, "HTTP/1.1 400"]);
    }
});

test("behind https a path is never looked for inside of itself", async () => {
  await using t = await testApp({ server: { tls: "acme" } });
  const http = createHttp(t.app, { ready: async () => ({ database: "ok" }) });
  const statusOf = async (url: string) => (await http.fetch(new Request(url))).status;
  for (const host of ["a", "mx"]) expect(await statusOf(`https://${host}/aa/inboxes`)).toBe(400);
  for (const host of ["vm1", "mx.mw.test", "[::1]"]) {
    expect(await statusOf(`https://${host}/livez`)).toBe(200);
    expect(await statusOf(`https://${host}/aa/inboxes`)).toBe(404);
  }
});

test("the doors of the figures and of the challenges say so in plain text", async () => {
  await using t = await testApp({
    server: { tls: "acme" },
    acme: { listen: `127.0.0.1:${await freePort()}` },
    metrics: { listen: LISTEN.listen },
  });
  await using figures = openMetricsDoor(t.app);
  await using _challenges = openChallengeDoor(t.app);
  t.app.certificates.challenges.set("token", "answer");
  for (const port of [new URL(figures.url ?? "").port, t.app.config.acme.listen.split(":").at(-1)])
    for (const head of [
      ...[...NO_HOSTS, ...TWO_HOSTS].map((line) => `GET /metrics HTTP/1.1\r\n${line}`),
      "CONNECT evil:.other.example/x HTTP/1.1\r\nHost: mx.mw.test",
    ]) {
      const answer = await ask(Number(port), head);
      expect([head, answer]).toEqual([head, expect.stringMatching(/^HTTP\/1.1 400 .*names no host\.\n$/s)]);
    }
});

async function ask(port: number, head: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (bytes) => (answer += bytes));
  socket.write(Buffer.from(`${head}\r\nConnection: close\r\n\r\n`, "latin1"));
  await once(socket, "close");
  return answer;
}
