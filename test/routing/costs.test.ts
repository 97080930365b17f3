import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { keepCosts, noteCost, saveCosts } from "../../src/resources/billing/kept-costs.ts";
import { freshId, type Mailroom, mailroom } from "../support/mailroom.ts";
import { chatCompletion, startModelServer, toolCalls } from "../support/model-server.ts";
import {
  ASK,
  ask,
  budgetLetters,
  change,
  COST,
  HELD,
  limit,
  PRICED,
  priced,
  spent,
} from "../support/priced-room.ts";
import { create, toolRoom } from "../support/tool-room.ts";

describe("what a model costs", () => {
  test("is told of a message, of a replay and of the month, by inbox and connection", async () => {
    await using room = await priced();
    const { body } = await ask(room);
    expect(body).toMatchObject({ status: "done", usage: { output_tokens: 7 }, cost: COST });
    const { body: replay } = await room.owner.post(`/messages/${body.message_id}/replay`, {});
    await room.drain();
    const read = await room.owner.get(`/messages/${body.message_id}/replays/${replay.id}`);
    expect(read.body.cost).toBe(COST);
    expect(await spent(room)).toEqual({
      month: "2026-01",
      currency: "USD",
      cost: 2 * COST,
      monthly_budget: null,
      inboxes: [{ inbox_id: room.inbox.id, label: "Desk", cost: 2 * COST, monthly_budget: null }],
      connections: [{ connection_id: null, label: null, cost: 2 * COST, monthly_budget: null }],
    });
    await room.owner.delete(`/messages/${body.message_id}`);
    expect((await spent(room)).cost).toBe(2 * COST);
  });

  test("is null where there is no price, and 0 where the model runs here", async () => {
    await using free = await mailroom();
    expect((await ask(free)).body.cost).toBe(0);
    await using unknown = await mailroom({
      config: { llm: { kind: "openrouter", api_key: "k", model: "x" } },
    });
    expect((await ask(unknown)).body.cost).toBeNull();
    expect((await spent(unknown)).cost).toBe(0);
  });

  test("is what OpenRouter says it is", async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 7, cost: 0.0425 };
    const reply = () => Response.json({ ...chatCompletion("Done."), usage });
    await using room = await mailroom({
      model: { reply },
      config: { llm: { kind: "openrouter", api_key: "k", model: "x" } },
    });
    await limit(room, 0.05);
    expect((await ask(room)).body.cost).toBe(0.0425);
    // Nobody knows before what it will be: the first one that is beyond the budget is the last one.
    expect((await ask(room)).body.cost).toBe(0.0425);
    expect((await ask(room)).body).toMatchObject({ status: "limited" });
    expect((await spent(room)).cost).toBe(0.085);
  });

  test("counts each answer of a run, and the questions of its rules, also where the run fails", async () => {
    const says = [
      () => "Yes.",
      () => toolCalls([{ name: "files_create" }]),
      () => new Response("", { status: 400 }),
    ];
    await using room = await priced({ model: { reply: () => (says.shift() ?? (() => "Done."))() } });
    const rules = [{ name: "Press", when: [], question: "Is it from the press?", do: { tags: ["press"] } }];
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
    const { body } = await ask(room);
    expect(body).toMatchObject({ status: "failed", usage: { output_tokens: 7 }, cost: 2 * COST });
    expect((await spent(room)).cost).toBe(2 * COST);
  });

  test("is written by the minute where no budget depends on it, at the end, and before a budget counts on it", async () => {
    await using room = await priced();
    const rows = () => room.app.db.selectFrom("model_costs").select("cost").execute();
    {
      await using _kept = keepCosts(room.app);
      await ask(room);
      expect([await rows(), (await spent(room)).cost]).toEqual([[], COST]);
    }
    expect([await rows(), (await spent(room)).cost]).toEqual([[{ cost: COST * 1e6 }], COST]);
    await ask(room);
    await limit(room, 1);
    await ask(room);
    expect(await rows()).toEqual([{ cost: 3 * COST * 1e6 }]);
    expect(room.app.costs.unsaved.size).toBe(0);
  });

  test("of an account that is gone is left out, and keeps nothing else from being written", async () => {
    await using room = await priced();
    const gone = {
      user_id: Bun.randomUUIDv7(),
      month: "2026-01",
      inbox_id: "a",
      connection_id: "b",
      cost: 5,
    };
    noteCost(room.app, gone);
    noteCost(room.app, { ...gone, user_id: room.owner.user.id });
    await room.app.write((tx) => saveCosts(room.app, tx));
    expect((await spent(room)).cost).toBe(0.000005);
    expect(room.app.costs.unsaved.size).toBe(0);
  });

  test("counts an answer that was of no use", async () => {
    const answer = chatCompletion("Half of it");
    const choices = (answer["choices"] as object[]).map((one) => ({
      ...one,
      finish_reason: "content_filter",
    }));
    await using room = await priced({ model: { reply: () => Response.json({ ...answer, choices }) } });
    const { body } = await ask(room);
    expect(body).toMatchObject({ status: "failed", cost: COST });
    expect((await spent(room)).cost).toBe(COST);
  });
});

