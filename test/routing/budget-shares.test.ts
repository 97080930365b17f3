import { describe, expect, test } from "bun:test";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { freshId, type Mailroom } from "../support/mailroom.ts";
import { chatCompletion } from "../support/model-server.ts";
import { ask, budgetLetters, change, HELD, letters, limit, priced, spent } from "../support/priced-room.ts";

/** For each answer 0.0041 are set aside, and it costs 0.004. */
const ANSWER = { ...chatCompletion("Done."), usage: { prompt_tokens: 1, completion_tokens: 4_000 } };
const PRICES: ConfigOverrides = {
  costs: { prices: { own: { model: "*", kind: "openai_compatible", input: 0, output: 1 } } },
};
const EACH = 0.004;
const LOOPBACK: ConfigOverrides = { egress: { allow: ["127.0.0.1"] } };

const answering = (reply: () => Promise<Response> | Response = () => Response.json(ANSWER)) =>
  priced({ config: PRICES, model: { reply } });

async function mail(room: Mailroom, name: string, from = `${name}@${name}.example`) {
  await room.send({ ...freshId(), from, subject: "Offer", text: `This is ${name}: buy it.` });
  await room.drain();
  return room.newest();
}

describe("of a monthly budget a fifth is kept for the account's own people", () => {
  test("strangers' mail ends at four fifths, and the owner's work goes on", async () => {
    await using room = await answering();
    await limit(room, 5 * EACH);
    for (const name of ["eve", "mallory", "trudy"])
      expect(await mail(room, name)).toMatchObject({ state: "done", authority: "stranger" });
    const held = await mail(room, "oscar");
    expect(held).toMatchObject({ state: "limited", reason: "budget_used_up" });
    expect(held.error).toContain("the monthly budget of your account: 0.02 USD, of which 0.012 USD are used");
    expect(held.error).toContain("Mail of senders whom you have not listed may use 0.016 USD of it");
    expect((await ask(room)).body.status).toBe("done");
    expect((await ask(room)).body.status).toBe("done");
    expect((await spent(room)).cost).toBeCloseTo(5 * EACH, 6);
    expect((await ask(room)).body.status).toBe("limited");
    const told = await budgetLetters(room);
    expect(told.map(({ subject }) => subject)).toEqual([
      "Mail of strangers has used its share of a monthly budget of your Mailwright",
      "Most of a monthly budget of your Mailwright is used",
      "A monthly budget of your Mailwright is used up",
    ]);
    expect(told[0]?.text).toContain("may use 0.016 USD of it");
  });

  test("what is set aside for strangers' runs under way leaves the owner the rest", async () => {
    const gate = Promise.withResolvers<void>();
    let asked = 0;
    await using room = await answering(() => {
      const answer = () => Response.json(ANSWER);
      return ++asked <= 3 ? gate.promise.then(answer) : answer();
    });
    await limit(room, 5 * EACH);
    for (const name of ["eve", "mallory", "trudy", "oscar", "victor"])
      await room.send({ ...freshId(), from: `${name}@${name}.example`, text: `Buy ${name}` });
    const drained = room.drain();
    await room.model.received(3);
    expect((await ask(room)).body).toMatchObject({ status: "done" });
    gate.resolve();
    await drained;
    expect((await room.activity()).map(({ status }) => status).toSorted()).toEqual([
      "done",
      "done",
      "done",
      "done",
      "limited",
      "limited",
    ]);
  });

  test("a message of a stranger that its owner has tried again, or replayed, counts as the owner's", async () => {
    await using room = await answering();
    await limit(room, 3.1 * EACH);
    await mail(room, "eve");
    const done = await mail(room, "mallory");
    expect(done).toMatchObject({ state: "done" });
    const held = await mail(room, "trudy");
    expect(held).toMatchObject({ state: "limited" });
    expect((await room.owner.post(`/messages/${held.id}/retry`)).status).toBe(202);
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "done", retry_of: held.id });
    await limit(room, 4.1 * EACH);
    expect(await mail(room, "oscar")).toMatchObject({ state: "limited" });
    const { body: replay } = await room.owner.post(`/messages/${done.id}/replay`, {});
    await room.drain();
    expect((await room.owner.get(`/messages/${done.id}/replays/${replay.id}`)).body.status).toBe("done");
  });

  test("a rule's question about a stranger's mail counts as theirs", async () => {
    await using room = await answering();
    const rules = [{ name: "Press", when: [], question: "Is it from the press?", do: { tags: ["press"] } }];
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
    await limit(room, 1.1 * EACH);
    expect(await mail(room, "eve")).toMatchObject({ state: "limited" });
    expect(room.model.requests).toEqual([]);
  });
});

