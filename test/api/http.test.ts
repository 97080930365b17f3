import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { freshCode } from "./browser.ts";
import { LISTEN, openDoor } from "./door.ts";
import { MB } from "../../src/lib/sizes.ts";

type Send = (path: string, init?: RequestInit) => Promise<Answer>;

/** Elysia takes other ways through its code when it listens: each claim holds for both. */
const WAYS: [name: string, open: (t: TestApp) => Promise<{ request: Send } & AsyncDisposable>][] = [
  [
    "handed over",
    async (t) => ({ request: (path, init) => t.request(path, init), async [Symbol.asyncDispose]() {} }),
  ],
  ["over a socket", openDoor],
];

describe.each(WAYS)("a request %s", (_name, open) => {
  test("gets problem+json for an error, with every member that RFC 9457 and we promise", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const answer = await door.request("/nowhere");
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(answer.body).toEqual({
      type: `${t.app.base_url}/docs/errors#not_found`,
      title: "Not found",
      status: 404,
      detail: "There is nothing at /nowhere.",
      code: "not_found",
      request_id: answer.headers.get("x-request-id"),
    });
  });

  test("has its own safe request id echoed, in the header and in the body", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    for (const id of ["a", "trace:1.2_3-4", "x".repeat(64)]) {
      const answer = await door.request("/nowhere", { headers: { "x-request-id": id } });
      expect(answer.headers.get("x-request-id")).toBe(id);
      expect(answer.body.request_id).toBe(id);
    }
  });

  test("has an unsafe request id replaced by a fresh one", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const seen = new Set<string>();
    const unsafe = ["", "x".repeat(65), "a b", "<script>", "a;b", "a/b", '"', "ä", "a,b", "%0a"];
    for (const id of unsafe) {
      const answer = await door.request("/livez", { headers: { "x-request-id": id } });
      expect(answer.headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
      seen.add(answer.headers.get("x-request-id") ?? "");
    }
    expect(seen.size).toBe(unsafe.length);
  });

  test("gets the security headers on good and bad answers alike, and no HSTS over plain http", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    for (const path of ["/livez", "/nowhere", "/inboxes", "/messages?limit=0"]) {
      const { headers } = await door.request(path, { headers: { "x-api-key": ada.key } });
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("service-version")).toBe("0.1.0");
      expect(headers.has("x-request-id")).toBe(true);
      expect(headers.has("strict-transport-security")).toBe(false);
      expect(headers.has("access-control-allow-origin")).toBe(false);
    }
  });

  test("with a method that the path does not have gets 405 and the ones it has", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const cases: [method: string, path: string, allow: string[]][] = [
      ["PUT", "/inboxes", ["GET", "POST"]],
      ["PUT", "/inboxes/", ["GET", "POST"]],
      ["OPTIONS", "/connections", ["GET", "POST"]],
      ["PATCH", "/messages", ["GET"]],
      ["GET", "/v1/messages", ["POST"]],
      ["DELETE", "/v1/messages/abc", ["GET"]],
      ["POST", `/inboxes/${Bun.randomUUIDv7()}`, ["DELETE", "GET", "PATCH"]],
      ["POST", "/livez", ["GET"]],
    ];
    for (const [method, path, allow] of cases) {
      const answer = await door.request(path, { method });
      expect([method, path, answer.status, answer.body.code]).toEqual([
        method,
        path,
        405,
        "method_not_allowed",
      ]);
      expect(answer.headers.get("allow")?.split(", ").sort()).toEqual(allow);
    }
  });

  test.each([
    ["GET", "/v1/messages", 405, "Use POST. GET /messages is there as well."],
    ["GET", "/v1/inboxes", 404, "GET /inboxes is there."],
    ["GET", "/webhooks", 404, "GET /v1/webhooks is there."],
    ["DELETE", "/v1/inboxes", 404, undefined],
  ])("%s %s says where it is, with or without /v1", async (method, path, status, fix) => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const answer = await door.request(path, { method });
    expect([answer.status, answer.body.fix]).toEqual([status, fix]);
  });

  test("is served with and without a trailing slash, never redirected", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    for (const path of ["/inboxes", "/connections", "/messages", "/livez"]) {
      const headers = { "x-api-key": ada.key };
      const plain = await door.request(path, { headers });
      const slashed = await door.request(`${path}/`, { headers, redirect: "manual" });
      expect([path, slashed.status, slashed.body]).toEqual([path, 200, plain.body]);
    }
    const call = await door.request("/v1/messages/", json(ada, "{}"));
    expect(call.body.errors[0].path).toBe("body.instruction");
  });

  test("with a body that is no JSON object gets 422 json_invalid, also with a wrong or no content type", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const bodies = ["{", "nope", "null", "false", "0", '""', '"x"', "[]", "[{}]", "{}{}", "\u{feff}{}", ""];
    const requests: RequestInit[] = [
      ...bodies.map((body) => json(ada, body)),
      { method: "POST", headers: { "x-api-key": ada.key } },
      { method: "POST", headers: { "x-api-key": ada.key, "content-type": "application/json" } },
      ...["text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data"].map(
        (type) => ({ ...json(ada, "{}"), headers: { "x-api-key": ada.key, "content-type": type } }),
      ),
    ];
    for (const path of ["/inboxes", "/connections", "/v1/messages"]) {
      for (const init of requests) {
        const answer = await door.request(path, init);
        expect([path, init.body, answer.status]).toEqual([path, init.body, 422]);
        expect(answer.body.code).toBe("validation_error");
        expect(answer.body.errors).toEqual([
          { path: "body", code: "json_invalid", message: answer.body.detail },
        ]);
      }
    }
    expect((await ada.get("/inboxes")).body).toEqual([]);
  });

  test("may call its JSON by any of its names and carry members nobody knows", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const types = ["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"];
    for (const type of types) {
      const answer = await door.request("/inboxes", {
        ...json(ada, '{"label":"Desk","__proto__":{"label":"x"},"constructor":1,"id":"mine","user_id":7}'),
        headers: { "x-api-key": ada.key, "content-type": type },
      });
      expect([type, answer.status, answer.body.label]).toEqual([type, 201, "Desk"]);
    }
  });

  test("with a malformed uuid in a *_id path parameter gets 422 that names the parameter", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const good = Bun.randomUUIDv7();
    const cases: [method: string, path: (id: string) => string, name: string][] = [
      ["PATCH", (id) => `/inboxes/${id}`, "path.inbox_id"],
      ["DELETE", (id) => `/inboxes/${id}`, "path.inbox_id"],
      ["PATCH", (id) => `/connections/${id}`, "path.connection_id"],
      ["DELETE", (id) => `/connections/${id}/`, "path.connection_id"],
      ["GET", (id) => `/messages/${id}/attachments/${good}`, "path.message_id"],
      ["GET", (id) => `/messages/${good}/attachments/${id}`, "path.attachment_id"],
    ];
    for (const [method, path, name] of cases) {
      for (const id of ["abc", "1", `${good}0`, "%00", "%ff", "..%2f..", "%F0%9F%98%80"]) {
        const init = method === "GET" ? {} : { body: "{}" };
        const answer = await door.request(path(id), {
          ...json(ada, "{}"),
          ...init,
          method,
          ...noBody(method),
        });
        expect([method, path(id), answer.status]).toEqual([method, path(id), 422]);
        expect(answer.body.errors[0].path).toBe(name);
      }
    }
  });

  test("for /v1/messages/{id} with an unknown or malformed id gets the same 404", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const bodies = new Set<string>();
    for (const id of [Bun.randomUUIDv7(), "abc", "%", "%ff", "%00", "a%2Fb", "x".repeat(2_000), "'--"]) {
      const answer = await door.request(`/v1/messages/${id}`, { headers: { "x-api-key": ada.key } });
      expect([id, answer.status]).toEqual([id, 404]);
      bodies.add(JSON.stringify({ ...answer.body, request_id: "" }));
    }
    expect(bodies.size).toBe(1);
  });

  test("with a declared length over the cap gets 413, and the cap of /v1/messages is the larger one", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const padded = JSON.stringify({ x: "a".repeat(MB) });
    for (const path of ["/inboxes", "/connections"]) {
      const answer = await door.request(path, json(ada, padded));
      expect([path, answer.status, answer.body.code]).toEqual([path, 413, "payload_too_large"]);
      expect(answer.body.detail).toContain("1 MB");
    }
    expect((await door.request("/v1/messages", json(ada, padded))).status).toBe(422);
    expect((await door.request("/inboxes", json(ada, `{"x":"${"a".repeat(MB - 8)}"}`))).status).toBe(201);
  });

  test("that has more members and entries than anything means gets 422 before they are looked at", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const ones = (count: number) => `[${"1,".repeat(count - 1)}1]`;
    const many = [ones(20_001), `{}${",{}".repeat(10_000)}`, "}".repeat(20_001), '"'.repeat(50_000)];
    for (const value of [...many.map((text) => `{"label":${text}}`), many.at(-1) as string]) {
      const answer = await door.request("/inboxes", json(ada, value));
      expect([answer.status, answer.body.errors]).toEqual([
        422,
        [{ path: "body", code: "json_invalid", message: "The body has far too many members and entries." }],
      ]);
    }
    const some = await door.request(
      "/inboxes",
      json(ada, `{"unknown":${ones(9_000)},"label":"[,[,[,\\",,"}`),
    );
    expect([some.status, some.body.label]).toEqual([201, '[,[,[,",,']);
  });

  test("that is nested too deeply gets 422, wherever that is", async () => {
    await using t = await testApp({ server: LISTEN });
    await using door = await open(t);
    const ada = await t.as("ada@example.com");
    const deep = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
    for (const text of [deep, `{"a":`.repeat(100_000), `{"x":${deep}}`, `{"allowlist_senders":${deep}}`]) {
      const answer = await door.request("/inboxes", json(ada, text));
      expect([text.slice(0, 20), answer.status]).toEqual([text.slice(0, 20), 422]);
      expect(answer.body.errors[0].code).toBe("json_invalid");
    }
    const strings = JSON.stringify({ label: '[{"\\', x: "[".repeat(100), y: `${"{".repeat(99)}"\\"` });
    expect((await door.request("/inboxes", json(ada, strings))).body.label).toBe('[{"\\');
  });
});

