import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { emailFingerprint, listUsers, userOfEmail } from "../../src/resources/accounts/accounts.ts";
import { removeAccount } from "../../src/resources/accounts/deletion.ts";
import { sendLater } from "../../src/mail/sending/outgoing.ts";
import type { Caller, TestApp } from "../support/app.ts";
import { testApp } from "../support/app.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { databaseFolder, everyByte } from "../support/whole-folder.ts";
import { storeMessages } from "./archive.ts";
import { freshCode, newestCode, openBrowser, signIn } from "./browser.ts";

const ADA = "ada@example.com";
const PASSWORD = "quiet river 42";
/** Long enough for a segment file. */
const BULK_BYTES = 40_000;

test("nothing of a deleted account is left in any table or file", async () => {
  await using room = await mailroom({
    model: { reply: () => "SECRET-result" },
    // Nobody answers there: the custom domain waits for its records.
    config: { dns: { servers: ["127.0.0.1:9"] } },
  });
  await fill(room);
  const before = await everything(room);
  expect(namesFound(before)).toEqual(WORDS);
  const gone = await openBrowser(room).send(
    "DELETE",
    "/auth/account",
    { confirm: ` ${ADA.toUpperCase()} `, password: PASSWORD },
    { "x-api-key": room.owner.key },
  );
  expect([gone.status, gone.body]).toEqual([204, ""]);
  await room.drain();
  const after = await everything(room);
  expect(namesFound(after)).toEqual([]);
  expect([room.owner.user.id, ADA, room.inbox.id].filter((name) => after.includes(name))).toEqual([]);
  // What is left of the address is that it is never given out again.
  expect(await room.app.db.selectFrom("retired_addresses").select("address").execute()).toContainEqual({
    address: room.inbox.address,
  });
});

test("every table that names a user loses its rows with the user", async () => {
  await using t = await testApp();
  const tables = (await t.app.db.introspection.getTables()).filter(({ columns }) =>
    columns.some(({ name }) => name === "user_id"),
  );
  expect(tables.length).toBeGreaterThan(10);
  for (const { name } of tables) {
    const { rows } = await sql<{
      on_delete: string;
    }>`select on_delete from pragma_foreign_key_list(${name}) where "from" = 'user_id' and "table" = 'users'`.execute(
      t.app.db,
    );
    expect([name, rows]).toEqual([name, [{ on_delete: "CASCADE" }]]);
  }
});

test("a mail to two accounts stays whole for the one that stays", async () => {
  await using room = await mailroom();
  const bob = await room.as("bob@example.com");
  const { body: inbox } = await bob.post("/inboxes", { allowlist_senders: [ADA] });
  const raw = "SECRET-bulk".repeat(BULK_BYTES / 10);
  await room.send({ text: raw, rcpt: [room.inbox.address, inbox.address] });
  await room.drain();
  const [stored, ...others] = await room.app.db.selectFrom("raw_mails").selectAll().execute();
  expect([stored?.segment, others]).toEqual([1, []]);
  await deleteAccount(room, room.owner);
  await room.drain();
  expect((await segments(room)).includes("SECRET-bulk")).toBe(true);
  expect(await room.app.db.selectFrom("raw_mails").selectAll().execute()).toHaveLength(1);
  await deleteAccount(room, bob);
  await room.drain();
  expect((await segments(room)).includes("SECRET-bulk")).toBe(false);
  expect(await room.app.db.selectFrom("raw_mails").selectAll().execute()).toEqual([]);
});

test("the bytes of others that lie next to the erased ones stay as they are", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const [ada, bob] = [await t.as(ADA), await t.as("bob@example.com")];
  const files = new Map<Caller, string>();
  for (const caller of [bob, ada, bob, ada, bob]) {
    if (!files.has(caller)) await caller.post("/inboxes", {});
    const data = Buffer.alloc(BULK_BYTES, caller === ada ? "a-secret" : "b-secret").toString("base64");
    const attachments = [{ filename: "a.bin", content_type: "application/octet-stream", data }];
    await caller.post("/v1/messages", { instruction: "Read it", attachments });
    files.set(caller, data);
  }
  await deleteAccount(t, ada);
  await t.drain();
  expect((await segments(t)).includes("a-secret")).toBe(false);
  const { items } = (await bob.get("/messages")).body;
  expect(items).toHaveLength(3);
  for (const item of items) {
    const file = await bob.get(item.attachments[0].url);
    expect(Buffer.from(String(file.body)).toString("base64")).toBe(files.get(bob) as string);
  }
});

