import { simpleParser } from "mailparser";
import { describe, expect, test } from "bun:test";
import { createHttp } from "../../src/api.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { testApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";
import { startReceiver, TO_LOOPBACK } from "../support/webhook-receiver.ts";

/** Nobody listens there. */
const DEAF = { outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:9" } } as const;
const ROUTING = { kind: "route_message" };

// oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever the server said
async function queue(room: Mailroom, query = ""): Promise<any[]> {
  const { body } = await room.owner.get(`/admin/queue${query}`);
  return body.items;
}

describe("who is no administrator", () => {
  test("hears 403 on every administrator's route, whatever id is asked for, and whatever else is wrong", async () => {
    await using t = await testApp();
    await t.as("ada@example.com");
    const bob = await t.as("bob@example.com");
    const { routes } = createHttp(t.app, { ready: async () => ({}) });
    const admin = routes.filter(({ path }) => path.startsWith("/admin/"));
    expect(admin.length).toBeGreaterThan(8);
    for (const { method, path } of admin)
      for (const id of [Bun.randomUUIDv7(), "no-id"]) {
        const answer = await t.request(path.replaceAll(/:\w+/g, id), {
          method,
          headers: { "x-api-key": bob.key, "content-type": "application/json" },
          ...(method === "GET" ? {} : { body: "{}" }),
        });
        expect([path, answer.status, answer.body.code]).toEqual([path, 403, "admin_required"]);
      }
  });

  test("is told by /auth/me that they are none, and an administrator that they are", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const bob = await t.as("bob@example.com");
    expect((await ada.get("/auth/me")).body.is_admin).toBe(true);
    expect((await bob.get("/auth/me")).body.is_admin).toBe(false);
  });
});

