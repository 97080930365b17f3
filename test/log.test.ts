import { join } from "node:path";
import { expect, test } from "bun:test";
import { type Account, account, house, inbox, type ServerProcess } from "./faults/house.ts";
import { rawMail } from "./support/mails.ts";
import { deliver, smtpClient } from "./support/smtp-client.ts";
import { startSmtpSink } from "./support/smtp-sink.ts";

type Line = Record<string, unknown> & { msg?: string; level: number };

const INFO = 30;
const WARN = 40;

function lines(server: ServerProcess): Line[] {
  return server
    .log()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line);
}

/** Until so many lines say so. */
async function logged(server: ServerProcess, words: string, count = 1): Promise<Line[]> {
  for (;;) {
    const found = lines(server).filter(({ msg }) => msg?.startsWith(words));
    if (found.length >= count) return found;
    await Bun.sleep(10);
  }
}

async function mail(server: ServerProcess, parts: { to: string } & Parameters<typeof rawMail>[0]) {
  const from = parts.from ?? "ada@example.com";
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  const raw = rawMail({ headers, ...parts, from });
  return deliver(server.smtp, { from, to: parts.to, raw });
}

async function post(server: ServerProcess, { api_key }: Account, path: string, body: object) {
  const response = await fetch(server.http + path, {
    method: "POST",
    headers: { "x-api-key": api_key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as { id: string };
}

test("each line of a request has its id, of a run that of its message, and of a mail that of its session", async () => {
  await using sink = await startSmtpSink();
  await using at = await house({
    outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
    log: { format: "json", level: "trace" },
  });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const to = await inbox(server, ada);
  // Two runs and ten requests at once: none may get the ids of another.
  const ids = Array.from({ length: 10 }, (_, index) => `of-a-test-${index}`);
  const ask = (id: string) =>
    fetch(`${server.http}/auth/me`, { headers: { "x-api-key": ada.api_key, "x-request-id": id } });
  await Promise.all([...ids.map(ask), mail(server, { to, text: "One" }), mail(server, { to, text: "Two" })]);
  const accepted = await logged(server, "mail accepted", 2);
  const done = await logged(server, "message done", 2);
  const sent = await logged(server, "mail handed over", 2);
  const requests = (await logged(server, "request", 11)).filter(({ path }) => path === "/auth/me");
  expect(requests.map(({ request_id }) => request_id).sort()).toEqual(ids);
  expect(new Set(accepted.map(({ session }) => session)).size).toBe(2);
  const messages = new Set(accepted.map(({ message_id }) => message_id));
  expect(messages.size).toBe(2);
  for (const ended of [done, sent]) {
    expect(new Set(ended.map(({ message_id }) => message_id))).toEqual(messages);
    for (const line of ended) expect([line["session"], line["request_id"]]).toEqual([undefined, undefined]);
  }
  // A mail that is accepted, worked on and answered is three lines for who only reads the usual ones.
  const told = lines(server).filter(({ level, message_id }) => level >= INFO && message_id !== undefined);
  expect(told).toHaveLength(6);
}, 60_000);

test("a mail that is refused is one line, and a flood of unknown recipients none", async () => {
  await using at = await house();
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const to = await inbox(server, ada);
  const before = lines(server).length;
  for (let guess = 0; guess < 5; guess++)
    await mail(server, { to: `guess${guess}@mw.test` }).catch(() => undefined);
  await mail(server, { to, headers: { From: "second@example.com" } });
  const [refused] = await logged(server, "mail refused");
  expect(refused).toMatchObject({ reason: "bad_from", session: expect.any(String) });
  const picky = await inbox(server, ada, { allowlist_senders: ["boss@example.com"] });
  await mail(server, { to: picky, from: "eve@example.net" });
  const [, unlisted] = await logged(server, "mail refused", 2);
  const told = { reason: "not_allowlisted", from: "eve@example.net", peer: "127.0.0.1" };
  expect(unlisted).toMatchObject(told);
  expect(lines(server).slice(before)).toHaveLength(2);
}, 60_000);

test("a mail that is put off is one line, with the reason", async () => {
  // No name server answers there.
  await using at = await house({ dns: { servers: ["127.0.0.1:1"] }, smtp: { trusted_networks: [] } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  await mail(server, { to: await inbox(server, ada), from: "eve@example.net" });
  const [late] = await logged(server, "mail put off");
  expect(late).toMatchObject({
    reason: "dns_unanswered",
    from: "eve@example.net",
    session: expect.any(String),
  });
}, 60_000);

test("a mail and a call that find no room are a line each, and the first says at RCPT which limit it is", async () => {
  await using at = await house({ plans: { team: { storage_mb: 1 } } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const to = await inbox(server, ada);
  const call = (bytes: number) =>
    fetch(`${server.http}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": ada.api_key, "content-type": "application/json" },
      body: JSON.stringify({ instruction: "Keep it", content: "x".repeat(bytes) }),
    });
  for (const bytes of [400_000, 400_000]) expect((await call(bytes)).status).toBeLessThan(300);
  expect((await call(400_000)).status).toBe(507);
  const [refused] = await logged(server, "call refused");
  expect(refused).toMatchObject({ level: INFO, limit: 1_048_576, request_id: expect.any(String) });
  await using client = await smtpClient(server.smtp);
  await client.script([
    ["HELO client.example", "250"],
    ["MAIL FROM:<ada@example.com> SIZE=900000", "250"],
    [`RCPT TO:<${to}>`, "452"],
  ]);
  const [late] = await logged(server, "mail put off");
  expect(late).toMatchObject({
    reason: "storage_full",
    limit: "plans.team.storage_mb",
    from: "ada@example.com",
    peer: "127.0.0.1",
    session: expect.any(String),
  });
}, 60_000);

test("a mail over a limit of the inbox is a line that names the limit", async () => {
  await using at = await house({ limits: { inbound_per_sender_hour: 1 } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const to = await inbox(server, ada);
  // The owner may send five times as many as others.
  for (let nth = 1; nth <= 6; nth += 1) await mail(server, { to, text: `Mail ${nth}` });
  const [late] = await logged(server, "mail put off");
  expect(late).toMatchObject({ reason: "rate_limited", limit: "limits.inbound_per_sender_hour" });
}, 60_000);

test("who closes a page, or leaves in the middle of an answer or a question, leaves no warning", async () => {
  await using at = await house();
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const headers = { "x-api-key": ada.api_key };
  const before = lines(server).length;
  for (let page = 0; page < 10; page++) {
    const leave = new AbortController();
    const { signal } = leave;
    const stream = await fetch(`${server.http}/messages/stream`, { headers, signal });
    await stream.body?.getReader().read();
    const archive = await fetch(`${server.http}/auth/export`, { headers, signal }).catch(() => undefined);
    void archive?.body?.getReader().read();
    leave.abort();
    const [host = "", port = ""] = server.http.replace("http://", "").split(":");
    const socket = await Bun.connect({
      hostname: host,
      port: Number(port),
      socket: { data: () => undefined, error: () => undefined },
    });
    socket.write(
      `POST /contexts HTTP/1.1\r\nHost: x\r\nX-API-Key: ${ada.api_key}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{`,
    );
    await Bun.sleep(20);
    socket.terminate();
  }
  await Bun.sleep(500);
  expect(
    lines(server)
      .slice(before)
      .filter(({ level }) => level > INFO),
  ).toEqual([]);
}, 60_000);

test("a run says which inbox and model, and how long; it is a warning only where the operator's own model fails", async () => {
  await using at = await house({
    llm: { kind: "openai", base_url: "http://127.0.0.1:9/v1", api_key: "sk-x", model: "ours" },
    egress: { allow: ["127.0.0.1"] },
  });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const own = await post(server, ada, "/connections", {
    kind: "openai_compatible",
    base_url: "http://127.0.0.1:9/v1",
    model: "theirs",
  });
  const demo = await post(server, ada, "/connections", { kind: "demo" });
  const connections = { Own: own.id, Shared: null, Demo: demo.id };
  for (const [label, default_connection_id] of Object.entries(connections)) {
    const { id } = await post(server, ada, "/inboxes", { label, default_connection_id });
    await post(server, ada, "/v1/messages", { instruction: "Hello", inbox_id: id });
  }
  const [done] = await logged(server, "message done");
  expect(done).toMatchObject({ level: INFO, inbox: "Demo", model: "demo", ms: expect.any(Number) });
  const failed = await logged(server, "message failed", 2);
  expect(failed).toMatchObject([
    { level: INFO, inbox: "Own", model: "theirs", reason: "unreachable", ms: expect.any(Number) },
    { level: WARN, inbox: "Shared", model: "ours", reason: "unreachable", ms: expect.any(Number) },
  ]);
}, 60_000);

test("each attempt at a webhook that fails is a line, the last one as well", async () => {
  await using at = await house({ webhooks: { allow: ["127.0.0.1"], backoff: [0, 1] } });
  const ada = await account(at, "ada@example.com");
  await using server = await at.start();
  const { id: endpoint_id } = await post(server, ada, "/v1/webhooks", {
    url: "http://127.0.0.1:9/hook",
    event_types: ["message.completed"],
  });
  await inbox(server, ada);
  await post(server, ada, "/v1/messages", { instruction: "Hello" });
  const [first] = await logged(server, "a webhook will be tried again");
  const [last] = await logged(server, "a webhook has failed");
  const told = { level: INFO, endpoint_id, event_id: expect.stringMatching(/^evt_/), error: "connection" };
  expect([first, last]).toMatchObject([
    { ...told, attempt: 1, ms: expect.any(Number) },
    { ...told, attempt: 2 },
  ]);
}, 60_000);

test("of an error only its words are told, and of a URL in them no password", async () => {
  const child = Bun.spawn([process.execPath, "-e", LOGGING], {
    cwd: join(import.meta.dir, ".."),
    stdout: "pipe",
  });
  const told = await new Response(child.stdout).text();
  expect(told).not.toMatch(/hunter2/);
  const [json = "", text = ""] = told.trim().split("\n");
  expect(JSON.parse(json)).toMatchObject({
    msg: "failed",
    password: "[redacted]",
    given: { token: "[redacted]" },
    err: {
      type: "TypeError",
      message: "cannot reach smtp://me:[redacted]@mx.example:25",
      code: "EOPS",
      cause: { message: "inner" },
      stack: expect.any(String),
    },
  });
  expect(text).toMatch(/^\d{4}-\S+Z ERROR failed password=\[redacted\] /);
});

test("a secret is left out however deep it lies, and what is logged last before the end is there", async () => {
  for (const [format, ends] of [
    ["json", "process.exit(3)"],
    ["text", "process.exit(3)"],
    ["json", "throw new Error('the end')"],
    ["json", "process.kill(process.pid, 'SIGKILL')"],
  ] as const) {
    const child = Bun.spawn(
      [process.execPath, "-e", `const format = "${format}"; ${LOGGING_DEEP} ${ends};`],
      {
        cwd: join(import.meta.dir, ".."),
        stdout: "pipe",
        stderr: "ignore",
      },
    );
    const told = await new Response(child.stdout).text();
    expect(await child.exited).not.toBe(0);
    expect(told).not.toMatch(/hunter2/);
    expect(told.trim().split("\n")).toHaveLength(3);
    expect(told).toContain("[redacted]");
    expect(told).toContain("in a list");
    expect(told).toContain("last words");
  }
});

test("what others wrote ends no line of the log for people, and tells a terminal nothing", async () => {
  const child = Bun.spawn([process.execPath, "-e", LOGGING_OTHERS], {
    cwd: join(import.meta.dir, ".."),
    stdout: "pipe",
  });
  const told = await new Response(child.stdout).text();
  expect(told).toMatch(/^[^\p{C}\p{Zl}\p{Zp}]+\n$/u);
  expect(told).toEndWith(
    String.raw`no: <html>\u{a}now \u{1b}[31m from=a\u{9b}31m\u{2028}x@b.example err={"n":"\u{202e}"}` + "\n",
  );
});

const LOGGING_DEEP = `
import { createLog } from "./src/lib/log.ts";
const log = createLog({ level: "info", format });
const deep = { a: { b: { c: { secret: "hunter2" } } }, list: [{ token: "hunter2", name: "in a list" }], key: undefined };
const round = { deep };
round.round = round;
log.info(round, "first words");
class Held { token = "hunter2"; }
const headers = new Headers({ authorization: "hunter2" });
const error = Object.assign(new Error("beside"), { token: "hunter2" });
log.error({ held: new Held(), headers, error }, "second words");
log.info({ given: new Date(0), none: null, key: "hunter2" }, "last words");
`;

const LOGGING_OTHERS = `
import { createLog } from "./src/lib/log.ts";
const given = { from: "a\\u009b31m\\u2028x@b.example", err: { n: "\\u202e" } };
createLog({ level: "info", format: "text" }).info(given, "no: <html>\\nnow \\x1b[31m");
`;

const LOGGING = `
import { createLog } from "./src/lib/log.ts";
const cause = Object.assign(new Error("inner"), { response: { headers: { "x-api-key": "hunter2" } } });
const error = new TypeError("cannot reach smtp://me:hunter2@mx.example:25", { cause });
Object.assign(error, { code: "EOPS", request: { headers: { authorization: "Bearer hunter2" } } });
for (const format of ["json", "text"])
  createLog({ level: "info", format }).error({ password: "hunter2", given: { token: "hunter2" }, err: error }, "failed");
`;