test("keys and sessions die at once, and the address can make a new account that has nothing", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  const { key } = (await browser.post("/auth/api-key")).body;
  await browser.post("/inboxes", {});
  const cookie = `service_session=${browser.cookies.get("service_session")}`;
  const answer = await browser.send("DELETE", "/auth/account", { confirm: ADA });
  expect(answer.status).toBe(204);
  expect(browser.cookies.size).toBe(0);
  expect((await t.request("/auth/me", { headers: { cookie } })).status).toBe(401);
  expect((await t.request("/auth/me", { headers: { "x-api-key": key } })).status).toBe(401);
  await signIn(t, ADA, browser);
  expect((await browser.get("/inboxes")).body).toEqual([]);
  expect((await browser.get("/auth/security-events")).body).toHaveLength(1);
});

test("mail to its addresses is refused for good", async () => {
  await using room = await mailroom();
  await using door = await smtpClient(room.door);
  await deleteAccount(room, room.owner);
  await door.script([
    ["EHLO x.example", "250"],
    ["MAIL FROM:<ada@example.com>", "250"],
    [`RCPT TO:<${room.inbox.address}>`, "550 5.1.1"],
  ]);
});

test("the wrong confirmation, and a missing or wrong password, change nothing", async () => {
  await using t = await testApp();
  const browser = await signIn(t, ADA);
  await browser.post("/auth/set-password", { password: PASSWORD });
  const cases: [unknown, number, string][] = [
    [{}, 422, "validation_error"],
    [undefined, 422, "validation_error"],
    [{ confirm: null }, 422, "validation_error"],
    [{ confirm: "yes", password: PASSWORD }, 422, "validation_error"],
    [{ confirm: "bob@example.com", password: PASSWORD }, 422, "validation_error"],
    [{ confirm: ADA }, 403, "current_password_required"],
    [{ confirm: ADA, password: "wrong guess 1" }, 403, "current_password_required"],
  ];
  for (const [body, status, code] of cases) {
    const answer = await browser.send("DELETE", "/auth/account", body);
    expect([body, answer.status, answer.body.code]).toEqual([body, status, code]);
  }
  const { body } = await browser.send("DELETE", "/auth/account", { confirm: ADA });
  expect(body.fix).toStartWith("Send it along (`password`).");
  expect((await browser.get("/auth/me")).status).toBe(200);
  const right = { confirm: ADA, password: PASSWORD };
  expect((await browser.send("DELETE", "/auth/account", right)).status).toBe(204);
});

test("of two deletions at the same moment neither fails", async () => {
  await using t = await testApp();
  const ada = await t.as(ADA);
  const send = () =>
    t.request("/auth/account", {
      method: "DELETE",
      headers: { "x-api-key": ada.key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: ADA }),
    });
  expect((await Promise.all([send(), send()])).map(({ status }) => status)).toEqual([204, 204]);
});

test("whatever is asked at the moment of the deletion is answered with 401, and stored for nobody", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const calls: [method: string, path: string, body: unknown][] = [
    ["POST", "/contexts", { title: "Late", body: "Late", kind: "instruction" }],
    ["POST", "/connections", { kind: "demo" }],
    ["POST", "/inboxes", {}],
    ["POST", "/custom-domains", { domain: "late.example.org" }],
    ["POST", "/auth/api-key", undefined],
    ["PATCH", "/auth/profile", { name: "Late" }],
  ];
  for (const [method, path, body] of calls) {
    const ada = await t.as(ADA);
    const gone = deleteAccount(t, ada);
    const late = method === "PATCH" ? ada.patch(path, body) : ada.post(path, body);
    const { status, body: answer } = await late;
    expect([path, status, answer.code, answer.detail]).toEqual([
      path,
      401,
      "unauthorized",
      "This account has been deleted.",
    ]);
    await gone;
  }
});

test("what was deleted can be read in neither the database nor its log", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-deletion-"));
  await using _dir = { [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) };
  const path = join(dir, "mailwright.db");
  await using t = await testApp({ llm: { kind: "demo" }, database: { url: `sqlite:${path}` } });
  const ada = await t.as(ADA);
  await ada.post("/inboxes", {});
  await ada.post("/v1/messages", {
    instruction: "SECRET-instruction",
    content: "SECRET-content ".repeat(900),
  });
  await ada.post("/contexts", { title: "Mine", body: "SECRET-context ".repeat(900), kind: "instruction" });
  const stored = async () =>
    (await Promise.all([path, `${path}-wal`].map((file) => Bun.file(file).bytes())))
      .map((bytes) => Buffer.from(bytes).toString("latin1"))
      .join("");
  expect(namesFound(await stored())).toEqual(["SECRET-content", "SECRET-context", "SECRET-instruction"]);
  await deleteAccount(t, ada);
  await t.drain();
  expect(namesFound(await stored())).toEqual([]);
});