describe("a monthly budget", () => {
  test.each([
    ["the account", (room: Mailroom) => limit(room, 0.02), "your account"],
    [
      "the inbox",
      (room: Mailroom) => change(room, `/inboxes/${room.inbox.id}`, { monthly_budget: 0.02 }),
      "the inbox “Desk”",
    ],
  ])("of %s ends what would go beyond it as limited, before the model is asked", async (_, set, whose) => {
    await using room = await priced();
    expect(await set(room)).toBe(200);
    expect((await ask(room)).body.status).toBe("done");
    expect((await ask(room)).body.status).toBe("done");
    const { status, body } = await ask(room);
    expect([status, body.status, body.credits.charged]).toEqual([200, "limited", 0]);
    expect(body.error).toContain(
      `the monthly budget of ${whose}: 0.02 USD, of which 0.014 USD are used or set aside, and this may cost 0.01 USD.`,
    );
    expect(room.model.requests).toHaveLength(2);
    expect(await room.newest()).toMatchObject({ state: "limited", reason: "budget_used_up" });
  });

  test("of a connection counts what that one answers; where it is used up, its fallback answers", async () => {
    await using other = startModelServer({ reply: () => "By the other one." });
    await using room = await priced({ config: { egress: { allow: ["127.0.0.1"] } } });
    const made = async (label: string, base_url: string, more: object) =>
      (
        await room.owner.post("/connections", {
          kind: "openai_compatible",
          label,
          base_url,
          model: "m",
          ...more,
        })
      ).body;
    const second = await made("Second", other.base_url, {});
    const first = await made("First", room.model.base_url, {
      monthly_budget: HELD,
      fallback_connection_id: second.id,
    });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    expect((await ask(room)).body.result).not.toBe("By the other one.");
    const { body } = await ask(room);
    expect(body).toMatchObject({ status: "done", result: "By the other one.", cost: COST });
    expect(JSON.stringify(body.steps)).toContain(
      "The model m (“First”) was not asked, to stay within a budget; m (“Second”) was in its place",
    );
    expect((await spent(room)).connections).toMatchObject([
      { connection_id: expect.any(String), cost: COST },
      { connection_id: expect.any(String), cost: COST },
    ]);
    await change(room, `/connections/${second.id}`, { monthly_budget: 0.001 });
    expect((await ask(room)).body).toMatchObject({ status: "limited" });
    expect((await ask(room)).body.error).toContain("the connection “First”");
  });

  test("of 0 leaves what is free", async () => {
    await using room = await mailroom();
    await limit(room, 0);
    expect((await ask(room)).body.status).toBe("done");
  });

  test("is not gone beyond by twenty calls at once", async () => {
    const gate = Promise.withResolvers<string>();
    await using room = await priced({ model: { reply: () => gate.promise } });
    await limit(room, 5 * HELD);
    const post = () => room.owner.post("/v1/messages", ASK, { prefer: "respond-async" });
    await Promise.all(Array.from({ length: 20 }, post));
    const drained = room.drain();
    const ended = async (status: string) =>
      (await room.activity()).filter((message) => message.status === status).length;
    await room.model.received(5);
    await Bun.sleep(100);
    // What is merely set aside may be there again in a moment.
    expect([await ended("received"), room.model.requests.length]).toEqual([20, 5]);
    gate.resolve("Done.");
    await drained;
    expect([await ended("done"), await ended("limited"), room.model.requests.length]).toEqual([6, 14, 6]);
    expect((await spent(room)).cost).toBeCloseTo(6 * COST, 6);
  });

  test("begins anew with the month, in UTC", async () => {
    await using room = await priced();
    await limit(room, HELD);
    expect((await ask(room)).body.status).toBe("done");
    expect((await ask(room)).body.status).toBe("limited");
    // The clock stands at noon of 15 January.
    room.clock.leap("395h");
    expect((await ask(room)).body.status).toBe("limited");
    room.clock.leap("2h");
    expect((await ask(room)).body.status).toBe("done");
    expect(await spent(room)).toMatchObject({ month: "2026-02", cost: COST });
  });

  test("gives back what a request did not cost that has failed", async () => {
    await using room = await priced();
    await limit(room, HELD);
    room.model.fault = "unauthorized";
    expect((await ask(room)).body.status).toBe("failed");
    room.model.fault = "none";
    expect((await ask(room)).body.status).toBe("done");
    expect(room.app.costs.reserved.size).toBe(0);
  });

  test("counts what was spent before it was set", async () => {
    await using room = await priced();
    await ask(room);
    await limit(room, COST);
    expect((await ask(room)).body.status).toBe("limited");
  });

  test("has a mail that is beyond it tried again once it is raised, and tells no other sender what it is", async () => {
    await using room = await priced({ inbox: { allowlist_senders: ["bob@example.org"], monthly_budget: 0 } });
    await room.send({ ...freshId(), from: "Bob <bob@example.org>", text: "Buy milk" });
    await room.drain();
    const [mail] = await room.activity();
    expect(mail).toMatchObject({ status: "limited", reason: "budget_used_up", credits_charged: 0 });
    const told = (await room.outgoing()).filter(({ envelope_to }) => envelope_to === "bob@example.org");
    expect(told.map(({ kind }) => kind)).toEqual(["notice"]);
    const { text = "" } = await simpleParser(Buffer.from(told[0]?.raw ?? []));
    expect(text.replaceAll(/\s+/g, " ")).toContain("The owner of this inbox has limited");
    expect(text).not.toContain("USD");
    await change(room, `/inboxes/${room.inbox.id}`, { monthly_budget: null });
    expect((await room.owner.post(`/messages/${mail.message_id}/retry`)).status).toBe(202);
    await room.drain();
    expect((await room.activity())[0]).toMatchObject({ status: "done" });
  });

  test("holds a question of a rule, the test of an inbox and what a schedule asks for as well", async () => {
    await using room = await priced({ inbox: { monthly_budget: 0 } });
    const rules = [{ name: "Press", when: [], question: "Is it from the press?", do: { tags: ["press"] } }];
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
    const { status, body } = await room.owner.post(`/inboxes/${room.inbox.id}/test`, {});
    expect([status, body.status]).toEqual([200, "limited"]);
    expect((await ask(room)).body.status).toBe("limited");
    await room.owner.post("/v1/schedules", { instruction: "Say it", every: "daily 13:00" });
    room.clock.advance("2h");
    await room.drain();
    const newest = await room.newest();
    expect([newest.state, newest.schedule_id]).toEqual(["limited", expect.any(String)]);
    expect(room.model.requests).toEqual([]);
  });

  test("beside another that is in the way too names both", async () => {
    await using room = await priced({ inbox: { monthly_budget: 0 } });
    await limit(room, 0);
    const { error } = (await ask(room)).body;
    expect(error).toContain("the monthly budget of the inbox “Desk”: 0.00 USD");
    expect(error).toEndWith(" The monthly budget of your account is in the way as well.");
  });

  test("of which a mail of its owner would go beyond is answered with what to do", async () => {
    await using room = await priced({ inbox: { monthly_budget: 0 } });
    await room.send({ ...freshId(), text: "Buy milk" });
    await room.drain();
    const notice = (await room.outgoing()).find(({ message_id }) => message_id !== null);
    const { text = "" } = await simpleParser(Buffer.from(notice?.raw ?? []));
    const words = text.replaceAll(/\s+/g, " ");
    expect(words).toContain("monthly budget of the inbox “Desk”: 0.00 USD");
    expect(words).toContain("Raise it on the page of the inbox");
    expect(words).toContain("or have it tried again");
  });

  test("that ends a run whose tools have changed something has it failed, and another try does none of it twice", async () => {
    const rounds = [[create({ title: "Lunch" })], "All is done."];
    await using room = await toolRoom(rounds, { config: { ...PRICED, egress: { allow: ["127.0.0.1"] } } });
    await limit(room, HELD);
    await room.send({ ...freshId(), text: "@calendar Make what I said --max-tokens=10" });
    await room.drain();
    const failed = await room.newest();
    expect(failed).toMatchObject({ state: "failed", reason: "budget_used_up", cost: COST * 1e6 });
    await limit(room, null);
    expect((await room.owner.post(`/messages/${failed.id}/retry`)).status).toBe(202);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", result: "All is done." });
    expect(room.tools.calls).toHaveLength(1);
  });

  test("counts what was set aside where a provider does not say what it has read and written", async () => {
    const { usage: _, ...answer } = chatCompletion("Done.");
    await using room = await priced({ model: { reply: () => Response.json(answer) } });
    await limit(room, 10 * HELD);
    expect((await ask(room)).body).toMatchObject({ status: "done", usage: null });
    expect((await spent(room)).cost).toBe(HELD);
  });

  test("ends a replay as failed", async () => {
    await using room = await priced();
    const { body } = await ask(room);
    await limit(room, COST);
    const { body: replay } = await room.owner.post(`/messages/${body.message_id}/replay`, {});
    await room.drain();
    const read = await room.owner.get(`/messages/${body.message_id}/replays/${replay.id}`);
    expect(read.body).toMatchObject({ status: "failed", reason: "budget_used_up", credits_charged: 0 });
  });
});

