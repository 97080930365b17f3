import { connect } from "node:net";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { createVerifiedUser } from "../../src/resources/accounts/accounts.ts";
import { createApiKey } from "../../src/resources/accounts/api-keys.ts";
import { defaultConfig } from "../../src/config/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { insertRow } from "../../src/db/prepared.ts";
import { blankMessage } from "../../src/resources/messages/blank-message.ts";
import { recordState } from "../../src/resources/messages/events.ts";
import { listen } from "../../src/http/listen.ts";
import { createHttp } from "../../src/api.ts";
import { serve } from "../../src/serve.ts";
import { type Caller, type TestApp, testApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { storeMessages } from "./archive.ts";
import { openBrowser, signIn } from "./browser.ts";
import { deskOf } from "./desk.ts";
import { openStream } from "./stream-reader.ts";
import { startClock } from "../support/own-time.ts";
import { until } from "../support/until.ts";

const SILENT = createLog({ level: "silent", format: "text" });
const DEMO = { llm: { kind: "demo" as const }, plans: { team: { route_per_minute: 0 } } };

const key = (caller: Caller) => ({ "x-api-key": caller.key });

test("a message is told when it is made and when it ends, as the activity log shows it", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const stream = await openStream(t, key(ada));
  expect(stream.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(stream.response.headers.get("cache-control")).toBe("no-store");
  const { message_id } = (await ada.post("/v1/messages", { instruction: "Hi", async: true })).body;
  const made = await stream.next();
  expect([made?.event, made?.data.message_id, made?.data.status]).toEqual([
    "message",
    message_id,
    "received",
  ]);
  await t.drain();
  const ended = await stream.next();
  expect(ended?.data).toEqual((await ada.get("/messages")).body.items[0]);
  expect(ended?.data.status).toBe("done");
});

test("a stream that opens just after a change says to look, and one that opens later does not", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  await ada.post("/v1/messages", { instruction: "Hers" });
  expect(await (await openStream(t, key(ada))).next()).toEqual({
    event: "changed",
    data: { seconds_ago: 0 },
  });
  const his = await openStream(t, key(bob));
  t.clock.advance("20s");
  const later = await openStream(t, key(ada));
  for (const [who, stream] of [
    [bob, his],
    [ada, later],
  ] as const) {
    await who.post("/v1/messages", { instruction: "Now" });
    expect((await stream.next())?.data.subject).toBe("Now");
  }
});

test("a change of its reply's status is told too", async () => {
  await using sink = await startSmtpSink();
  await using room = await mailroom({
    config: {
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
      egress: { allow: ["127.0.0.1"] },
    },
  });
  const stream = await openStream(room, key(room.owner));
  await room.send({ text: "Please answer" });
  await room.drain();
  const told: string[] = [];
  while (told.at(-1) !== "done sent") {
    const { data } = (await stream.next()) ?? { data: {} };
    told.push(`${data.status} ${data.reply_status}`);
  }
  expect(told.length).toBeLessThanOrEqual(3);
});

test("nothing of another account is told", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  const stream = await openStream(t, key(bob));
  await ada.post("/v1/messages", { instruction: "Hers" });
  await bob.post("/v1/messages", { instruction: "His" });
  expect((await stream.next())?.data.subject).toBe("His");
});

test("what is undone is not told, and the rest only once it is committed", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const stream = await openStream(t, key(ada));
  const [kept, undone] = await storeMessages(t, ada.user, [{ subject: "kept" }, { subject: "undone" }]);
  const seen: string[] = [];
  t.app.changes.listen(ada.user.id, (id) => void seen.push(id ?? ""));
  const failing = t.app.write(async (tx) => {
    if (undone) await recordState(t.app, tx, undone);
    throw new Error("undone");
  });
  const working = t.app.write(async (tx) => {
    if (kept) await recordState(t.app, tx, kept);
    expect(seen).toEqual([]);
  });
  await expect(failing).rejects.toThrow("undone");
  await working;
  expect((await stream.next())?.data.subject).toBe("kept");
  expect(seen).toEqual([kept?.id ?? ""]);
});

test("a sixth stream of an account is refused until one has ended", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const streams = [];
  for (let turn = 0; turn < 5; turn++) streams.push(await openStream(t, key(ada)));
  const refused = await ada.get("/messages/stream");
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  const bob = await t.as("bob@example.com");
  await openStream(t, key(bob));
  await streams[0]?.leave();
  await openStream(t, key(ada));
});