describe("the queue", () => {
  test("says of a job what it is for, whose it is and why it waits, and nothing of what the mail says", async () => {
    await using room = await mailroom();
    await room.send({ subject: "Top secret", text: "Nobody else's business" });
    const jobs = await queue(room);
    expect(jobs).toMatchObject([
      {
        ...ROUTING,
        state: "due",
        about: `work on a mail from ada@example.com for ${room.inbox.address}`,
        account: "ada@example.com",
        why: "its turn is next",
        next_at: room.app.now(),
        may_drop: true,
      },
    ]);
    expect(JSON.stringify(jobs)).not.toMatch(/secret|business/);
  });

  test("of one that failed says why and when it is tried next; a retry has it tried at once", async () => {
    await using sink = await startSmtpSink();
    const { port } = sink;
    const relay_url = `smtp://127.0.0.1:${port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    sink.fault = "refuse";
    await room.send({ text: "Hello" });
    await room.drain();
    const [job] = await queue(room, "?kind=send_mail");
    expect(job).toMatchObject({
      state: "waiting",
      about: `send a reply from ${room.inbox.address} to ada@example.com`,
      why: expect.stringMatching(/^failed once: .*421/),
      next_at: room.app.now() + 60,
    });
    sink.fault = undefined;
    expect((await room.owner.post(`/admin/queue/${job.id}/retry`, {})).status).toBe(204);
    await room.drain();
    expect(sink.mails).toHaveLength(1);
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
  });

  test("a retry that fails as well is no failure more: the mail keeps all its later tries", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({
      config: { outbound: { mode: "relay", relay_url, retry: [60, 300] } },
    });
    sink.fault = "refuse";
    await room.send({ text: "Hello" });
    await room.drain();
    const [job] = await queue(room, "?kind=send_mail");
    await room.owner.post(`/admin/queue/${job.id}/retry`, {});
    expect(await queue(room, "?kind=send_mail")).toMatchObject([{ why: expect.stringMatching(/^failed: /) }]);
    // More often than a job may be begun without an end.
    for (let round = 0; round < 25; round++) {
      await room.owner.post(`/admin/queue/${job.id}/retry`, {});
      await room.owner.post(`/admin/queue/${job.id}/retry`, {});
      await room.drain();
    }
    expect(await queue(room, "?kind=send_mail")).toMatchObject([
      { id: job.id, state: "waiting", attempts: 1, failures: 1, next_at: room.app.now() + 60 },
    ]);
    room.clock.advance("60s");
    await room.drain();
    expect(await queue(room, "?kind=send_mail")).toMatchObject([
      { attempts: 2, failures: 2, next_at: room.app.now() + 300 },
    ]);
  });

  test("is paged, oldest first, and filtered by kind and state", async () => {
    await using room = await mailroom();
    for (const text of ["one", "two", "three"]) await room.send({ text });
    const first = await room.owner.get("/admin/queue?limit=2");
    const rest = await room.owner.get(`/admin/queue?limit=2&cursor=${first.body.next_cursor}`);
    const ids = [...first.body.items, ...rest.body.items].map(({ id }) => id);
    expect(ids).toEqual([...ids].sort());
    expect(ids).toHaveLength(3);
    expect(rest.body.next_cursor).toBeNull();
    expect(await queue(room, "?kind=send_mail")).toEqual([]);
    expect(await queue(room, "?state=due")).toHaveLength(3);
    for (const state of ["waiting", "held", "running", "dead"])
      expect(await queue(room, `?state=${state}`)).toEqual([]);
    expect((await room.owner.get("/admin/queue?state=odd")).status).toBe(422);
    expect((await room.owner.get("/admin/queue?cursor=odd")).body.code).toBe("invalid_cursor");
  });

  test("tells that a mail waits for an earlier one of its conversation", async () => {
    await using room = await mailroom();
    const first = await room.owner.post("/v1/messages", { instruction: "Begin" });
    const { conversation_id } = first.body;
    for (let turn = 0; turn < 2; turn++)
      await room.owner.post("/v1/messages", { instruction: "Go on", conversation_id, async: true });
    expect((await queue(room)).map(({ why }) => why)).toEqual([
      "its turn is next",
      "an earlier message of its conversation comes first",
    ]);
  });
});

describe("a job that is dropped", () => {
  test("ends its message as failed with the operator's words, gives the credit back and tells the webhooks", async () => {
    await using receiver = startReceiver();
    await using room = await mailroom({ config: { webhooks: TO_LOOPBACK } });
    await room.owner.post("/v1/webhooks", { url: receiver.url, event_types: ["message.failed"] });
    const before = await credits(room);
    await room.send({ text: "Hello" });
    expect(await credits(room)).toBe(before - 1);
    const [job] = await queue(room, "?kind=route_message");
    const dropped = await room.owner.post(`/admin/queue/${job.id}/drop`, { reason: "sent by mistake" });
    expect(dropped.status).toBe(204);
    await room.drain();
    const error = "The operator of this server took it out of the queue: sent by mistake";
    expect(await room.activity()).toMatchObject([{ status: "failed", reason: "dropped", error }]);
    expect(await credits(room)).toBe(before);
    expect(receiver.received.map(({ event }) => event.data.object)).toMatchObject([
      { status: "failed", error },
    ]);
    expect(room.model.requests).toEqual([]);
    expect((await room.owner.post(`/admin/queue/${job.id}/drop`, {})).status).toBe(404);
  });

  test("that must be done says so beforehand, and why it cannot be dropped", async () => {
    await using room = await mailroom();
    const job = { kind: "purge", payload: {}, dedupe_key: "purge", run_at: room.app.now() + 60 } as const;
    await room.app.write((tx) => enqueue(room.app, tx, job));
    const [purge] = await queue(room, "?kind=purge");
    expect(purge.may_drop).toBe(false);
    const { status, body } = await room.owner.post(`/admin/queue/${purge.id}/drop`, {});
    expect([status, body.detail]).toEqual([
      409,
      "A job of the kind purge cannot be dropped: it has to be done.",
    ]);
    expect(body.fix).toStartWith("It is done when its time comes;");
  });

  test("that was to send an answer shows on the message that none is sent, and nobody is mailed about it", async () => {
    await using room = await mailroom({ config: DEAF });
    await room.send({ text: "Hello" });
    await room.drain();
    const [job] = await queue(room, "?kind=send_mail");
    await room.owner.post(`/admin/queue/${job.id}/drop`, {});
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "suppressed", reply_error: expect.stringMatching(/operator/) },
    ]);
    expect(await queue(room, "?kind=send_mail")).toEqual([]);
  });

  test("that was to deliver webhooks leaves the deliveries as failed, to be replayed", async () => {
    await using receiver = startReceiver(() => new Response(null, { status: 500 }));
    await using room = await mailroom({ config: { webhooks: TO_LOOPBACK } });
    const { body: hook } = await room.owner.post("/v1/webhooks", {
      url: `${receiver.url}?key=shown-to-nobody`,
      event_types: ["message.completed"],
    });
    await room.send({ text: "Hello" });
    await room.drain();
    const [job] = await queue(room, "?kind=deliver_webhooks");
    expect(job.about).toBe(`webhooks to ${new URL(receiver.url).origin}`);
    await room.owner.post(`/admin/queue/${job.id}/drop`, {});
    const { body } = await room.owner.get(`/v1/webhooks/${hook.id}/deliveries`);
    expect(body).toMatchObject([{ status: "failed", error: "dropped", next_attempt_at: null }]);
    await room.owner.post(`/v1/webhooks/${hook.id}/deliveries/${body[0].id}/retry`);
    receiver.answer = () => new Response(null, { status: 204 });
    await room.drain();
    expect(receiver.received).toHaveLength(2);
  });

  test("is refused where something would be left half, and while it is being worked on", async () => {
    const answer = Promise.withResolvers<string>();
    await using room = await mailroom({
      config: { dns: { servers: ["127.0.0.1:9"] } },
      model: { reply: () => answer.promise },
    });
    const { body: made } = await room.owner.post("/custom-domains", { domain: "ai.acme.test" });
    expect(made.status).toBe("pending");
    const [check] = await queue(room, "?kind=check_domain");
    expect(check.about).toBe("look for the records of ai.acme.test");
    const refused = await room.owner.post(`/admin/queue/${check.id}/drop`, {});
    expect([refused.status, refused.body.code]).toEqual([409, "conflict"]);
    await room.send({ text: "Hello" });
    const draining = room.drain();
    await room.model.received(1);
    const [running] = await queue(room, "?state=running");
    for (const act of ["drop", "retry"])
      expect((await room.owner.post(`/admin/queue/${running.id}/${act}`, {})).status).toBe(409);
    answer.resolve("Done");
    await draining;
    expect(await room.activity()).toMatchObject([{ status: "done" }]);
  });
});

describe("a job that was given up", () => {
  /** Says of the only job that it ended its process too often. */
  async function killer(room: Mailroom): Promise<void> {
    await room.app.db.updateTable("jobs").set({ attempts: 50 }).execute();
    await room.drain();
  }

  /** Returns the job that was to send an answer, given up for a relay that refused it until now. */
  async function givenUpAnswer(room: Mailroom, sink: SmtpSink) {
    sink.fault = "refuse";
    await room.send({ text: "Hello" });
    await room.drain();
    room.clock.advance("1h");
    await killer(room);
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    sink.fault = undefined;
    const [dead] = await queue(room, "?state=dead");
    return dead;
  }

  test("is kept, and a retry does the work of its message again as a new one", async () => {
    await using room = await mailroom();
    await room.send({ text: "Hello" });
    await killer(room);
    const [dead] = await queue(room, "?state=dead");
    expect(dead).toMatchObject({ ...ROUTING, next_at: null, why: expect.stringMatching(/^given up: /) });
    expect((await room.owner.get("/admin/overview")).body.queue).toContainEqual(
      expect.objectContaining({ status: "dead", jobs: 1 }),
    );
    await room.owner.post(`/admin/queue/${dead.id}/retry`, {});
    await room.drain();
    expect((await room.activity()).map(({ status }) => status)).toEqual(["done", "failed"]);
    expect(await queue(room)).toEqual([]);
  });

  test("that was to send an answer is retried by sending it", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    const dead = await givenUpAnswer(room, sink);
    await room.owner.post(`/admin/queue/${dead.id}/retry`, {});
    await room.drain();
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
    expect(sink.mails.filter(({ raw }) => raw.includes("Re: Hello"))).toHaveLength(1);
  });

  test("that several try again at once is done once", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    const dead = await givenUpAnswer(room, sink);
    const answers = await Promise.all(
      [1, 2, 3].map(() => room.owner.post(`/admin/queue/${dead.id}/retry`, {})),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 409, 409]);
    await room.drain();
    expect(sink.mails.filter(({ raw }) => raw.includes("Re: Hello"))).toHaveLength(1);
  });

  test("is taken off the list by a drop, which changes nothing more", async () => {
    await using room = await mailroom();
    await room.send({ text: "Hello" });
    await killer(room);
    const [dead] = await queue(room);
    const [before] = await room.activity();
    await room.owner.post(`/admin/queue/${dead.id}/drop`, {});
    expect(await queue(room)).toEqual([]);
    expect(await room.activity()).toEqual([before]);
  });
});

describe("a kind that is held", () => {
  test("is not begun, while mail is still taken in and calls are told that they wait; released, all of it is done", async () => {
    await using room = await mailroom();
    expect((await room.owner.post("/admin/queue/hold", ROUTING)).body).toEqual({ held: ["route_message"] });
    expect(await room.send({ text: "Hello" })).toMatch(/^250/);
    const [held] = await room.activity();
    expect((await room.owner.get(`/messages/${held.message_id}`)).body.held).toBe(true);
    // At once, not after the time that a run may take.
    const call = await room.owner.post("/v1/messages", { instruction: "Do it" });
    expect(call.status).toBe(202);
    room.clock.advance("30d");
    await room.drain();
    expect(room.model.requests).toEqual([]);
    expect(await queue(room, "?state=held")).toMatchObject([
      { ...ROUTING, next_at: null, why: expect.stringMatching(/^held since 2026-/) },
      ROUTING,
    ]);
    const { body } = await room.owner.get("/admin/overview");
    expect(body.held).toEqual(["route_message"]);
    expect((await room.owner.post("/admin/queue/release", {})).body).toEqual({ held: [] });
    await room.drain();
    expect((await room.activity()).map(({ status }) => status)).toEqual(["done", "done"]);
    expect((await room.owner.get(`/messages/${held.message_id}`)).body.held).toBe(false);
  });

  test("keeps answers here, and lets other kinds go on", async () => {
    await using sink = await startSmtpSink();
    const relay_url = `smtp://127.0.0.1:${sink.port}`;
    await using room = await mailroom({ config: { outbound: { mode: "relay", relay_url } } });
    await room.owner.post("/admin/queue/hold", { kind: "send_mail" });
    await room.send({ text: "Hello" });
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "queued" }]);
    expect(sink.connections).toBe(0);
    await room.owner.post("/admin/queue/release", { kind: "send_mail" });
    await room.drain();
    expect(sink.mails).toHaveLength(1);
  });

  test("is by default what works for people and reaches others; an unknown kind is refused", async () => {
    await using room = await mailroom();
    const { body } = await room.owner.post("/admin/queue/hold", {});
    expect(body.held).toEqual([
      "deliver_webhooks",
      "fan_out_event",
      "replay_message",
      "route_message",
      "run_schedule",
      "send_mail",
    ]);
    expect((await room.owner.post("/admin/queue/hold", { kind: "odd" })).status).toBe(422);
    expect((await room.owner.post("/admin/queue/release", { kind: "send_mail" })).body.held).toHaveLength(5);
  });
});