describe("the owner is told by mail", () => {
  test("once a month that most of a budget is used, and once that all of it is", async () => {
    await using room = await priced();
    await limit(room, 3 * HELD);
    await ask(room);
    await ask(room);
    await ask(room);
    expect(await budgetLetters(room)).toEqual([]);
    await ask(room);
    await ask(room);
    const [low, used, ...more] = await budgetLetters(room);
    expect([low?.subject, used?.subject, more]).toEqual([
      "A monthly budget of your Mailwright is used up",
      undefined,
      [],
    ]);
    expect(low?.text).toContain("0.021 USD of 0.03 USD");
    expect(low?.text).toContain("once a month at most");
    room.clock.advance("3d");
    await ask(room);
    expect(await budgetLetters(room)).toHaveLength(1);
    room.clock.advance("20d");
    for (let call = 0; call < 4; call++) await ask(room);
    expect(await budgetLetters(room)).toHaveLength(2);
  });

  test("that most of it is used before the rest is", async () => {
    await using room = await priced();
    await limit(room, COST * 1.2);
    // Nothing has to be set aside for an answer of one token.
    await ask(room, { instruction: "Say it --max-tokens=1" });
    const [low, ...more] = await budgetLetters(room);
    expect([low?.subject, more]).toEqual(["Most of a monthly budget of your Mailwright is used", []]);
    expect(low?.text).toContain("0.007 USD of 0.0084 USD");
  });
});

