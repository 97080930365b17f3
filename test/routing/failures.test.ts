import { describe, expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { simpleParser } from "mailparser";
import { unfolded } from "../support/mails.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { freshId, mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";

const BOB = "Bob <bob@example.org>";

describe("a fallback connection", () => {
  async function withFallback(room: Mailroom, first: object): Promise<string> {
    const allowed = { kind: "openai_compatible", base_url: room.model.base_url, model: "first", ...first };
    const { body: demo } = await room.owner.post("/connections", { kind: "demo", label: "Spare" });
    const { body } = await room.owner.post("/connections", { ...allowed, fallback_connection_id: demo.id });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: body.id });
    return demo.id;
  }
  const config = { egress: { allow: ["127.0.0.1"] } };

  test("answers when the first does not, at once and for one credit, and the answer says so", async () => {
    await using room = await mailroom({ config, model: { fault: "unauthorized" } });
    await withFallback(room, {});
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect(body).toMatchObject({ status: "done", credits: { charged: 1, remaining: 9_999 } });
    expect(body.result).toContain("demo model");
    expect(body.steps).toMatchObject([
      { type: "warning", output: "The model first did not answer; demo did in its place." },
    ]);
    expect(room.model.requests).toHaveLength(1);
  });

  test("of the same model is told apart by the name of its connection", async () => {
    await using broken = startModelServer({ fault: "unauthorized" });
    await using room = await mailroom({ config });
    const made = async (label: string, base_url: string, more: object = {}): Promise<string> => {
      const body = { kind: "openai_compatible", base_url, model: "tiny-1", label, ...more };
      return (await room.owner.post("/connections", body)).body.id;
    };
    const spare = await made("Spare", room.model.base_url);
    const first = await made("Main", broken.base_url, { fallback_connection_id: spare });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first });
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect(body.steps).toMatchObject([
      { output: "The model tiny-1 (“Main”) did not answer; tiny-1 (“Spare”) did in its place." },
    ]);
  });

  test("is one of up to three, asked in order until one answers", async () => {
    await using room = await mailroom({ config, model: { fault: "unauthorized" } });
    const make = async (label: string, more: object = {}): Promise<string> => {
      const model = { kind: "openai_compatible", base_url: room.model.base_url, model: label };
      return (await room.owner.post("/connections", { ...model, label, ...more })).body.id;
    };
    const spares = [
      await make("second"),
      await make("third"),
      (await room.owner.post("/connections", { kind: "demo" })).body.id,
    ];
    const first = await make("first", { fallback_connection_ids: spares });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first });
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect(body).toMatchObject({ status: "done", credits: { charged: 1 } });
    expect(body.steps).toMatchObject([
      {
        type: "warning",
        output: "The models first, second and third did not answer; demo did in their place.",
      },
    ]);
    expect(room.model.requests.map(({ body: asked }) => asked?.model)).toEqual(["first", "second", "third"]);
    await room.owner.delete(`/connections/${spares[2]}`);
    const failed = (await room.owner.post("/v1/messages", { instruction: "Say hello" })).body;
    expect(failed).toMatchObject({ status: "failed", steps: [] });
    const { body: left } = await room.owner.get("/connections");
    expect(left.find(({ id }: { id: string }) => id === first).fallback_connection_ids).toEqual(
      spares.slice(0, 2),
    );
  });

  test("is not asked when the first answers", async () => {
    await using room = await mailroom({ config });
    await withFallback(room, {});
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect([body.result, body.steps]).toEqual(["Echo: Say hello", []]);
  });

  test("that does not answer either, or is gone, leaves the fault of the first", async () => {
    await using room = await mailroom({ config, model: { fault: "unauthorized" } });
    const spare = await withFallback(room, { label: "First" });
    const failing = { kind: "openai_compatible", base_url: room.model.base_url, model: "second" };
    const { body: second } = await room.owner.post("/connections", failing);
    const first = (await room.owner.get("/connections")).body.find(
      ({ label }: { label: string }) => label === "First",
    );
    await room.owner.patch(`/connections/${first.id}`, { fallback_connection_id: second.id });
    const both = (await room.owner.post("/v1/messages", { instruction: "Say hello" })).body;
    expect(both).toMatchObject({ status: "failed", steps: [], credits: { charged: 0 } });
    expect(room.model.requests.map(({ body }) => body?.model)).toEqual(["first", "second"]);
    await room.owner.patch(`/connections/${first.id}`, { fallback_connection_id: spare });
    await room.owner.delete(`/connections/${spare}`);
    const gone = (await room.owner.post("/v1/messages", { instruction: "Say hello" })).body;
    expect(gone).toMatchObject({ status: "failed", error: both.error, credits: { charged: 0 } });
    expect(room.model.requests).toHaveLength(3);
  });

  /** A room whose first model and its fallback are the same server. */
  async function twoModels(options: RoomOptions): Promise<Mailroom> {
    const room = await mailroom({ ...options, config: { ...config, ...options.config } });
    const spare = await withFallback(room, { label: "First" });
    const second = { kind: "openai_compatible", base_url: room.model.base_url, model: "second" };
    const { body } = await room.owner.post("/connections", second);
    const connections: { id: string; label: string }[] = (await room.owner.get("/connections")).body;
    const { id } = connections.find(({ label }) => label === "First") ?? { id: "" };
    await room.owner.patch(`/connections/${id}`, { fallback_connection_id: body.id });
    await room.owner.delete(`/connections/${spare}`);
    return room;
  }

  test("that fails for the moment is asked again, although the first one never answers", async () => {
    let busy = 1;
    await using room = await twoModels({
      model: {
        reply: ({ model }) => {
          if (model === "first") return new Response("no", { status: 401 });
          return busy-- > 0 ? new Response("busy", { status: 503 }) : "From the second.";
        },
      },
    });
    await room.send({});
    await room.drain();
    const [waiting] = await room.activity();
    expect(waiting).toMatchObject({ status: "received" });
    const { steps } = (await room.owner.get(`/messages/${waiting.message_id}`)).body;
    expect(steps[0].output).toMatch(/API key.+It is asked again at/);
    room.clock.advance("2s");
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", result: "From the second." });
  });

  test("is asked in time where the first model takes the request and says nothing", async () => {
    await using room = await twoModels({
      model: { reply: ({ model }) => (model === "first" ? new Promise(() => {}) : "From the second.") },
      config: { routing: { hard_cap_seconds: 2, sync_budget_seconds: 2 } },
    });
    await room.send({});
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", result: "From the second." });
    const { body } = await room.owner.post("/v1/messages", { instruction: "Say hello" });
    expect(body).toMatchObject({ status: "done", result: "From the second." });
  });
});