describe("money that is merely set aside for requests under way", () => {
  /** Costs a tenth of what is set aside for it. */
  const SHORT = { ...ANSWER, usage: { prompt_tokens: 1, completion_tokens: 400 } };

  test("is waited for by mail and calls, and nobody is told", async () => {
    const gate = Promise.withResolvers<void>();
    await using room = await answering(() => gate.promise.then(() => Response.json(SHORT)));
    await limit(room, 5 * EACH);
    for (let number = 0; number < 8; number++)
      await room.send({ ...freshId(), from: `c${number}@customer.example`, text: `Order ${number}` });
    const drained = room.drain();
    await room.model.received(3);
    const call = ask(room, { instruction: "Say it" });
    await room.model.received(4);
    await Bun.sleep(100);
    expect(room.model.requests).toHaveLength(4);
    gate.resolve();
    await drained;
    expect((await call).body.status).toBe("done");
    expect((await room.activity()).map(({ status }) => status)).toEqual(
      Array.from({ length: 9 }, () => "done"),
    );
    expect(await budgetLetters(room)).toEqual([]);
    expect([room.app.costs.reserved.size, room.app.costs.given_back.size]).toEqual([0, 0]);
  });

  test("is not waited for where a fallback can be asked, and ends a call only with its time", async () => {
    await using room = await priced({
      config: { ...PRICES, ...LOOPBACK, routing: { hard_cap_seconds: 1, sync_budget_seconds: 1 } },
    });
    const { body: demo } = await room.owner.post("/connections", { kind: "demo" });
    const { body: first } = await room.owner.post("/connections", {
      kind: "openai_compatible",
      base_url: room.model.base_url,
      model: "first",
    });
    await change(room, `/connections/${first.id}`, { monthly_budget: 1.1 * EACH });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    // A request that is under way all the while.
    room.app.costs.reserved.set(`2026-01 connection ${first.id}`, 1_000_000 * EACH);
    await ask(room, { instruction: "Say it" });
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "limited", reason: "budget_used_up" });
    await room.owner.patch(`/connections/${first.id}`, { fallback_connection_id: demo.id });
    const { body } = await ask(room, { instruction: "Say it" });
    expect([body.status, body.steps[0].output]).toEqual([
      "done",
      "The model first was not asked, to stay within a budget; demo was in its place.",
    ]);
    expect(room.model.requests).toEqual([]);
    expect(await budgetLetters(room)).toEqual([]);
  });
});

describe("the owner is told of what a budget leaves undone", () => {
  const undone = async (room: Mailroom) =>
    (await letters(room)).filter(({ subject }) => /not worked on|left out/.test(subject));

  test("once a day, for as long as something is left of it, also where a budget was changed", async () => {
    await using room = await priced();
    await limit(room, 0.9 * HELD);
    expect(await mail(room, "eve")).toMatchObject({ state: "limited" });
    expect(await budgetLetters(room)).toHaveLength(1);
    // The same size of it is told once a month, and another one anew.
    await mail(room, "mallory");
    expect(await budgetLetters(room)).toHaveLength(1);
    await limit(room, 0.8 * HELD);
    await mail(room, "trudy");
    expect(await budgetLetters(room)).toHaveLength(2);
    expect(await undone(room)).toEqual([]);
    room.clock.advance("1d");
    const [letter, ...more] = await undone(room);
    expect(more).toEqual([]);
    expect(letter?.subject).toBe("Mail was taken, but not worked on");
    expect(letter?.text).toContain("3 mails to your inboxes were not worked on when they came");
    expect(letter?.text).toContain("the monthly budget of your account: 0.008 USD");
    room.clock.advance("1d");
    expect(await undone(room)).toHaveLength(1);
    const last = await mail(room, "oscar");
    expect(await undone(room)).toHaveLength(2);
    await limit(room, null);
    for (const { message_id } of await room.activity())
      if (message_id !== last.id) await room.owner.delete(`/messages/${message_id}`);
    room.clock.advance("1d");
    expect((await room.owner.post(`/messages/${last.id}/retry`)).status).toBe(202);
    await room.drain();
    expect(await undone(room)).toHaveLength(2);
  });

  test("a letter that there was nothing to say in does not take the place of a later one", async () => {
    await using room = await priced();
    await limit(room, 0.9 * HELD);
    await ask(room);
    await limit(room, null);
    expect(await budgetLetters(room)).toEqual([]);
    await limit(room, 0.9 * HELD);
    await ask(room);
    expect(await budgetLetters(room)).toHaveLength(1);
  });
});

describe("a budget that is smaller than what one request may cost", () => {
  test("says that waiting does not help, and what does", async () => {
    await using room = await priced({ inbox: { monthly_budget: 3 } });
    const { body } = await ask(room, { instruction: "Say it" });
    expect(body.status).toBe("limited");
    expect(body.error).toContain("this may cost 4.096 USD. To wait for the next month does not help");
    expect(body.error).toContain("have shorter answers, as with --max-tokens=500");
    expect(body.error).not.toContain("wait for the next month (UTC)");
    const [letter, ...more] = await budgetLetters(room);
    expect(more).toEqual([]);
    expect(letter?.subject).toBe("A monthly budget of your Mailwright is too small for a request");
    expect(letter?.text).toContain("To wait for the next month does not help.");
    expect(letter?.text).toContain("--max-tokens=500");
    expect(letter?.text).not.toContain("begins anew");
    expect((await ask(room, { instruction: "Say it --max-tokens=500" })).body.status).toBe("done");
    // It takes the place of no letter that says that the budget is used up.
    await change(room, `/inboxes/${room.inbox.id}`, { monthly_budget: 3 });
    const { body: other } = await ask(room, { instruction: "Say it --max-tokens=2995" });
    expect(other.error).toContain("have shorter answers, as with --max-tokens=500");
    expect(other.error).toContain("or wait for the next month (UTC)");
    expect((await budgetLetters(room)).map(({ subject }) => subject)).toEqual([
      "A monthly budget of your Mailwright is too small for a request",
      "A monthly budget of your Mailwright is used up",
    ]);
  });
});