describe("an API key", () => {
  test.each(["account", "inbox", "connection"])(
    "can lower the budget of the %s, of which its owner hears, and neither raise it nor take it away",
    async (of) => {
      await using room = await priced();
      const { body: connection } = await room.owner.post("/connections", { kind: "openai", credential: "k" });
      const paths: Record<string, string> = {
        account: "/auth/profile",
        inbox: `/inboxes/${room.inbox.id}`,
        connection: `/connections/${connection.id}`,
      };
      const path = paths[of] ?? "";
      expect((await room.owner.patch(path, { monthly_budget: 10 })).status).toBe(200);
      expect((await room.owner.patch(path, { monthly_budget: 5.5 })).body.monthly_budget).toBe(5.5);
      for (const monthly_budget of [5.51, null]) {
        const { status, body } = await room.owner.patch(path, { monthly_budget });
        expect([status, body.code ?? body.error?.code]).toEqual([403, "session_required"]);
      }
      expect((await room.owner.patch(path, { monthly_budget: 5.5 })).status).toBe(200);
      expect(await change(room, path, { monthly_budget: 20 })).toBe(200);
      expect(await change(room, path, { monthly_budget: null })).toBe(200);
      const told = await room.app.db
        .selectFrom("jobs")
        .select("payload")
        .where("kind", "=", "sum_up_notices")
        .execute();
      expect(JSON.stringify(told)).toContain(of === "connection" ? "connection was changed" : "");
    },
  );

  test.each([-1, "30", 1e12, true])("and anybody is refused %p for a budget", async (monthly_budget) => {
    await using room = await priced();
    expect((await room.owner.patch("/auth/profile", { monthly_budget })).status).toBe(422);
    expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { monthly_budget })).status).toBe(422);
  });
});