describe("a model that refuses", () => {
  test("ends the run as failed, costs nothing, and is explained to the owner in one mail", async () => {
    await using room = await mailroom({ model: { fault: "unauthorized" } });
    await room.send({ subject: "The plan", headers: { "Message-ID": "<ask@example.com>" } });
    await room.drain();
    const [entry] = await room.activity();
    expect(entry).toMatchObject({
      status: "failed",
      reason: "invalid_credentials",
      model: "stand-in",
      credits_charged: 0,
      result: "",
    });
    expect(await balance(room)).toEqual([10_000, -1, 1]);
    const [notice, ...others] = await room.outgoing();
    expect(others).toEqual([]);
    expect(notice).toMatchObject({ kind: "notice", envelope_from: "", envelope_to: "ada@example.com" });
    const { text, headers, subject, inReplyTo } = await simpleParser(Buffer.from(notice?.raw ?? []));
    expect(unfolded(text)).toContain(entry.error);
    expect(text).toContain("Nothing was charged.");
    // No AI has written it.
    expect(text).not.toContain("Sent by AI");
    const there = `http://mw.test/app/messages/${entry.message_id}`;
    expect(unfolded(text)).toContain(
      `send your mail again or have it tried again in the activity <${there}>`,
    );
    expect([subject, inReplyTo, headers.get("auto-submitted")]).toEqual([
      "Re: The plan",
      "<ask@example.com>",
      "auto-generated",
    ]);
    expect(room.model.requests).toHaveLength(1);
    room.clock.advance("1d");
    await room.drain();
    expect(await room.outgoing()).toHaveLength(1);
  });

  test("is explained to a listed sender too", async () => {
    await using room = await mailroom({
      model: { fault: "unauthorized" },
      inbox: { allowlist_senders: ["@example.org"] },
    });
    await room.send({ from: BOB });
    await room.drain();
    expect(await room.outgoing()).toMatchObject([{ kind: "notice", envelope_to: "bob@example.org" }]);
    // The activity is its owner's.
    const { text } = await simpleParser(Buffer.from((await room.outgoing())[0]?.raw ?? []));
    expect(unfolded(text)).toContain("Once that is mended, send your mail again.");
  });

  test.each(["stranger", "unauthenticated"])(
    "is told to the owner, and not to a sender who is %s",
    async (kind) => {
      await using dns = await startDnsServer();
      const smtp = kind === "stranger" ? {} : { trusted_networks: [] };
      await using room = await mailroom({
        config: { smtp, dns: { servers: [dns.address] } },
        model: { fault: "unauthorized" },
        inbox: { inbound_policy: { reply_to_unauthenticated: true } },
      });
      await room.send({ from: BOB });
      await room.drain();
      expect(await room.newest()).toMatchObject({ authority: kind, state: "failed", reply_status: "none" });
      expect(await room.outgoing()).toMatchObject([{ envelope_to: "ada@example.com", message_id: null }]);
    },
  );

  test("is told to the owner alone where the inbox does not reply", async () => {
    await using room = await mailroom({ model: { fault: "unauthorized" }, inbox: { reply_enabled: false } });
    await room.send({});
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "failed", reply_status: "none" }]);
    expect(await room.outgoing()).toMatchObject([{ envelope_to: "ada@example.com", message_id: null }]);
  });
});

