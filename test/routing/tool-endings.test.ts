import { describe, expect, test } from "bun:test";
import { call } from "../support/commands.ts";
import { unfolded } from "../support/mails.ts";
import { toolCalls } from "../support/model-server.ts";
import { CREATE, create, EVENTS, list, toolRoom, type ToolRoom, type Wanted } from "../support/tool-room.ts";
import { startToolServer } from "../support/tool-server.ts";

const LOOPBACK = { egress: { allow: ["127.0.0.1"] } };
const down = () => Response.json({ error: { message: "down" } }, { status: 503 });
const refusing = (message: string) => () => Response.json({ error: { message } }, { status: 400 });
const noted = (room: ToolRoom) => room.app.db.selectFrom("tool_calls").selectAll().execute();
const stepsOf = async (room: ToolRoom) => JSON.parse((await room.newest()).steps);
const offersIn = (room: ToolRoom) =>
  room.model.requests.map(({ body }) => body?.tools?.map((tool) => tool.function.name) ?? []);

describe("a run that is ended in the middle of its calls", () => {
  test("tells of every one what became of it, blames no model, and costs nothing", async () => {
    let count = 0;
    const run = () => (++count === 1 ? "created 1" : new Promise(() => undefined));
    await using room = await toolRoom([[create({ n: 1 }), create({ n: 2 }), create({ n: 3 })]], {
      config: { ...LOOPBACK, routing: { hard_cap_seconds: 1, sync_budget_seconds: 1 } },
      served: [{ ...CREATE, run }],
    });
    await room.send({ text: "@calendar Make three" });
    await room.drain();
    const { state, reason, error, credits_charged } = await room.newest();
    expect({ state, reason, credits_charged }).toEqual({
      state: "failed",
      reason: "timeout",
      credits_charged: 0,
    });
    expect(error).toStartWith("The run was ended before its tools had answered");
    expect(await stepsOf(room)).toMatchObject([
      { status: "ok", output: "created 1" },
      { status: "error", output: expect.stringContaining("may or may not have been done") },
      { status: "error", output: "Not called: the run was ended before." },
    ]);
    expect(count).toBe(2);
    // For whoever does the work again.
    const outcomes = (await noted(room)).map(({ outcome }) => JSON.parse(outcome ?? ""));
    expect(outcomes).toMatchObject([
      { ok: true, text: "created 1" },
      { ok: false, unknown: true },
    ]);
    const [notice] = await room.outgoing();
    expect(unfolded(notice?.raw?.toString())).toContain("what they changed stays so");
  });

  test("changes nothing more once its inbox is deleted", async () => {
    await using room = await toolRoom([
      [create({ n: 1 })],
      async () => {
        await room.owner.delete(`/inboxes/${room.inbox.id}`);
        return [create({ n: 2 })];
      },
    ]);
    await call(room, "@calendar Make two");
    expect(room.tools.calls).toHaveLength(1);
    expect(await stepsOf(room)).toMatchObject([
      { status: "ok" },
      { status: "error", output: "Not called: the inbox of this message has been deleted meanwhile." },
    ]);
    expect(await noted(room)).toEqual([]);
  });

  test("ends with its account, and leaves nothing", async () => {
    await using room = await toolRoom([
      async () => {
        await room.app.write((tx) => tx.deleteFrom("users").execute());
        return [create()];
      },
    ]);
    await room.send({ text: "@calendar Make one" });
    await room.drain();
    expect(room.tools.calls).toEqual([]);
    expect(await noted(room)).toEqual([]);
  });

  test("notes no call that was not made, for when the server goes on", async () => {
    const hanging = Promise.withResolvers<void>();
    const run = () => {
      hanging.resolve();
      return new Promise(() => undefined);
    };
    await using room = await toolRoom([[create({ n: 1 }), create({ n: 2 })]], {
      served: [{ ...CREATE, run }],
    });
    await room.send({ text: "@calendar Make two" });
    const { runNow } = await import("../../src/pipeline/run.ts");
    const { claimPending } = await import("../../src/jobs/claim.ts");
    const { createUses } = await import("../../src/jobs/shares.ts");
    const { createTurns } = await import("../../src/jobs/turns.ts");
    const { createKeptMemory } = await import("../../src/jobs/kept-memory.ts");
    const uses = createUses();
    const { jobs } = await room.app.write((tx) =>
      claimPending(tx, "route_message", {
        now: room.app.now(),
        leaseEnd: room.app.steadyAfter,
        limit: 1,
        free: 1,
        room: { slots: 1, bytes: Number.POSITIVE_INFINITY, target_slots: 1 },
        uses,
        turns: createTurns(),
        kept: createKeptMemory(uses),
      }),
    );
    const stop = new AbortController();
    const stopping = new Error("The server is stopping");
    const ended = runNow(room.app, jobs[0] as never, stop.signal).catch((error: unknown) => error);
    await hanging.promise;
    stop.abort(stopping);
    expect(await ended).toBe(stopping);
    const [first, ...others] = await noted(room);
    expect(JSON.parse(first?.outcome ?? "")).toMatchObject({ unknown: true, step: { arguments: { n: 1 } } });
    expect(others).toEqual([]);
  });
});

