import { describe, expect, test } from "bun:test";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { recountStorage, storedBytes } from "../../src/db/account-storage.ts";
import { prepareLetter } from "../../src/mail/writing/letters.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { pass, purge } from "../support/purge.ts";
import { deliver } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const ANN = "ann@example.net";

const WAYS: [string, (room: Mailroom) => Promise<unknown>][] = [
  [
    "mail to postmaster",
    async (room) => expect(await room.send({ from: ANN, rcpt: "postmaster@mw.test" })).toStartWith("250 "),
  ],
  [
    "the contact form",
    async (room) => {
      const body = JSON.stringify({ name: "Ann", email: ANN, message: "It burns" });
      const headers = { "content-type": "application/json" };
      const { status } = await room.request("/contacts", { method: "POST", headers, body });
      expect(status).toBe(201);
    },
  ],
];

/** What a relay says, and after how many attempts that is the last word. */
const REFUSALS: [string, number][] = [
  ["552 5.3.4 message size exceeds fixed limit", 1],
  ["451 4.3.0 come back later", 2],
];

describe.each(WAYS)("what the server took from somebody by %s", (_way, write) => {
  test.each(REFUSALS)(
    "is kept for the operator when the relay refuses it for good (%s), and goes out when it is tried again",
    async (refusal, attempts) => {
      let said: string | undefined = refusal;
      await using sink = await startSmtpSink({ reject_mail: () => said });
      const relay_url = `smtp://127.0.0.1:${sink.port}`;
      await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } });
      await write(room);
      for (let count = 0; count < attempts; count += 1) {
        await room.drain();
        room.clock.advance("2m");
      }
      const dead = async () => (await room.owner.get("/admin/queue?state=dead")).body.items;
      const first = await dead();
      expect(first).toMatchObject([
        { kind: "send_mail", why: expect.stringContaining(refusal.slice(0, 9)), account: "ada@example.com" },
      ]);
      expect(await queueWarnings(room.app)).toEqual({ dead: expect.stringMatching(/^1 job was given up/) });
      // Tried in vain, it is kept as it was.
      expect((await room.owner.post(`/admin/queue/${first[0].id}/retry`)).status).toBe(204);
      for (let count = 0; count < attempts; count += 1) {
        await room.drain();
        room.clock.advance("2m");
      }
      const [again, ...others] = await dead();
      expect(others).toEqual([]);
      said = undefined;
      expect((await room.owner.post(`/admin/queue/${again.id}/retry`)).status).toBe(204);
      await room.drain();
      expect(sink.mails).toMatchObject([{ rcpt_to: ["ada@example.com"] }]);
      expect((await room.owner.get("/admin/queue")).body.items).toEqual([]);
      expect(await queueWarnings(room.app)).toEqual({});
    },
  );
});

describe.each(WAYS)("a return of what the server took from somebody by %s", (_way, write) => {
  test("days after the relay took it keeps it for the operator, who sends it again", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    await write(room);
    await room.drain();
    const to = sink.mails[0]?.mail_from ?? "";
    room.clock.advance("2d");
    const dead = async () => (await room.owner.get("/admin/queue?state=dead")).body.items;
    // A delay is no return.
    const report = (action: string) =>
      deliver(room.door, { from: "", to, raw: notification({ action, status: "5.7.1" }) });
    expect(await report("delayed")).toStartWith("250 ");
    expect(await dead()).toEqual([]);
    for (let count = 0; count < 2; count += 1) expect(await report("failed")).toStartWith("250 ");
    const found = await dead();
    expect(found).toMatchObject([
      { kind: "send_mail", why: expect.stringContaining("5.7.1"), account: "ada@example.com" },
    ]);
    expect(await queueWarnings(room.app)).toEqual({ dead: expect.stringMatching(/^1 job was given up/) });
    expect((await room.owner.post(`/admin/queue/${found[0].id}/retry`)).status).toBe(204);
    await room.drain();
    expect(sink.mails).toHaveLength(2);
    expect(await dead()).toEqual([]);
  });
});