test("an account with thousands of messages is dead at once, and erased in short transactions to the last byte", async () => {
  await using folder = await databaseFolder();
  await using t = await testApp({ llm: { kind: "demo" }, database: { url: folder.url } });
  const ada = await t.as(ADA);
  const bob = await t.as("bob@example.com");
  const result = "SECRET-result ".repeat(300);
  await storeMessages(
    t,
    ada.user,
    Array.from({ length: 3_000 }, () => ({ result })),
  );
  await storeMessages(
    t,
    bob.user,
    Array.from({ length: 10 }, () => ({ result: "of Bob's" })),
  );
  let writes = 0;
  const { write } = t.app;
  t.app.write = (operation) => {
    writes += 1;
    return write(operation);
  };
  await deleteAccount(t, ada);
  expect((await t.request("/auth/me", { headers: { "x-api-key": ada.key } })).status).toBe(401);
  // Nobody waits for the erasing, and nothing else is left of the account by then.
  expect(
    await t.app.db.selectFrom("messages").select("id").where("user_id", "=", ada.user.id).execute(),
  ).toHaveLength(3_000);
  expect((await listUsers(t.app.db)).map(({ email }) => email)).toEqual(["bob@example.com"]);
  const before = writes;
  await t.drain();
  expect(writes - before).toBeGreaterThan(5);
  const left = await everyByte(t, folder);
  expect([left.includes("SECRET-result"), left.includes(ada.user.id)]).toEqual([false, false]);
  expect((await bob.get("/messages")).body.items).toHaveLength(10);
});

test("an erasing that is cut off goes on where it was", async () => {
  await using t = await testApp();
  const ada = await t.as(ADA);
  await storeMessages(
    t,
    ada.user,
    Array.from({ length: 2_000 }, () => ({})),
  );
  await deleteAccount(t, ada);
  const messages = () => t.app.db.selectFrom("messages").select("id").execute();
  const { write } = t.app;
  let cut = false;
  t.app.write = async (operation) => {
    const { length } = await messages();
    if (cut || length === 2_000) return write(operation);
    cut = true;
    throw new Error("cut off");
  };
  await t.drain();
  expect([cut, (await messages()).length > 0]).toEqual([true, true]);
  t.clock.advance("1m");
  await t.drain();
  expect(await messages()).toEqual([]);
  expect(await t.app.db.selectFrom("users").select("id").execute()).toEqual([]);
});

test("an address with an international domain confirms in both of its forms", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@xn--mnchen-3ya.example");
  const init = { method: "DELETE", headers: { "x-api-key": ada.key, "content-type": "application/json" } };
  const send = (confirm: string) =>
    t.request("/auth/account", { ...init, body: JSON.stringify({ confirm }) });
  expect((await send("ada@muenchen.example")).status).toBe(422);
  expect((await send("Ada@MÜNCHEN.example")).status).toBe(204);
});

test("a run that goes on ends without harm, and who waits for it is told that it is gone", async () => {
  const answered = Promise.withResolvers<string>();
  await using room = await mailroom({ model: { reply: () => answered.promise } });
  const call = room.owner.post("/v1/messages", { instruction: "Take your time" });
  await room.model.received(1);
  await deleteAccount(room, room.owner);
  const answer = await call;
  expect([answer.status, answer.body.code]).toEqual([401, "unauthorized"]);
  answered.resolve("SECRET-result");
  await room.drain();
  expect(namesFound(await everything(room))).toEqual([]);
  expect(await room.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
});

test("queued mail and messages of the account are not worked on any more", async () => {
  await using sink = await startSmtpSink();
  await using room = await mailroom({
    config: { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } },
  });
  await room.send({ text: "Summarise this" });
  await room.owner.post("/v1/messages", { instruction: "Later", async: true });
  await openBrowser(room).post("/auth/request-code", { email: ADA });
  await signInUnmailed(room);
  await answerStranger(room);
  const kinds = async () =>
    (await room.app.db.selectFrom("jobs").select("kind").execute()).map(({ kind }) => kind).sort();
  expect(await kinds()).toEqual([
    "mail_code",
    "route_message",
    "route_message",
    "route_message",
    "send_mail",
    "send_mail",
  ]);
  await deleteAccount(room, room.owner);
  expect(await kinds()).toEqual(["erase_account"]);
  await room.drain();
  room.clock.advance("10m");
  await room.drain();
  expect(await kinds()).toEqual([]);
  expect(room.model.requests).toEqual([]);
  expect(sink.mails.map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim())).toEqual([
    "Your Mailwright account was deleted",
  ]);
});