describe("a run that is done again", () => {
  test("tells of what its first try did, also if it fails before it asks for it again", async () => {
    await using room = await toolRoom([[create()], down, refusing("no")]);
    await room.send({ text: "@calendar Make one" });
    await room.drain();
    room.clock.advance("10s");
    await room.drain();
    expect((await room.newest()).state).toBe("failed");
    expect(await stepsOf(room)).toMatchObject([
      {
        type: "tool_call",
        server: "mcp:calendar",
        name: "create_event",
        arguments: { title: "Lunch" },
        status: "ok",
        output: "In an earlier try: created 7",
      },
    ]);
    expect(await noted(room)).toHaveLength(1);
    const [notice] = await room.outgoing();
    expect(unfolded(notice?.raw?.toString())).toContain("what they changed stays so");
  });

  test("tells of it once, and of the files that were lost with it", async () => {
    const file = { uri: "file:///plan.txt", mimeType: "text/plain", blob: btoa("plan") };
    const run = () => ({ content: [{ type: "resource", resource: file }] });
    await using room = await toolRoom([[create()], down, [create()]], { served: [{ ...CREATE, run }] });
    await room.send({ text: "@calendar Make one" });
    await room.drain();
    room.clock.advance("10s");
    await room.drain();
    expect((await room.newest()).state).toBe("done");
    expect(room.tools.calls).toHaveLength(1);
    const steps = await stepsOf(room);
    expect(steps.filter(({ type }: { type: string }) => type === "tool_call")).toHaveLength(1);
    expect(steps).toContainEqual(
      expect.objectContaining({ type: "warning", output: "plan.txt was made in an earlier try, and lost." }),
    );
  });
});