test("every sender that a mail leaves with is an address that the server takes returns at", async () => {
  await using sink = await startSmtpSink();
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const outbound = { mode: "relay" as const, relay_url, from: "notices@elsewhere.example" };
  await using room = await mailroom({ config: { outbound } });
  for (const [, write] of WAYS) await write(room);
  const body = JSON.stringify({ email: "nobody@example.net" });
  const headers = { "content-type": "application/json" };
  await room.request("/auth/request-code", { method: "POST", headers, body });
  await room.send({});
  await room.drain();
  expect(sink.mails).toHaveLength(4);
  for (const { mail_from } of sink.mails)
    expect(await deliver(room.door, { from: "", to: mail_from, raw: notification() })).toStartWith("250 ");
  expect((await room.outgoing()).map(({ status }) => status)).toEqual(Array(4).fill("bounced"));
});

test("a return that is quicker than the word of the relay is not forgotten when that is written down", async () => {
  await using stack = new AsyncDisposableStack();
  let bounce = async (): Promise<void> => undefined;
  const sink = stack.use(await startSmtpSink({ beforeWord: () => bounce() }));
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const room = stack.use(await mailroom({ config: { outbound: { mode: "relay", relay_url } } }));
  bounce = async () => {
    const to = sink.mails[0]?.mail_from ?? "";
    await deliver(room.door, { from: "", to, raw: notification({}) });
  };
  await room.send({});
  await room.drain();
  expect(await room.newest()).toMatchObject({ reply_status: "bounced" });
  expect((await room.outgoing()).map(({ status }) => status)).toEqual(["bounced"]);
});

test("what came back for good keeps its letter as long as its job, and no longer", async () => {
  await using sink = await startSmtpSink({ reject_mail: () => "552 5.3.4 too large" });
  const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
  const retention = { raw_days: 1, delivery_days: 5 };
  await using room = await mailroom({ config: { outbound, retention } });
  await room.send({ from: ANN, rcpt: "postmaster@mw.test" });
  await room.drain();
  await pass(room, 4);
  expect(await room.outgoing()).toMatchObject([{ status: "bounced", raw: expect.any(Uint8Array) }]);
  await pass(room, 3);
  expect((await room.owner.get("/admin/queue?state=dead")).body.items).toEqual([]);
  // With the next look.
  await purge(room);
  expect(await room.outgoing()).toEqual([]);
});

test("a login code that is refused for good leaves no work behind: whoever asked asks again", async () => {
  await using sink = await startSmtpSink({ reject_mail: () => "550 5.7.1 not from you" });
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
  await room.request("/auth/request-code", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "nobody@example.net" }),
  });
  await room.drain();
  expect((await room.outgoing()).map(({ status }) => status)).toEqual(["bounced"]);
  expect((await room.owner.get("/admin/queue")).body.items).toEqual([]);
});