describe("a model that fails for the moment", () => {
  test("is asked again, and then there is one answer", async () => {
    await using room = await mailroom({ model: { fault: "html_502" } });
    await room.send({});
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "received" }]);
    room.model.fault = "none";
    await room.drain();
    expect(room.model.requests).toHaveLength(1);
    room.clock.advance("2s");
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { status: "done", credits_charged: 1, reply_status: "sent" },
    ]);
    expect(await room.outgoing()).toMatchObject([{ kind: "reply" }]);
    expect(await balance(room)).toEqual([10_000, -1, 0]);
  });

  test("is asked five times in a quarter of an hour, as is said meanwhile; then the run fails with one notice", async () => {
    await using room = await mailroom({ model: { fault: "drop_mid_body" } });
    await room.send({});
    const begun = room.clock.now();
    const asked: number[] = [];
    while (room.clock.now() - begun < 20 * 60_000) {
      const before = room.model.requests.length;
      await room.drain();
      if (room.model.requests.length > before) asked.push((room.clock.now() - begun) / 1_000);
      const [{ status, message_id }] = await room.activity();
      const { steps } = (await room.owner.get(`/messages/${message_id}`)).body;
      if (status === "received") expect(steps[0].output).toContain("It is asked again at");
      room.clock.advance("2s");
    }
    expect(asked).toEqual([0, 2, 32, 152, 752]);
    expect(await room.activity()).toMatchObject([{ status: "failed", credits_charged: 0 }]);
    expect(await room.outgoing()).toMatchObject([{ kind: "notice" }]);
    expect(await balance(room)).toEqual([10_000, -1, 1]);
  });

  test("is left alone for as long as its Retry-After says", async () => {
    await using room = await mailroom({ model: { fault: "rate_limited", retry_after: "30" } });
    await room.send({});
    await room.drain();
    room.model.fault = "none";
    room.clock.advance("29s");
    await room.drain();
    expect(room.model.requests).toHaveLength(1);
    room.clock.advance("1s");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done" }]);
  });

  test.each([
    ["is waited for where the tries of a mail take longer together", "700", {}, "received"],
    ["has failed where they do not", "800", {}, "failed"],
    ["is waited for as long as the operator lets a mail be tried", "3600", { retry: [2, 7200] }, "received"],
  ])("that names a pause of more than minutes %s", async (_what, retry_after, routing, status) => {
    await using room = await mailroom({
      model: { fault: "rate_limited", retry_after },
      config: { routing },
    });
    await room.send({});
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status }]);
    room.model.fault = "none";
    room.clock.advance(`${retry_after}s`);
    await room.drain();
    const ended = status === "received" ? "done" : "failed";
    expect(await room.activity()).toMatchObject([{ status: ended }]);
  });

  test("that names a pause of more than minutes has failed for whoever calls", async () => {
    await using room = await mailroom({ model: { fault: "rate_limited", retry_after: "360" } });
    const { body } = await room.owner.post("/v1/messages", { instruction: "Hello" });
    expect(body.status).toBe("failed");
    expect(room.model.requests).toHaveLength(1);
  });

  test("keeps the next mail of its conversation waiting", async () => {
    await using room = await mailroom({ model: { fault: "html_502" } });
    await room.send({ headers: { "Message-ID": "<one@example.com>" }, text: "One" });
    await room.send({
      headers: { "Message-ID": "<two@example.com>", "In-Reply-To": "<one@example.com>" },
      text: "Two",
    });
    await room.drain();
    expect(room.model.requests).toHaveLength(1);
    room.model.fault = "none";
    room.clock.advance("2s");
    await room.drain();
    const asked = room.model.requests.map(({ body }) => body?.messages.at(-1)?.content.slice(0, 3));
    expect(asked).toEqual(["One", "One", "Two"]);
  });
});