describe("what a model is told of its own calls", () => {
  test("is what every interface takes, whatever it called", async () => {
    const odd: Wanted[] = [
      { name: "ünï cödé ".repeat(20), args: "{bad" },
      { name: "calendar__list_events", args: "" },
      { name: "", args: "[1]" },
    ];
    await using room = await toolRoom([odd]);
    const done = await call(room, "What is on?");
    expect(done.status).toBe("done");
    const said = room.model.requests[1]?.body?.messages.find(({ tool_calls }) => tool_calls);
    for (const { function: asked } of said?.tool_calls ?? []) {
      expect(asked.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(asked.arguments).toBe("{}");
    }
    expect(said?.tool_calls).toHaveLength(3);
  });

  test("has ids of its own once the fallback has taken over", async () => {
    await using room = await toolRoom([[list("Monday")], down, [list("Friday")]]);
    const connections = ["first", "second"].map((label) => ({
      kind: "openai_compatible",
      label,
      base_url: room.model.base_url,
      model: label,
    }));
    const { body: second } = await room.owner.post("/connections", connections[1]);
    const { body: first } = await room.owner.post("/connections", {
      ...connections[0],
      fallback_connection_id: second.id,
    });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    const done = await call(room, "What is on?");
    expect(done.status).toBe("done");
    expect(room.tools.calls.map(({ args }) => args["day"])).toEqual(["Monday", "Friday"]);
    expect(room.model.requests.map(({ body }) => body?.model)).toEqual([
      "first",
      "first",
      "second",
      "second",
    ]);
    const last = room.model.requests.at(-1)?.body?.messages ?? [];
    const ids = last.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
    expect(ids).toEqual(["call00000", "call00001"]);
    expect(last.flatMap(({ tool_call_id = [] }) => tool_call_id)).toEqual(ids);
  });

  test("is not gone on with by the fallback once a tool may have changed something", async () => {
    await using room = await toolRoom([[create()], down, "Done."]);
    const model = { kind: "openai_compatible", base_url: room.model.base_url };
    const { body: second } = await room.owner.post("/connections", { ...model, model: "second" });
    const { body: first } = await room.owner.post("/connections", {
      ...model,
      model: "first",
      fallback_connection_ids: [second.id],
    });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.id });
    await room.send({ text: "@calendar Make one" });
    await room.drain();
    room.clock.advance("10s");
    await room.drain();
    expect((await room.newest()).state).toBe("done");
    expect(room.tools.calls).toHaveLength(1);
    expect(room.model.requests.map(({ body }) => body?.model)).toEqual(["first", "first", "first"]);
  });

  test("has with it what the provider wants back, but the fallback gets nothing of that", async () => {
    const extra_content = { google: { thought_signature: "c2ln" } };
    const signed = async () => {
      const answer = await toolCalls([list()]).text();
      const mark = `,"extra_content":${JSON.stringify(extra_content)}`;
      return new Response(answer.replace('"id":"call_0"', `"id":"call_0"${mark}`));
    };
    await using room = await toolRoom([signed, down]);
    const model = { kind: "openai_compatible", base_url: room.model.base_url, model: "m" };
    const { body: second } = await room.owner.post("/connections", model);
    const first = await room.owner.post("/connections", { ...model, fallback_connection_id: second.id });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: first.body.id });
    await call(room, "What is on?");
    const told = room.model.requests.map(({ body }) => JSON.stringify(body?.messages).includes("c2ln"));
    expect(told).toEqual([false, true, false]);
    expect(room.model.requests[1]?.body?.messages.at(-2)?.tool_calls?.[0]).toMatchObject({ extra_content });
  });

  test("comes with the tools at the very end too, where an interface insists", async () => {
    const words = "This provider doesn't support tool calling without `tools=` param specified";
    await using room = await toolRoom([[list()], refusing(words), "Enough."], {
      config: { ...LOOPBACK, routing: { max_tool_rounds: 1 } },
    });
    expect(await call(room, "What is on?")).toMatchObject({ status: "done", result: "Enough." });
    expect(offersIn(room).map(({ length }) => length)).toEqual([4, 0, 4]);
  });

  test("holds no more than 400,000 characters of results", async () => {
    const rounds = Array.from({ length: 10 }, () => [list()]);
    await using room = await toolRoom(rounds, { served: [{ ...EVENTS, run: () => "x".repeat(60_000) }] });
    await call(room, "What is on?");
    const results = room.model.requests.at(-1)?.body?.messages.filter(({ role }) => role === "tool") ?? [];
    expect(results).toHaveLength(10);
    expect(results.at(-1)?.content.length).toBeLessThan(200);
    expect(results.reduce((sum, { content }) => sum + content.length, 0)).toBeLessThan(401_000);
  });

  test("an answer that stands beside the last calls is the answer, if there is no other", async () => {
    await using room = await toolRoom([() => toolCalls([create()], "I made it."), ""]);
    expect(await call(room, "@calendar Make one")).toMatchObject({ status: "done", result: "I made it." });
    expect(room.tools.calls).toHaveLength(1);
  });
});

describe("what a model is offered", () => {
  test("has different names, also where a server is called like something of ours", async () => {
    const clash = "create_file";
    await using room = await toolRoom([[{ name: `files__${clash}`, args: { a: 1 } }]], {
      label: "Files",
      served: [{ name: clash, annotations: { readOnlyHint: true } }],
    });
    await call(room, "Make one");
    const [names = []] = offersIn(room);
    expect(names).toHaveLength(2);
    expect(new Set(names).size).toBe(2);
  });

  test("is 128 tools at most, ours included", async () => {
    const served = Array.from({ length: 150 }, (_, index) => ({ name: `tool_${index}` }));
    await using room = await toolRoom([], { served });
    const done = await call(room, "Hello");
    expect(offersIn(room)[0]).toHaveLength(128);
    expect(offersIn(room)[0]).toContain("files__create_file");
    expect(done.steps[0].output).toStartWith("23 tools were left out");
  });

  test("is offered again next time, if only these tools were refused", async () => {
    const words = "Invalid schema for function 'calendar__create_event': no such format is supported";
    await using room = await toolRoom([refusing(words)]);
    const first = await call(room, "Hello");
    expect(first).toMatchObject({ status: "done" });
    expect(first.steps[0].output).toContain(words);
    await call(room, "And now?");
    expect(offersIn(room).map(({ length }) => length)).toEqual([4, 0, 4]);
  });
});