test("the operator deletes as the owner does, and the owner is told who did it", async () => {
  await using sink = await startSmtpSink();
  await using room = await mailroom({
    config: { outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } },
  });
  await room.owner.post("/v1/messages", { instruction: "Later", async: true });
  const user = await userOfEmail(room.app.db, ADA);
  await removeAccount(room.app, user, "operator");
  expect((await room.owner.get("/auth/me")).status).toBe(401);
  expect(await room.send({ text: "Hello" })).toStartWith("550");
  await room.drain();
  room.clock.advance("10m");
  await room.drain();
  expect(await everything(room)).not.toContain(ADA);
  expect(room.model.requests).toEqual([]);
  const [letter, ...others] = sink.mails.map(({ raw }) => raw.toString().replaceAll(/\s+/g, " "));
  expect(others).toEqual([]);
  expect(letter).toContain("was deleted by the operator of this server.");
  expect(letter).toContain("Ask them soon");
  // Twice does it once.
  await removeAccount(room.app, user, "operator");
});

/** The answer waits to be sent. */
async function answerStranger(room: Mailroom): Promise<void> {
  const eve = "eve@example.net";
  await room.send({ from: `Eve <${eve}>`, text: "Hi" });
  await room.app.write(async (tx) => {
    const messages = tx.selectFrom("messages").select(["id", "user_id"]).where("sender", "=", eve);
    const { id: message_id, user_id } = await messages.executeTakeFirstOrThrow();
    const addresses = { envelope_from: room.inbox.address, envelope_to: eve };
    const answer = {
      rfc_message_id: "<a@mw.test>",
      raw: Buffer.from(`From: ${room.inbox.address}\r\n\r\nHi`),
    };
    await sendLater(room.app, tx, {
      id: room.app.newId(),
      user_id,
      message_id,
      kind: "reply",
      ...addresses,
      ...answer,
    });
  });
}

test("what was given up for the account goes with it, whoever had caused it", async () => {
  await using room = await mailroom();
  for (const from of ["Ada <ada@example.com>", "Eve <eve@example.net>"])
    await room.send({ from, text: "Hi" });
  await room.app.write(async (tx) => {
    await tx.updateTable("jobs").set({ status: "dead" }).execute();
    await tx.updateTable("messages").set({ state: "failed" }).execute();
  });
  await deleteAccount(room, room.owner);
  const jobs = await room.app.db.selectFrom("jobs").select("kind").where("status", "=", "dead").execute();
  expect(jobs).toEqual([]);
});

test("the mail about a deletion outlives the account until it is sent, and names the key that did it", async () => {
  await using sink = await startSmtpSink();
  sink.fault = "refuse";
  const relay = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  await using t = await testApp({ outbound: relay });
  const ada = await t.as(ADA);
  await deleteAccount(t, ada);
  await t.drain();
  expect(await t.app.db.selectFrom("users").select("id").execute()).toHaveLength(1);
  sink.fault = undefined;
  t.clock.advance("20m");
  await t.drain();
  t.clock.advance("10m");
  await t.drain();
  expect(sink.mails).toHaveLength(1);
  const raw = sink.mails[0]?.raw.toString() ?? "";
  expect(raw).toContain("To: ada@example.com");
  expect(raw).toContain("with the API key");
  expect(await t.app.db.selectFrom("users").select("id").execute()).toEqual([]);
  expect(await t.app.db.selectFrom("outgoing_mails").select("id").execute()).toEqual([]);
});

test("the erasing goes on after a restart, until it is done", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as(ADA);
  await ada.post("/inboxes", {});
  const data = Buffer.alloc(BULK_BYTES, "a-secret").toString("base64");
  await ada.post("/v1/messages", {
    instruction: "Read it",
    attachments: [{ filename: "a.bin", content_type: "application/octet-stream", data }],
  });
  await deleteAccount(t, ada);
  const [job] = await t.app.db.selectFrom("jobs").selectAll().execute();
  expect([job?.kind, job?.status]).toEqual(["erase_account", "pending"]);
  expect((await segments(t)).includes("a-secret")).toBe(true);
  await t.drain();
  expect((await segments(t)).includes("a-secret")).toBe(false);
  expect(await t.app.db.selectFrom("jobs").selectAll().execute()).toEqual([]);
});

test("an administrator who leaves is followed by the next account that is verified alone", async () => {
  await using t = await testApp();
  const ada = await t.as(ADA);
  expect(ada.user.is_admin).toBe(1);
  await deleteAccount(t, ada);
  const bob = await t.as("bob@example.com");
  expect(bob.user.is_admin).toBe(1);
});

