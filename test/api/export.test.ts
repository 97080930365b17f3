import { afterAll, expect, spyOn, test } from "bun:test";
import { createConnection } from "node:net";
import { createHttp } from "../../src/api.ts";
import { listen } from "../../src/http/listen.ts";
import { purgeLater } from "../../src/operation/retention/purge.ts";
import { type Caller, testApp, type TestApp } from "../support/app.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { unzip } from "../support/unzip.ts";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";
import { newestCode, openBrowser, signIn } from "./browser.ts";

const ADA = "ada@example.com";
const BULK_BYTES = 40_000;
const hook = startReceiver();
afterAll(() => hook[Symbol.asyncDispose]());

test("holds everything that is kept, each thing where its README says", async () => {
  await using room = await busyRoom();
  await fill(room, room.owner, "ada-owned");
  const files = await exportOf(room, room.owner.key);
  const json = (name: string) => JSON.parse(textOf(files, name));
  const lines = (name: string) =>
    textOf(files, name)
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  expect(json("account.json")).toMatchObject({ email: ADA, plan: "team", sign_ins: [{}], billing: null });
  expect(json("inboxes.json")).toMatchObject([{ id: room.inbox.id, address: room.inbox.address }]);
  expect(json("connections.json")).toMatchObject([{ kind: "openai", credential_hint: "…1234" }]);
  expect(json("api-keys.json")).toMatchObject([{ prefix: room.owner.key.slice(0, 12) }]);
  expect(json("webhooks.json")).toMatchObject([{ url: hook.url }]);
  expect(json("domains.json")).toMatchObject([{ domain: "ada-owned.example.org" }]);
  expect(json("contexts.json")).toMatchObject([{ slug: "ada-owned", title: "ada-owned" }]);
  expect(textOf(files, "contexts/ada-owned.md")).toBe("ada-owned context");
  expect(json("security-events.json").map(({ kind }: { kind: string }) => kind)).toContain(
    "account_exported",
  );
  const messages = lines("messages.jsonl");
  expect(messages).toMatchObject([
    {
      source: "email",
      status: "done",
      result: "ada-owned answer",
      auth: { spf: "none" },
      steps: [{ type: "context" }],
    },
    { source: "api", status: "done", instruction: "ada-owned instruction" },
  ]);
  const [mail, call] = messages;
  expect(lines("conversations.jsonl").map(({ id }) => id)).toEqual(
    messages.map(({ conversation_id }) => conversation_id),
  );
  expect(textOf(files, `raw/${mail.message_id}.eml`)).toContain("ada-owned mail");
  expect(textOf(files, `content/${call.message_id}.txt`)).toBe("ada-owned content");
  const folder = `attachments/${call.message_id}/`;
  expect([...files.keys()].filter((name) => name.startsWith(folder))).toEqual([
    `${folder}notes.txt`,
    `${folder}Notes (2).txt`,
    `${folder}evil.txt`,
  ]);
  expect(files.get(`${folder}notes.txt`)?.length).toBe(BULK_BYTES);
  expect(textOf(files, `${folder}evil.txt`)).toBe("ada-owned file");
  const outgoing = lines("outgoing-mails.jsonl").find(({ message_id }) => message_id !== null);
  expect(outgoing).toMatchObject({ message_id: mail.message_id, status: "sent" });
  expect(textOf(files, `sent/${outgoing.id}.eml`)).toContain("ada-owned answer");
  const events = lines("events.jsonl");
  expect(events.map(({ type }) => type)).toEqual([
    "message.received",
    "message.completed",
    "message.completed",
  ]);
  expect(lines("deliveries.jsonl").map(({ event_id, status }) => [event_id, status])).toEqual(
    events.map(({ id }) => [id, "delivered"]),
  );
  const ledger = textOf(files, "ledger.csv").trim().split("\n");
  expect(ledger[0]).toBe("id,created,kind,amount,balance,pool,period,message_id,reference");
  expect(ledger.slice(1).map((line) => line.split(",")[2])).toEqual([
    "grant",
    "reserve",
    "settle",
    "reserve",
    "settle",
  ]);
  const readme = textOf(files, "README.txt");
  for (const name of files.keys().filter((one) => one !== "README.txt"))
    expect(readme).toContain(name.includes("/") ? `${name.split("/")[0]}/` : name);
});

test("holds the schedules", async () => {
  await using room = await mailroom();
  await room.owner.post("/v1/schedules", { instruction: "Say hello.", title: "Hello", every: "daily 9:00" });
  const files = await exportOf(room, room.owner.key);
  expect(JSON.parse(textOf(files, "schedules.json"))).toMatchObject([
    { title: "Hello", instruction: "Say hello." },
  ]);
});