test("a 40 MB declaration to /v1/messages is refused with 413 before a byte of it is read", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  await using wire = await openWire(door);
  wire.write(
    `POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ada.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${41 * MB}\r\n\r\n{`,
  );
  const answer = await wire.until(/payload_too_large/);
  expect(answer).toStartWith("HTTP/1.1 413");
  expect(answer).toContain("40 MB");
});

test("a chunked body that grows over the cap is refused with 413, and one below it is taken", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  const head =
    `POST /inboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ada.key}\r\n` +
    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  await using big = await openWire(door);
  big.write(`${head}${chunk('{"label":"')}${chunk("a".repeat(MB / 4)).repeat(5)}`);
  expect(await big.until(/payload_too_large/)).toStartWith("HTTP/1.1 413");
  await using small = await openWire(door);
  small.write(`${head}${chunk('{"label":')}${chunk('"Desk"}')}0\r\n\r\n`);
  expect(await small.until(/"label":"Desk"/)).toStartWith("HTTP/1.1 201");
});

test.each(["gzip", "br", "identity, gzip"])(
  "a body that is packed by %s is refused in words",
  async (coding) => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const { key } = ada;
    const body = Bun.gzipSync(JSON.stringify({ label: "Desk" }));
    const headers = { "x-api-key": key, "content-type": "application/json", "content-encoding": coding };
    const packed = await t.request("/inboxes", { method: "POST", headers, body });
    expect(packed.status).toBe(422);
    expect(packed.body.errors[0].message).toBe(
      "The body must not be packed: send it as it is, without the header Content-Encoding.",
    );
    const plain = await ada.post("/inboxes", { label: "Desk" }, { "content-encoding": "Identity" });
    expect(plain.status).toBe(201);
  },
);

