import { describe, expect, test } from "bun:test";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { startModelServer } from "../support/model-server.ts";

async function roomAsking(questions: string[], more: RoomOptions, acts: object = {}): Promise<Mailroom> {
  const room = await mailroom(more);
  const rules = questions.map((question, at) => ({
    name: `Q${at}`,
    when: [],
    question,
    do: { tags: [`t${at}`], ...acts },
  }));
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules })).status).toBe(200);
  return room;
}

const busy = (): Response => new Response("busy", { status: 503 });

/** Has what was put back worked on. */
async function drainLater(room: Mailroom): Promise<void> {
  for (let times = 0; times < 4; times++) {
    await room.drain();
    room.clock.advance("1m");
  }
}

describe("a question of a rule", () => {
  test("that is not answered for the moment is asked again, and the run has its own tries besides", async () => {
    const says = [busy(), "Yes.", busy(), "Done."];
    await using room = await roomAsking(["Is it from the press?"], {
      model: { reply: () => says.shift() ?? "" },
    });
    await room.send({ text: "I am a journalist" });
    await drainLater(room);
    expect(await room.newest()).toMatchObject({ state: "done", result: "Done." });
    expect((await room.activity())[0]).toMatchObject({ rules: ["Q0"] });
    expect(room.model.requests.length).toBe(4);
  });

  test.each([
    ["a message that is worked on", {}, "done"],
    ["one that the rule keeps", { keep: true }, "skipped"],
  ])("counts in the tokens of %s", async (_what, acts, state) => {
    const plain = await roomAsking([], { model: { reply: () => "Yes." } });
    await using room = await roomAsking(["Is it from the press?"], { model: { reply: () => "Yes." } }, acts);
    await plain.send({ text: "I am a journalist" });
    await room.send({ text: "I am a journalist" });
    await plain.drain();
    await room.drain();
    const without = state === "done" ? ((await plain.newest()).output_tokens ?? 0) : 0;
    await plain[Symbol.asyncDispose]();
    const row = await room.newest();
    expect(row.state).toBe(state as "done");
    expect(row.output_tokens).toBeGreaterThan(without);
    const { totals } = (await room.owner.get("/usage")).body;
    if (state === "done") expect(totals.output_tokens).toBe(row.output_tokens);
  });

  test("that is not answered then either is passed over with its cause, and costs nothing", async () => {
    await using room = await roomAsking(["Is it from the press?"], { model: { reply: busy } });
    const { body: inbox } = await room.owner.get(`/inboxes/${room.inbox.id}`);
    const kept = { name: "Rest", when: [], do: { keep: true } };
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules: [...inbox.rules, kept] });
    await room.send({ text: "I am a journalist" });
    await drainLater(room);
    const row = await room.newest();
    expect(row).toMatchObject({ state: "skipped", reason: "kept_by_rule", credits_charged: 0 });
    expect(row.steps).toContain("The rule “Q0” was passed over");
    expect(room.model.requests.length).toBe(2);
  });

  test("is asked of the fallback where the model fails, and the next ones of that alone", async () => {
    await using other = startModelServer({ reply: () => "Yes." });
    await using room = await roomAsking(["Is it one?", "Is it two?"], {
      model: { reply: busy },
      config: { egress: { allow: ["127.0.0.1"] } },
    });
    const make = async (label: string, base_url: string, more: object = {}) =>
      (
        await room.owner.post("/connections", {
          kind: "openai_compatible",
          label,
          base_url,
          model: "m",
          credential: "k",
          ...more,
        })
      ).body;
    const second = await make("Second", other.base_url);
    const first = await make("First", room.model.base_url, { fallback_connection_id: second.id });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    const before = [room.model.requests.length, other.requests.length] as const;
    await room.send({ text: "Say hello" });
    await room.drain();
    expect((await room.activity())[0]).toMatchObject({ rules: ["Q0", "Q1"], status: "done" });
    // One question, and the message itself.
    expect(room.model.requests.length - before[0]).toBe(2);
    expect(other.requests.length - before[1]).toBe(3);
  });

  test("is asked again where the model never answers, and its fallback fails for the moment", async () => {
    const says = [busy(), "Yes.", "Done."];
    await using other = startModelServer({ reply: () => says.shift() ?? "" });
    await using room = await roomAsking(["Is it one?"], {
      model: { fault: "unauthorized" },
      config: { egress: { allow: ["127.0.0.1"] } },
    });
    const model = { kind: "openai_compatible", model: "m", credential: "k" };
    const { body: second } = await room.owner.post("/connections", { ...model, base_url: other.base_url });
    const { body: first } = await room.owner.post("/connections", {
      ...model,
      base_url: room.model.base_url,
      fallback_connection_id: second.id,
    });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    await room.send({ text: "Say hello" });
    await drainLater(room);
    expect((await room.activity())[0]).toMatchObject({ rules: ["Q0"], status: "done" });
  });

  test("shares one time with all others; what is answered by then is kept, and never asked again", async () => {
    const questions = Array.from({ length: 10 }, (_, at) => `Is it ${at}?`);
    await using room = await roomAsking(questions, {
      model: {
        reply: async ({ messages }) => {
          const asked = JSON.stringify(messages);
          if (!asked.includes("one question")) return "Done.";
          if (!/Is it [012]\?/.test(asked)) await Bun.sleep(10_000);
          return "yes";
        },
      },
      config: { routing: { hard_cap_seconds: 12, sync_budget_seconds: 1 } },
    });
    await room.send({ text: "Say hello" });
    await room.drain();
    const row = await room.newest();
    expect(row).toMatchObject({ state: "done", result: "Done." });
    expect((await room.activity())[0].rules).toEqual(["Q0", "Q1", "Q2"]);
    expect(row.steps.split("the questions of all rules had taken too long").length - 1).toBe(7);
    expect(room.model.requests.length).toBe(5);
  });

  test("is noted as soon as it is answered, so that a run that begins anew does not ask it again", async () => {
    let asked = 0;
    await using room = await roomAsking(["Is it one?", "Is it two?"], {
      model: {
        reply: async () => {
          asked += 1;
          if (asked === 2) noted = (await room.newest()).rules;
          return "no";
        },
      },
    });
    let noted = "";
    await room.send({ text: "Say hello" });
    await room.drain();
    expect(Object.values(JSON.parse(noted).answers)).toEqual([false]);
  });
});