test("servers of one label have names of their own, whatever the others are called", async () => {
  await using room = await toolRoom([]);
  await using other = startToolServer([EVENTS]);
  const ids = [room.connection.id];
  for (const label of ["Calendar", "Calendar 2", "Calendar"]) {
    const made = await room.owner.post("/connections", { kind: "mcp", label, base_url: other.url });
    ids.push(made.body.id);
  }
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { mcp_connection_ids: ids });
  const { error } = await call(room, "@nothing");
  expect(error).toContain("@mcp:calendar, @mcp:calendar-2, @mcp:calendar-2-2, @mcp:calendar-3.");
});

test("a step shows no secret and no more than 1 KB, also of a call that was not made", async () => {
  const key = `sk-${"a1B2".repeat(8)}`;
  const schema = { type: "object", properties: { url: { type: "string" } }, additionalProperties: false };
  await using room = await toolRoom(
    [
      [
        { name: "calendar__list_events", args: { ["x".repeat(100_000)]: 1 } },
        { name: "calendar__list_events", args: { url: `https://eve.example/?k=${key}` } },
      ],
    ],
    { served: [{ ...EVENTS, inputSchema: schema }] },
  );
  const { steps } = await call(room, "What is on?");
  expect(steps.map(({ status }: { status: string }) => status)).toEqual(["error", "blocked", "ok"]);
  for (const { output } of steps) expect(Buffer.byteLength(output)).toBeLessThanOrEqual(1_024);
  expect(JSON.stringify(steps)).not.toContain(key);
});

test("arguments named like members of every object are arguments", async () => {
  const args = '{"__proto__":{"x":1},"constructor":{"prototype":{"y":2}}}';
  await using room = await toolRoom([[{ name: "calendar__create_event", args }]]);
  const done = await call(room, "@calendar Make one");
  expect(JSON.stringify(room.tools.calls[0]?.args)).toBe(args);
  expect(JSON.stringify(done.steps[0].arguments)).toBe(args);
  expect(Object.keys(Object.prototype)).toEqual([]);
});

describe("a tool that says of itself that a call failed", () => {
  const fails = { isError: true, content: [{ type: "text", text: "The disk is full" }] };
  const one = (args: object) => create({ ...args });
  test.each<[string, Wanted[][], boolean]>([
    ["alone", [[one({ n: 1 })]], true],
    ["before another one in the same round", [[one({ n: 1 }), one({ n: 2 })]], true],
    ["after another one", [[one({ n: 2 })], [one({ n: 1 })]], true],
    ["before one that the model makes instead", [[one({ n: 1 })], [one({ n: 2 })]], false],
    ["and only reads", [[list()]], false],
  ])("%s is told of, whatever the model says: %#", async (_how, rounds, told) => {
    const run = ({ n }: Record<string, unknown>) => (n === 2 ? "created 2" : fails);
    await using room = await toolRoom([...rounds, "All is done."], {
      served: [
        { ...CREATE, run },
        { ...EVENTS, run: () => fails },
      ],
    });
    await room.send({ text: "@calendar Make them" });
    await room.drain();
    expect((await room.newest()).state).toBe("done");
    const [answer] = await room.outgoing();
    const mail = unfolded(String(answer?.raw).replaceAll("=\r\n", ""));
    const words = "mcp:calendar create_event failed: The disk is full";
    if (told) expect(mail).toContain(words);
    else expect(mail).not.toContain("failed");
    const steps = (await stepsOf(room)) as { type: string; output: string }[];
    expect(steps.filter(({ type }) => type === "warning").map(({ output }) => output)).toEqual(
      told ? [words] : [],
    );
  });

  test("has the addresses that it names readable in the answer", async () => {
    const said = "ECONNREFUSED 10.0.0.5:5432, see https://docs.example.net/a";
    const broken = () => ({ isError: true, content: [{ type: "text", text: said }] });
    await using room = await toolRoom([[list()], `It failed: ${said}`], {
      served: [{ ...EVENTS, run: broken }],
    });
    await room.send({ text: "@calendar What is on today?" });
    await room.drain();
    const [answer] = await room.outgoing();
    const mail = unfolded(String(answer?.raw).replaceAll("=\r\n", ""));
    for (const address of ["10.0.0.5:5432", "https://docs.example.net/a"]) expect(mail).toContain(address);
    expect(mail).not.toContain("(link left out)");
  });
});