test("holds nothing of another account, and no secret", async () => {
  await using room = await busyRoom();
  const bob = await room.as("bob@example.com");
  await fill(room, bob, "bob-owned");
  await fill(room, room.owner, "ada-owned");
  const session = await signIn(room, ADA);
  const cookie = String(session.cookies.get("service_session"));
  const all = [...(await exportOf(room, room.owner.key))]
    .map(([name, bytes]) => `${name}\n${bytes.toString()}`)
    .join("\n");
  const { body: hooks } = await room.owner.get("/v1/webhooks");
  const { body: revealed } = await room.owner.get(`/v1/webhooks/${hooks[0].id}/secret`);
  const { db } = room.app;
  const hashes = [
    ...(await db.selectFrom("api_keys").select("hash as secret").execute()),
    ...(await db.selectFrom("sessions").select("id as secret").execute()),
  ].map(({ secret }) => secret);
  const secrets = [room.owner.key, bob.key, "sk-ada-owned-1234", cookie, revealed.secret, ...hashes];
  const of_others = ["bob-owned", "bob@example.com", bob.user.id];
  expect(all.includes("ada-owned")).toBe(true);
  expect([...secrets, ...of_others].filter((word) => all.includes(word))).toEqual([]);
});

test("leaves out what its owner has deleted, though it can still be brought back", async () => {
  await using room = await mailroom({
    config: { server: { listen: "127.0.0.1:0" } },
    model: { reply: () => "All well." },
  });
  await room.send({
    text: "Sum up",
    attachments: [{ filename: "a.txt", content_type: "text/plain", content: "x" }],
  });
  await room.drain();
  const { id } = await room.newest();
  const naming = async () => {
    const files = await exportOf(room, room.owner.key);
    return [...files]
      .filter(([name, bytes]) => name.includes(id) || bytes.includes(id))
      .map(([name]) => name);
  };
  const before = await naming();
  expect(before).toEqual(expect.arrayContaining(["messages.jsonl", "outgoing-mails.jsonl", `raw/${id}.eml`]));
  await room.owner.delete(`/messages/${id}`);
  expect(await naming()).toEqual(["ledger.csv"]);
  expect(
    [...(await exportOf(room, room.owner.key)).keys()].filter((name) => name.startsWith("sent/")),
  ).toEqual([]);
  await room.owner.post(`/messages/${id}/restore`);
  expect(await naming()).toEqual(before);
});

test("a key does not lead to a login code", async () => {
  await using room = await busyRoom();
  await openBrowser(room).post("/auth/request-code", { email: ADA });
  await room.drain();
  const code = await newestCode(room, ADA);
  const all = [...(await exportOf(room, room.owner.key)).values()].map(String).join("\n");
  expect(code).toMatch(/^\d{6}$/);
  expect([all.includes("login code"), all.includes(String(code))]).toEqual([false, false]);
});

test("leaves out what has been purged, and goes on", async () => {
  await using room = await busyRoom();
  await fill(room, room.owner, "ada-owned");
  room.clock.advance("31d");
  await room.app.write((tx) => purgeLater(room.app, tx));
  room.clock.advance("1h");
  await room.drain();
  const names = [...(await exportOf(room, room.owner.key)).keys()];
  expect(names.filter((name) => name.includes("/"))).toEqual(["contexts/ada-owned.md"]);
});

test("an account without anything has an archive as well, for a browser as for a key", async () => {
  await using t = await testApp({ server: { listen: "127.0.0.1:0" } });
  const browser = await signIn(t, ADA);
  const cookie = `service_session=${browser.cookies.get("service_session")}`;
  await using door = await open(t);
  const answer = await fetch(`${door.url}/auth/export`, { headers: { cookie } });
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "content-type": "application/zip",
    "content-disposition": expect.stringContaining('attachment; filename="mailwright-2026-01-15.zip"'),
    "cache-control": "private, no-store",
    "x-content-type-options": "nosniff",
  });
  const files = await unzip(await answer.bytes());
  expect([...files.keys()]).toEqual([
    "README.txt",
    "account.json",
    "api-keys.json",
    "security-events.json",
    "inboxes.json",
    "connections.json",
    "domains.json",
    "webhooks.json",
    "schedules.json",
    "contexts.json",
    "ledger.csv",
    "approvals.jsonl",
    "conversations.jsonl",
    "messages.jsonl",
    "replays.jsonl",
    "test-set.json",
    "test-runs.jsonl",
    "outgoing-mails.jsonl",
    "events.jsonl",
    "deliveries.jsonl",
  ]);
});