/** What was written into the account, by where: each of them is found before, and none after. */
const WORDS = [
  "SECRET-bulk",
  "SECRET-connection",
  "SECRET-content",
  "SECRET-context",
  "SECRET-file",
  "SECRET-idempotency",
  "SECRET-inbox",
  "SECRET-instruction",
  "SECRET-mail",
  "SECRET-name",
  "SECRET-pending",
  "SECRET-result",
  "SECRET-subject",
  "secret-domain",
];

/** One of everything that an account can have. */
async function fill(room: Mailroom): Promise<void> {
  const { owner } = room;
  await owner.patch("/auth/profile", { name: "SECRET-name" });
  const registration = { email: ADA, password: PASSWORD, name: "SECRET-pending" };
  await openBrowser(room, "192.0.2.44").post("/auth/register", registration);
  await owner.post("/auth/set-password", { password: PASSWORD });
  await openBrowser(room, "192.0.2.44").post("/auth/register", registration);
  await freshCode(room, ADA);
  await openBrowser(room).post("/auth/login", { email: ADA, password: PASSWORD });
  await owner.post("/connections", { kind: "demo", label: "SECRET-connection" });
  await owner.post("/contexts", { title: "SECRET-context", body: "SECRET-context", kind: "instruction" });
  await owner.patch(`/inboxes/${room.inbox.id}`, { label: "SECRET-inbox" });
  await owner.post("/custom-domains", { domain: "secret-domain.example.org" });
  await owner.post(
    "/v1/messages",
    {
      instruction: "SECRET-instruction",
      content: "SECRET-content",
      attachments: [
        { filename: "SECRET-file.txt", content_type: "text/plain", data: btoa("SECRET-file") },
        {
          filename: "big.txt",
          content_type: "text/plain",
          data: btoa("SECRET-bulk".repeat(BULK_BYTES / 10)),
        },
      ],
    },
    { "idempotency-key": "SECRET-idempotency" },
  );
  await room.send({ subject: "SECRET-subject", text: "SECRET-mail" });
  await room.send({ text: "SECRET-bulk".repeat(BULK_BYTES / 10), subject: "Big" });
  await room.drain();
  const limits = room.app.limiter.lasting().map(([key, full_at]) => ({ key, full_at }));
  await room.app.db.insertInto("rate_limits").values(limits).execute();
  const { file_bytes, mail_bytes } = await inSegments(room);
  expect([file_bytes > 0, mail_bytes > 0]).toEqual([true, true]);
}

async function inSegments({ app }: TestApp) {
  const attachments = app.db.selectFrom("attachments").select("size").where("segment", "is not", null);
  const mails = app.db.selectFrom("raw_mails").select("size").where("segment", "is not", null);
  const sum = (rows: { size: number }[]) => rows.reduce((total, { size }) => total + size, 0);
  return { file_bytes: sum(await attachments.execute()), mail_bytes: sum(await mails.execute()) };
}

/** Every cell of every table, and every file with mail, as text. */
async function everything(t: TestApp): Promise<string> {
  const parts = [await segments(t)];
  for (const { name } of await t.app.db.introspection.getTables()) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(t.app.db);
    for (const row of rows)
      for (const cell of Object.values(row))
        parts.push(cell instanceof Uint8Array ? Buffer.from(cell).toString("latin1") : String(cell));
  }
  parts.push(...t.app.limiter.lasting().map(([key]) => key));
  return parts.join("\n").replaceAll(emailFingerprint(t.app, ADA), "");
}

async function segments({ app }: TestApp): Promise<string> {
  const dir = join(app.config.data.dir, "mail");
  const files = (await readdir(dir)).map((name) => Bun.file(join(dir, name)).bytes());
  return (await Promise.all(files)).map((bytes) => Buffer.from(bytes).toString("latin1")).join("\n");
}

function namesFound(text: string): string[] {
  return WORDS.filter((word) => text.includes(word));
}

async function deleteAccount(t: TestApp, caller: Caller): Promise<void> {
  const answer = await t.request("/auth/account", {
    method: "DELETE",
    headers: { "x-api-key": caller.key, "content-type": "application/json" },
    body: JSON.stringify({ confirm: caller.user.email }),
  });
  expect(answer.status).toBe(204);
}

/** A letter waits to be sent. */
async function signInUnmailed(room: Mailroom): Promise<void> {
  await room.owner.post("/auth/api-key");
  expect(await newestCode(room, ADA)).toBeUndefined();
}