describe("the overview", () => {
  test("counts the day, and names what needs care", async () => {
    await using room = await mailroom();
    await room.send({ text: "Hello" });
    await room.drain();
    await room.send({ from: "Eve <eve@example.org>", headers: { "Auto-Submitted": "auto-generated" } });
    const { body } = await room.owner.get("/admin/overview");
    expect(body.today.messages).toMatchObject({ done: 1, skipped: 1, failed: 0 });
    expect(body.today.mails).toMatchObject({ sent: 1 });
    expect(body.outbound_mode).toBe("capture");
    expect(body.warnings).toContainEqual(expect.stringMatching(/^outbound\.mode is "capture"/));
    expect(body.disk.free_bytes).toBeGreaterThan(0);
    expect(body.mail_files).toEqual({ live_bytes: 0, free_bytes: 0 });
    await room.send({ text: "word ".repeat(10_000) });
    const { live_bytes } = (await room.owner.get("/admin/overview")).body.mail_files;
    expect(live_bytes).toBeGreaterThan(50_000);
    room.clock.advance("1d");
    expect((await room.owner.get("/admin/overview")).body.today.messages.done).toBe(0);
  });
});

describe("the accounts", () => {
  test("are listed in pages, the newest first, with what they use", async () => {
    await using room = await mailroom();
    for (const name of ["bob", "carol"]) await room.as(`${name}@example.com`);
    await room.send({ text: "Hello" });
    await room.drain();
    const first = await room.owner.get("/admin/users?limit=2");
    expect(first.body.items.map(({ email }: { email: string }) => email)).toEqual([
      "carol@example.com",
      "bob@example.com",
    ]);
    const rest = await room.owner.get(`/admin/users?limit=2&cursor=${first.body.next_cursor}`);
    expect(rest.body).toMatchObject({
      items: [{ email: "ada@example.com", is_admin: true, usage: { inboxes: 1, messages_30_days: 1 } }],
      next_cursor: null,
    });
    expect(JSON.stringify([first.body, rest.body])).not.toMatch(/hash|"password|mw_live/);
  });

  test("can be moved to another plan, with its credits", async () => {
    await using room = await mailroom();
    const bob = await room.as("bob@example.com");
    const path = `/admin/users/${bob.user.id}`;
    const { body } = await room.owner.patch(path, { plan: "free" });
    expect(body).toMatchObject({ plan: "free", credits: { allowance: 100 } });
    expect((await bob.get("/auth/me")).body.plan).toBe("free");
    expect((await room.owner.patch(path, {})).body.plan).toBe("free");
    expect((await room.owner.patch(path, { plan: "gold" })).status).toBe(422);
    const unknown = await room.owner.patch(`/admin/users/${Bun.randomUUIDv7()}`, { plan: "pro" });
    expect(unknown.status).toBe(404);
  });
});

describe("outgoing mail", () => {
  test("is shown with its text in the capture box only", async () => {
    const box = await mailOf({});
    expect(box.listed).toMatchObject({ to: "ada@example.com", kind: "reply", status: "sent" });
    expect(box.listed.raw).toBeUndefined();
    expect(box.read.raw).toContain("Subject: Re: Hello");
    expect(box.read).toMatchObject({ subject: "Re: Hello", text: expect.stringMatching(/^Echo: Hello/) });
    const queued = await mailOf({ config: DEAF }, "grace@example.com");
    expect(queued.listed).toMatchObject({ status: "deferred" });
    expect(queued.read).toMatchObject({ subject: null, text: null, raw: null });
    expect(JSON.stringify(queued)).not.toContain("Re: Hello");
    const own = await mailOf({ config: DEAF });
    expect(own.listed).toMatchObject({ status: "deferred", subject: "Re: Hello" });
    expect(own.read.text).toStartWith("Echo: Hello");
  });

  test("never shows a login code where it is mailed, not even that of who looks", async () => {
    await using t = await testApp(DEAF);
    const ada = await t.as("ada@example.com");
    const cookie = await sessionOf(t, ada);
    await t.request("/auth/request-code", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ email: "ada@example.com" }),
    });
    await t.drain();
    const { body: list } = await t.request("/admin/mail", { headers: { cookie } });
    expect(list.items).toMatchObject([{ to: "ada@example.com", subject: null }]);
    const { body } = await t.request(`/admin/mail/${list.items[0].id}`, { headers: { cookie } });
    expect(body).toMatchObject({ subject: null, text: null, raw: null });
  });

  test("is found by whom it is for, whose it is, its subject and its state, page by page", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["@example.net"] } });
    for (const [n, from] of ["bob@example.net", "eve@example.net", "bob@example.net"].entries()) {
      await room.send({ from, subject: `Rent ${n}`, text: "Hello" });
      await room.drain();
    }
    const found = async (query: string) => {
      const { body } = await room.owner.get(`/admin/mail?${query}`);
      return body.items.map(({ subject }: { subject: string }) => subject);
    };
    expect(await found("q=BOB@")).toEqual(["Re: Rent 2", "Re: Rent 0"]);
    expect(await found("q=rent 1")).toEqual(["Re: Rent 1"]);
    expect(await found("q=ada@example.com")).toHaveLength(3);
    expect(await found("status=bounced")).toEqual([]);
    expect(await found("q=nowhere")).toEqual([]);
    const first = await room.owner.get("/admin/mail?q=bob&limit=1");
    expect(first.body.items).toHaveLength(1);
    const next = await room.owner.get(`/admin/mail?q=bob&limit=1&cursor=${first.body.next_cursor}`);
    expect(next.body.items[0].subject).toBe("Re: Rent 0");
    expect((await room.owner.get("/admin/mail?status=odd")).status).toBe(422);
    expect((await room.owner.get(`/admin/mail?q=${"x".repeat(201)}`)).status).toBe(422);
  });

  test("is shown with the words that are in it, and no others", async () => {
    const { read } = await mailOf({ model: { fault: "unauthorized" } });
    const { text = "" } = await simpleParser(Buffer.from(read.raw));
    const words = (said: string): string[] => said.trim().split(/\s+/);
    expect(words(text).join(" ")).toContain("in the activity <");
    expect(words(read.text)).toEqual(words(text));
  });

  test("that is not there is not found", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    expect((await ada.get(`/admin/mail/${Bun.randomUUIDv7()}`)).status).toBe(404);
    expect((await ada.get("/admin/mail/odd")).status).toBe(422);
  });

  async function mailOf(options: RoomOptions, email = "ada@example.com") {
    await using room = await mailroom(options);
    const whose = email === "ada@example.com" ? room.owner : await room.as(email);
    const { body: inbox } = await whose.post("/inboxes", {});
    await room.send({ from: email, text: "Hello", rcpt: inbox.address });
    await room.drain();
    const { body: list } = await room.owner.get("/admin/mail");
    const [listed] = list.items;
    const { body: read } = await room.owner.get(`/admin/mail/${listed.id}`);
    return { listed, read };
  }
});

async function credits(room: Mailroom): Promise<number> {
  return (await room.owner.get("/auth/me")).body.credits.remaining;
}