describe("what was entrusted to an administrator whose account is deleted before it went out", () => {
  const BOSS = "boss@example.com";

  /** A room in which a letter to its administrator waits, or was given up; `say` is what the relay says to mails. */
  async function letterRoom({ given_up }: { given_up: boolean }) {
    await using stack = new AsyncDisposableStack();
    const relay = { says: "451 4.3.0 come back later" as string | undefined };
    const sink = stack.use(await startSmtpSink({ reject_mail: () => relay.says }));
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    const retry = given_up ? [] : [60, 60, 60];
    const room = stack.use(await mailroom({ config: { outbound: { mode: "relay", relay_url, retry } } }));
    expect(await room.send({ from: ANN, rcpt: "postmaster@mw.test", text: "It burns" })).toStartWith("250 ");
    await room.drain();
    const built = stack.move();
    return { ...room, sink, relay, [Symbol.asyncDispose]: () => built.disposeAsync() };
  }
  type LetterRoom = Awaited<ReturnType<typeof letterRoom>>;

  async function leave(room: LetterRoom): Promise<void> {
    const { status } = await room.request("/auth/account", {
      method: "DELETE",
      headers: { "x-api-key": room.owner.key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: "ada@example.com" }),
    });
    expect(status).toBe(204);
  }

  async function appoint(room: LetterRoom) {
    const boss = await room.as(BOSS);
    await room.app.db.updateTable("users").set({ is_admin: 1 }).where("email", "=", BOSS).execute();
    return boss;
  }

  /** Lets the relay take mails again, and looks a few times. */
  async function goOn(room: LetterRoom): Promise<void> {
    room.relay.says = undefined;
    for (let count = 0; count < 4; count += 1) {
      room.clock.advance("10m");
      await room.drain();
    }
  }

  /** To whom the letters went, and what is left of the account. */
  async function outcome(room: LetterRoom) {
    const letters = room.sink.mails.filter(({ raw }) =>
      raw.toString().includes("Subject: Mail to postmaster"),
    );
    const users = await room.app.db.selectFrom("users").select("email").execute();
    return { to: letters.map(({ rcpt_to }) => rcpt_to), users: users.map(({ email }) => email) };
  }

  test("goes to another one, and says so", async () => {
    await using room = await letterRoom({ given_up: false });
    const boss = await appoint(room);
    await leave(room);
    await goOn(room);
    expect(await outcome(room)).toEqual({ to: [[BOSS]], users: [BOSS] });
    const letter = room.sink.mails.map(({ raw }) => raw.toString()).find((raw) => raw.includes("postmaster"));
    expect(letter).toContain(`To: ${BOSS}`);
    expect(letter).not.toContain("ada@example.com");
    expect(letter).toContain("DKIM-Signature:");
    // Its bytes count for whoever has it.
    const storage = async () => (await storedBytes(room.app.db, { user_id: boss.user.id }))[0]?.bytes;
    const counted = await storage();
    await recountStorage(room.app, boss.user.id);
    expect(await storage()).toBe(counted);
  });

  test("stays given up for another one, who has it sent again", async () => {
    await using room = await letterRoom({ given_up: true });
    const boss = await appoint(room);
    await leave(room);
    await goOn(room);
    expect((await outcome(room)).to).toEqual([]);
    const { items } = (await boss.get("/admin/queue?state=dead")).body;
    expect(items).toMatchObject([{ kind: "send_mail" }]);
    expect((await boss.post(`/admin/queue/${items[0].id}/retry`)).status).toBe(204);
    await goOn(room);
    expect(await outcome(room)).toEqual({ to: [[BOSS]], users: [BOSS] });
  });

  test("waits where there is no other one, and is shown, until there is", async () => {
    await using room = await letterRoom({ given_up: false });
    await leave(room);
    await goOn(room);
    expect((await outcome(room)).to).toEqual([]);
    expect(await queueWarnings(room.app)).toEqual({ dead: expect.stringMatching(/^1 job was given up/) });
    const boss = await appoint(room);
    const { items } = (await boss.get("/admin/queue?state=dead")).body;
    expect(items).toMatchObject([{ why: expect.stringContaining("Nobody administers this server") }]);
    expect((await boss.post(`/admin/queue/${items[0].id}/retry`)).status).toBe(204);
    await goOn(room);
    expect(await outcome(room)).toEqual({ to: [[BOSS]], users: [BOSS] });
  });

  test("goes to another one also where it comes in while the account is deleted", async () => {
    await using room = await letterRoom({ given_up: false });
    await room.app.write((tx) => tx.deleteFrom("jobs").execute());
    await appoint(room);
    const { id: user_id, email: to } = room.owner.user;
    const subject = "Mail to postmaster@mw.test";
    const letter = await prepareLetter(room.app, { user_id, to, subject, markdown: "Hi", entrusted: true });
    await leave(room);
    await room.app.write(letter);
    await goOn(room);
    expect(await outcome(room)).toEqual({ to: [[BOSS]], users: [BOSS] });
  });
});