test("a model that hangs for the moment is asked again by a mail", async () => {
  let hanging = true;
  await using room = await mailroom({
    model: { reply: () => (hanging ? new Promise(() => {}) : "Here I am.") },
    config: { routing: { hard_cap_seconds: 1, sync_budget_seconds: 1 } },
  });
  await room.send({});
  await room.drain();
  expect(await room.activity()).toMatchObject([{ status: "received" }]);
  hanging = false;
  room.clock.advance("2s");
  await room.drain();
  expect(await room.newest()).toMatchObject({ state: "done", result: "Here I am." });
});

test("a model that hangs is given up at the hard cap, by a mail at the third", async () => {
  const routing = { hard_cap_seconds: 1, sync_budget_seconds: 1 };
  await using room = await mailroom({ model: { fault: "hang" }, config: { routing } });
  await room.send({});
  for (let round = 0; round < 3; round++) {
    await room.drain();
    room.clock.advance("10m");
  }
  expect(await room.activity()).toMatchObject([{ status: "failed", reason: "timeout", credits_charged: 0 }]);
  expect(room.model.requests).toHaveLength(3);
  expect(await room.outgoing()).toMatchObject([{ kind: "notice" }]);
  await room.owner.post("/v1/messages", { instruction: "Say hello", async: true });
  await room.drain();
  expect([(await room.newest()).state, room.model.requests.length]).toEqual(["failed", 4]);
});

test("a run that breaks for a reason of ours is given up after some attempts, and gives its credit back", async () => {
  await using room = await mailroom();
  await room.send({});
  await room.app.db.updateTable("raw_mails").set({ bytes: null }).execute();
  for (let round = 0; round < 10; round++) {
    await room.drain();
    room.clock.advance("2h");
  }
  const [entry] = await room.activity();
  expect(entry).toMatchObject({ status: "failed", reason: "internal", credits_charged: 0 });
  expect(entry.error).toContain("a fault of this server");
  expect(await balance(room)).toEqual([10_000, -1, 1]);
  expect(await room.app.db.selectFrom("jobs").select("status").execute()).toEqual([{ status: "dead" }]);
});

test("an inbox without a model says so to its owner, and takes no credit", async () => {
  await using room = await mailroom({ config: { llm: { kind: "", base_url: "", model: "" } } });
  await room.send({});
  await room.drain();
  const [entry] = await room.activity();
  expect(entry).toMatchObject({ status: "failed", reason: "no_provider", credits_charged: 0 });
  expect(entry.error).toContain("on the page of the inbox");
  expect(await room.outgoing()).toMatchObject([{ kind: "notice" }]);
  expect(await balance(room)).toEqual([10_000, -1, 1]);
});

test("a mail whose inbox is deleted while it waits ends as failed and gives its credit back", async () => {
  await using room = await mailroom();
  await room.send({});
  expect((await room.owner.delete(`/inboxes/${room.inbox.id}`)).status).toBe(204);
  await forgetNotices(room.app);
  await room.drain();
  expect(await room.activity()).toMatchObject([
    { status: "failed", reason: "inbox_deleted", inbox_id: null, credits_charged: 0 },
  ]);
  expect(await balance(room)).toEqual([10_000, -1, 1]);
  expect(room.model.requests).toEqual([]);
  // No answer of the inbox, but a letter to the owner.
  expect(await room.outgoing()).toMatchObject([{ message_id: null, envelope_to: "ada@example.com" }]);
  expect(await room.app.db.selectFrom("jobs").select("id").execute()).toEqual([]);
});

test("a mail over the credit cap is kept as limited and neither worked on nor answered; its owner is told", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 1 } } } });
  for (const text of ["One", "Two"])
    expect(await room.send({ text, ...freshId(), from: BOB })).toStartWith("250 ");
  await room.drain();
  expect(await room.activity()).toMatchObject([
    { status: "limited", reason: "credit_limit", credits_charged: 0 },
    { status: "done", credits_charged: 1 },
  ]);
  expect(room.model.requests).toHaveLength(1);
  const told = (await room.outgoing()).map(({ kind, envelope_to }) => `${kind} to ${envelope_to}`);
  expect(told.sort()).toEqual(["notice to ada@example.com", "reply to bob@example.org"]);
  expect(await balance(room)).toEqual([1, -1, 0]);
});

/** The amounts of the ledger, oldest first. */
async function balance(room: Mailroom): Promise<number[]> {
  const rows = await room.app.db.selectFrom("ledger").select("amount").orderBy("id").execute();
  return rows.map(({ amount }) => amount);
}