test("a server takes a bounded number of streams", async () => {
  await using t = await testApp(DEMO);
  const ada = await t.as("ada@example.com");
  for (let turn = 0; turn < 1_000; turn++) t.app.changes.listen(`user ${turn}`, () => undefined);
  const refused = await ada.get("/messages/stream");
  expect([refused.status, refused.body.code]).toEqual([503, "unavailable"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a reader who falls behind is told to look, and nothing is kept for him but that", async () => {
  await using t = await testApp(DEMO);
  const ada = await t.as("ada@example.com");
  const stream = await openStream(t, key(ada));
  for (let turn = 0; turn < 5_000; turn++) t.app.changes.tell(ada.user.id, Bun.randomUUIDv7());
  const [message] = await storeMessages(t, ada.user, [{ subject: "later" }]);
  expect(await stream.next()).toEqual({ event: "changed", data: {} });
  t.app.changes.tell(ada.user.id, message?.id ?? "");
  expect((await stream.next())?.data.subject).toBe("later");
});

test("the stream ends when its key is revoked, with nothing more told", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const stream = await openStream(t, key(ada));
  const other = (await ada.post("/auth/api-key", {})).body;
  const keys = (await ada.get("/auth/api-keys")).body as { id: string }[];
  const old = keys.find(({ id }) => id !== other.id);
  const second = { ...ada, key: other.key };
  await t.request(`/auth/api-keys/${old?.id}`, { method: "DELETE", headers: key(second) });
  await t.request("/v1/messages", {
    method: "POST",
    headers: { ...key(second), "content-type": "application/json" },
    body: JSON.stringify({ instruction: "Hi" }),
  });
  expect(await stream.next()).toBeUndefined();
});

test("the stream ends when its session is ended, and when that has expired", async () => {
  await using t = await testApp(DEMO);
  for (const end of ["logout", "expiry", "deletion"]) {
    const browser = await signIn(t, `${end}@example.com`, openBrowser(t));
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const { id } = (await browser.get("/auth/me")).body;
    const stream = await openStream(t, { cookie });
    if (end === "logout") await browser.post("/auth/logout");
    if (end === "expiry") await expireSessions(t);
    if (end === "deletion") await browser.send("DELETE", "/auth/account", { confirm: `${end}@example.com` });
    t.app.changes.tell(id, Bun.randomUUIDv7());
    expect([end, await stream.next()]).toEqual([end, undefined]);
    expect(t.app.changes.total()).toBe(0);
  }
});

test("the stream ends after an hour", async () => {
  await using t = await testApp(DEMO);
  const ada = await t.as("ada@example.com");
  const stream = await openStream(t, key(ada));
  t.clock.advance("1h");
  t.app.changes.tell(ada.user.id, Bun.randomUUIDv7());
  expect(await stream.next()).toBeUndefined();
});

test("over a connection it begins at once, keeps nothing for one who does not read, and ends with the server", async () => {
  await using stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "mailwright-stream-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const config = defaultConfig({
    data: { dir },
    database: { url: `sqlite:${join(dir, "mailwright.db")}` },
    server: { listen: "127.0.0.1:0" },
    smtp: { listen: "" },
  });
  const { app, http, [Symbol.asyncDispose]: stop } = await serve(config, { log: SILENT });
  const user = await createVerifiedUser(app, { email: "ada@example.com" });
  const { key: secret } = await createApiKey(app, { email: "ada@example.com" });
  const slow = connect(Number(new URL(http).port), "127.0.0.1");
  slow.pause();
  slow.write(`GET /messages/stream HTTP/1.1\r\nHost: x\r\nX-API-Key: ${secret}\r\n\r\n`);
  const answer = await fetch(`${http}/messages/stream`, { headers: { "x-api-key": secret } });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const began = await reader.read();
  expect(Buffer.from(began.value ?? []).toString()).toBe("retry: 2000\n\n");
  const row = { ...blankMessage(app, { id: null, user_id: user.id }), result: "x".repeat(1_000_000) };
  await app.write((tx) => insertRow(tx, "messages", row));
  for (let told = 0; told < 100; told++) {
    app.changes.tell(user.id, row.id);
    for (let size = 0; size < 1_000_000;) size += (await reader.read()).value?.byteLength ?? Infinity;
  }
  let size = 0;
  const closed = Promise.withResolvers<void>();
  slow.on("close", closed.resolve).on("data", (bytes: Buffer) => void (size += bytes.byteLength));
  slow.resume();
  using clock = startClock();
  const ended = Promise.all([readToEnd(reader), closed.promise]);
  await stop();
  await ended;
  expect(clock.ms()).toBeLessThan(4_000);
  // The other one was told 100 MB.
  expect(size).toBeLessThan(30_000_000);
});

test("a reader who leaves, before or after something was told, is no error", async () => {
  await using t = await testApp({ ...DEMO, server: { listen: "127.0.0.1:0" } });
  const ada = await t.as("ada@example.com");
  const errors: unknown[] = [];
  t.app.log.error = (...words: unknown[]) => void errors.push(words);
  await using door = await listen(t.app, createHttp(t.app, { ready: async () => ({}) }));
  const [message] = await storeMessages(t, ada.user, [{ subject: "told" }]);
  for (const told of [0, 1, 1]) {
    const leave = new AbortController();
    const answer = await fetch(`${door.url}/messages/stream`, { headers: key(ada), signal: leave.signal });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    if (told > 0) {
      t.app.changes.tell(ada.user.id, message?.id ?? "");
      await reader.read();
    }
    leave.abort();
    await expect(reader.read()).rejects.toThrow();
    await until(() => t.app.changes.total() <= 0);
  }
  await Bun.sleep(50);
  expect(errors).toEqual([]);
  // What does go wrong is told.
  const { body } = await fetch(`${door.url}/messages/stream`, { headers: key(ada) });
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await t.app.db.schema.dropTable("api_keys").execute();
  t.app.changes.tell(ada.user.id, message?.id ?? "");
  await reader.read().catch(() => undefined);
  expect(errors).toMatchObject([[{ err: expect.any(Error) }, "a stream of messages broke off"]]);
});

async function readToEnd(reader: { read: () => Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

async function expireSessions(t: TestApp): Promise<void> {
  await t.app.write((tx) => tx.updateTable("sessions").set({ expires: t.app.now() }).execute());
}