test("five times a day, and not without a credential", async () => {
  await using t = await testApp();
  const ada = await t.as(ADA);
  for (let count = 0; count < 5; count += 1) expect((await ada.get("/auth/export")).status).toBe(200);
  const refused = await ada.get("/auth/export");
  expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3_600);
  const bob = await t.as("bob@example.com");
  expect((await bob.get("/auth/export")).status).toBe(200);
  t.clock.advance("1d");
  expect((await ada.get("/auth/export")).status).toBe(200);
  for (const headers of [{}, { "x-api-key": "mw_live_no" }] as Record<string, string>[])
    expect((await t.request("/auth/export", { headers })).status).toBe(401);
});

test("who leaves in the middle ends it: nothing more is read for them", async () => {
  await using t = await testApp({ server: { listen: "127.0.0.1:0" }, llm: { kind: "demo" } });
  const ada = await t.as(ADA);
  await ada.post("/inboxes", {});
  const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(60_000)));
  const data = Buffer.concat(Array(40).fill(noise)).toString("base64");
  for (let count = 0; count < 12; count += 1) {
    const attachments = [{ filename: "noise.bin", content_type: "application/octet-stream", data }];
    await ada.post("/v1/messages", { instruction: "Keep it", attachments });
  }
  let reads = 0;
  const { read } = t.app.segments;
  t.app.segments.read = (range) => {
    reads += 1;
    return read(range);
  };
  await using door = await open(t);
  const { hostname, port } = new URL(door.url);
  const socket = createConnection({ host: hostname, port: Number(port) });
  socket.write(`GET /auth/export HTTP/1.1\r\nHost: ${hostname}\r\nX-API-Key: ${ada.key}\r\n\r\n`);
  // A reader that takes a little and then waits: what it does not take is not read for it either.
  await new Promise((resolve) => socket.once("data", resolve));
  socket.pause();
  await settled(() => reads);
  const paused = reads;
  expect(paused).toBeLessThan(12);
  const error = spyOn(t.app.log, "error");
  socket.destroy();
  await settled(() => reads);
  expect(reads - paused).toBeLessThan(3);
  expect(error).not.toHaveBeenCalled();
  // And the server serves on.
  expect((await unzip(await (await download(door.url, ada.key)).bytes())).size).toBe(20 + 12);
});

async function settled(count: () => number): Promise<void> {
  for (let before = -1; before !== count();) {
    before = count();
    await Bun.sleep(100);
  }
}

function busyRoom(): Promise<Mailroom> {
  return mailroom({
    model: {
      reply: ({ messages }) =>
        JSON.stringify(messages).includes("bob-owned") ? "bob-owned answer" : "ada-owned answer",
    },
    config: {
      server: { listen: "127.0.0.1:0" },
      webhooks: TO_LOOPBACK,
      dns: { servers: ["127.0.0.1:9"] },
    },
  });
}

/** One of everything; each text of it has the word in it. */
async function fill(room: Mailroom, caller: Caller, word: string): Promise<void> {
  const { email } = caller.user;
  await signIn(room, email);
  const known = (await caller.get("/inboxes")).body;
  const inbox = known[0] ?? (await caller.post("/inboxes", { label: word })).body;
  await caller.post("/connections", { kind: "openai", credential: `sk-${word}-1234`, label: word });
  await caller.post("/contexts", { title: word, body: `${word} context`, kind: "knowledge" });
  await caller.post("/custom-domains", { domain: `${word}.example.org` });
  await caller.post("/v1/webhooks", { url: hook.url, event_types: ["*"] });
  await room.send({ from: email, rcpt: inbox.address, text: `${word} mail`, subject: word });
  await room.drain();
  const file = (filename: string, content: string) => ({
    filename,
    content_type: "text/plain",
    data: btoa(content),
  });
  await caller.post("/v1/messages", {
    instruction: `${word} instruction`,
    content: `${word} content`,
    attachments: [
      file("notes.txt", word.padEnd(BULK_BYTES)),
      file("Notes.txt", word),
      file("../../evil.txt", `${word} file`),
    ],
  });
  await room.drain();
}

async function exportOf(t: TestApp, key: string): Promise<Map<string, Buffer>> {
  await using door = await open(t);
  const answer = await download(door.url, key);
  expect(answer.status).toBe(200);
  return unzip(await answer.bytes());
}

function open({ app }: TestApp) {
  return listen(app, createHttp(app, { ready: async () => ({}), warnings: async () => ({}) }));
}

function download(url: string, key: string): Promise<Response> {
  return fetch(`${url}/auth/export`, { headers: { "x-api-key": key } });
}

function textOf(files: Map<string, Buffer>, name: string): string {
  const bytes = files.get(name);
  if (!bytes) throw new Error(`${name} is not in the archive, but ${[...files.keys()].join(", ")}`);
  return bytes.toString();
}