test("a body to a stranger is refused with 401 before it is read", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  await using wire = await openWire(door);
  wire.write(
    "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{",
  );
  expect(await wire.until(/unauthorized/)).toStartWith("HTTP/1.1 401");
});

test("a client that breaks off in the middle of its body leaves the server serving", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (let turn = 0; turn < 5; turn++) {
    await using wire = await openWire(door);
    wire.write(
      `POST /inboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ada.key}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"label":',
    );
  }
  expect((await door.request("/inboxes", { headers: { "x-api-key": ada.key } })).body).toEqual([]);
});

test("HEAD is answered as GET without its body", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const ada = await t.as("ada@example.com");
  for (const path of ["/livez", "/inboxes", "/messages"]) {
    const answer = await door.request(path, { method: "HEAD", headers: { "x-api-key": ada.key } });
    expect([path, answer.status, answer.body]).toEqual([path, 200, ""]);
  }
  expect((await door.request("/inboxes", { method: "HEAD" })).status).toBe(401);
});

test("HSTS is sent when people reach the server by https", async () => {
  await using t = await testApp();
  t.app.listensAt("https://mw.test");
  const answer = await t.request("/livez");
  expect(answer.headers.get("strict-transport-security")).toBe("max-age=31536000");
});

test("a bug is answered as 500 without its cause", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await t.app.db.schema.dropTable("ledger").execute();
  await t.app.db.schema.dropTable("attachments").execute();
  await t.app.db.schema.dropTable("messages").execute();
  const answer = await ada.get("/messages");
  expect(answer.status).toBe(500);
  expect(answer.body).toMatchObject({ code: "internal", title: "Something went wrong here" });
  expect(JSON.stringify(answer.body)).not.toContain("table");
  expect(answer.body.request_id).toBe(answer.headers.get("x-request-id"));
});

test("every fault of a body is told at once, with its place and without its value", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/connections", {
    kind: "telepathy",
    label: "x".repeat(101),
    credential: ["sk-very-secret"],
    model: "m".repeat(201),
    base_url: 7,
  });
  expect(answer.status).toBe(422);
  expect(answer.body.errors.map((fault: { path: string; code: string }) => [fault.path, fault.code])).toEqual(
    expect.arrayContaining([
      ["body.kind", "unknown_value"],
      ["body.label", "too_long"],
      ["body.credential", "invalid"],
      ["body.model", "too_long"],
      ["body.base_url", "invalid"],
    ]),
  );
  expect(JSON.stringify(answer.body)).not.toContain("sk-very-secret");
  expect(answer.body.detail).toContain("openai_compatible");
});

test("a member called toString is no trouble, wherever it stands", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const odd = { toString: "x", valueOf: null };
  expect((await ada.post("/inboxes", { ...odd, label: odd })).status).toBe(422);
  expect((await ada.post("/connections", { kind: "demo", headers: { a: [odd] } })).status).toBe(422);
  expect((await ada.post("/inboxes", odd)).status).toBe(201);
});

test("at most 20 faults are listed", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/inboxes", { allowlist_senders: Array.from({ length: 100 }, () => 7) });
  expect(answer.status).toBe(422);
  expect(answer.body.errors).toHaveLength(20);
});

test("the debug log names the client and the request id of every answer, also of one with several cookies", async () => {
  await using t = await testApp({ server: LISTEN });
  const lines: Record<string, unknown>[] = [];
  // The line comes after the answer.
  const { promise: logged, resolve } = Promise.withResolvers<void>();
  const debug = (line: Record<string, unknown>, words: string) => {
    if (words === "request") lines.push(line);
    if (line["path"] === "/nowhere") resolve();
  };
  const log = Object.assign(Object.create(t.app.log), { debug, isLevelEnabled: () => true });
  Object.assign(t.app, { log });
  await using door = await openDoor(t);
  const code = await freshCode(t, "ada@example.com");
  const { headers: sent } = await door.request("/auth/verify", {
    method: "POST",
    headers: { "content-type": "application/json", cookie: "mw_registration=x" },
    body: JSON.stringify({ email: "ada@example.com", code }),
  });
  expect(sent.getSetCookie()).toHaveLength(3);
  await door.request("/nowhere");
  await logged;
  expect(lines.slice(1)).toEqual([
    {
      method: "POST",
      path: "/auth/verify",
      status: 200,
      client: "127.0.0.1",
      request_id: sent.get("x-request-id"),
    },
    expect.objectContaining({
      path: "/nowhere",
      client: "127.0.0.1",
      request_id: expect.stringMatching(/^req_/),
    }),
  ]);
});

function json(caller: Caller, body: string): RequestInit {
  return { method: "POST", headers: { "x-api-key": caller.key, "content-type": "application/json" }, body };
}

function noBody(method: string): RequestInit {
  return method === "GET" ? { body: null } : {};
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

async function openWire(door: { host: string; port: number }) {
  const socket = connect(door.port, door.host);
  await once(socket, "connect");
  let received = "";
  const heard: (() => void)[] = [];
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
    for (const tell of heard) tell();
  });
  return {
    write: (text: string) => void socket.write(text),
    until: (form: RegExp) =>
      new Promise<string>((resolve) => {
        const look = (): void => {
          if (form.test(received)) resolve(received);
        };
        heard.push(look);
        look();
      }),
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  };
}
