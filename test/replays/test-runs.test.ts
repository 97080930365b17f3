import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { recountStorage, storedBytes } from "../../src/db/account-storage.ts";
import { freshId, type Mailroom, mailroom } from "../support/mailroom.ts";
import type { ModelRequestBody } from "../support/model-server.ts";
import { pass, purge } from "../support/purge.ts";

let room: Mailroom;
let answer: (body: ModelRequestBody) => string | Response;
let mails = 0;

beforeAll(async () => {
  room = await mailroom({
    config: { llm: { models: ["other"] }, egress: { allow: ["127.0.0.1"] } },
    model: { reply: (body) => answer(body), models: ["stand-in", "other"] },
  });
});
beforeEach(async () => {
  answer = () => "Lunch is at noon.";
  await room.app.db.deleteFrom("starred_messages").execute();
  await room.app.db.deleteFrom("test_runs").execute();
});
afterAll(() => room[Symbol.asyncDispose]());

/** A message of the owner's by mail, done, and starred if that is said. */
async function mailed(expected?: object, text = "When is lunch?"): Promise<{ id: string }> {
  expect(await room.send({ subject: `Question ${(mails += 1)}`, text, ...freshId() })).toStartWith("250");
  await room.drain();
  const message = await room.newest();
  if (expected !== undefined) await star(message.id, expected);
  return message;
}

async function star(id: string, expected: object | null) {
  const answered = await room.owner.patch(`/messages/${id}`, { expected });
  expect([answered.status, answered.body.expected]).toEqual([200, expected]);
}

const credits = async (): Promise<number> => (await room.owner.get("/auth/me")).body.credits.used;

/** Runs the test set to its end, and returns its table. */
async function run(asked: object = {}) {
  const { status, body, headers } = await room.owner.post("/v1/test-runs", asked);
  expect([status, body.status, headers.get("location")]).toEqual([
    202,
    "processing",
    `/v1/test-runs/${body.id}`,
  ]);
  await room.drain();
  return read(body.id);
}

async function read(id: string) {
  const { status, body } = await room.owner.get(`/v1/test-runs/${id}`);
  expect(status).toBe(200);
  return body;
}

/** What one message comes to that should be answered so, and is answered so. */
async function verdict(expected: object, said: string) {
  answer = () => "Before.";
  await mailed(expected);
  answer = () => said;
  const { items } = await run();
  expect(items).toHaveLength(1);
  const { status, why } = items[0];
  return [status, why];
}

const SCHEMA = {
  type: "object",
  properties: { total: { type: "number" } },
  required: ["total"],
  additionalProperties: false,
};

describe("an answer", () => {
  test.each<[string, object, string]>([
    ["with other blanks", { equals: " Lunch is\nat noon. " }, "Lunch  is at\n\nnoon.\n"],
    ["with the words in it", { contains: "at\nnoon" }, "I think it is at noon, in the garden."],
    ["in another form of its letters", { equals: "Café" }, "Cafe\u0301"],
    ["that fits the schema", { schema: SCHEMA }, '{"total": 4.5}'],
    ["that fits it as the only block of code", { schema: SCHEMA }, 'Here:\n\n```json\n{"total": 4}\n```\n'],
  ])("%s passes", async (_what, expected, said) => {
    expect(await verdict(expected, said)).toEqual(["passed", null]);
  });

  test.each<[string, object, string, string]>([
    [
      "other words",
      { equals: "We meet for lunch at noon." },
      "We meet for lunch at one.",
      "Expected “…meet for lunch at noon.”, but it says “…meet for lunch at one.”.",
    ],
    ["less", { equals: "At noon." }, "At", "Expected “At noon.”, but it says “At”."],
    ["without the words", { contains: "noon" }, "At one.", "It does not contain “noon”."],
    ["in other capitals", { contains: "Noon" }, "At noon.", "It does not contain “Noon”."],
    ["no JSON", { schema: SCHEMA }, "Four.", "It is not JSON, or has too many parts."],
    [
      "of another type",
      { schema: SCHEMA },
      '{"total": "four"}',
      "It does not fit the schema: /total must be number.",
    ],
    [
      "with more members",
      { schema: SCHEMA },
      '{"total": 4, "tax": 1}',
      'It does not fit the schema: the answer may not have "tax".',
    ],
    [
      "too large to be checked",
      { schema: { type: "array", items: { anyOf: ["number", "string", "null"].map((type) => ({ type })) } } },
      JSON.stringify(Array.from({ length: 40_000 }, (_, at) => at)),
      "It does not fit the schema: it is too large to be checked.",
    ],
  ])("%s fails, and says what differs", async (_what, expected, said, why) => {
    expect(await verdict(expected, said)).toEqual(["failed", why]);
  });
});

describe("what an answer should be", () => {
  test.each<[string, object, string]>([
    ["nothing", {}, "Say one of"],
    ["two of them", { equals: "a", contains: "a" }, "Say one of"],
    ["no words", { equals: " \n " }, "Every answer would fit"],
    ["too long", { contains: "a".repeat(20_001) }, "At most 20,000 characters"],
    ["a pattern", { schema: { type: "string", pattern: "a" } }, "`pattern` is not checked here"],
    ["of one of several", { schema: { oneOf: [{}, {}] } }, "`oneOf` is not checked here"],
    ["no schema", { schema: { type: "strnig" } }, "An answer cannot be checked by this schema"],
    ["a broken reference", { schema: { $ref: "#/$defs/x" } }, "The reference leads nowhere"],
    ["endless", { schema: { $ref: "#" } }, "An answer cannot be checked by this schema"],
    [
      "of too many nodes",
      { schema: { allOf: Array.from({ length: 700 }, () => ({})) } },
      "The schema is too large",
    ],
  ])("that is %s is refused, in words", async (_what, expected, words) => {
    const { id } = await mailed();
    const { status, body } = await room.owner.patch(`/messages/${id}`, { expected });
    expect(status).toBe(422);
    expect(body.detail).toContain(words);
    expect((await room.owner.get("/v1/test-set")).body).toEqual([]);
  });

  test("is listed with its message, replaced, and taken away", async () => {
    const { id } = await mailed({ contains: "noon" });
    const listed = async () => (await room.owner.get("/v1/test-set")).body;
    expect(await listed()).toMatchObject([
      {
        message_id: id,
        inbox_id: room.inbox.id,
        instruction: "When is lunch?",
        expected: { contains: "noon" },
      },
    ]);
    await star(id, { equals: "Noon." });
    expect(await listed()).toMatchObject([{ message_id: id, expected: { equals: "Noon." } }]);
    expect((await room.owner.patch(`/messages/${id}`, { tags: ["q3"] })).body.expected).toEqual({
      equals: "Noon.",
    });
    await star(id, null);
    await star(id, null);
    expect(await listed()).toEqual([]);
  });

  test("stands only with a message that can be run again", async () => {
    const { id } = await mailed(undefined, "--every=monday\nGreet me.");
    const { status, body } = await room.owner.patch(`/messages/${id}`, { expected: { contains: "a" } });
    expect([status, body.detail]).toEqual([409, "No model was asked about this message."]);
    await room.app.db.deleteFrom("schedules").execute();
  });

  test("is one thing of two that a change may name", async () => {
    const { id } = await mailed();
    const none = await room.owner.patch(`/messages/${id}`, {});
    expect([none.status, none.body.detail]).toEqual([
      422,
      "There is nothing to change: give `tags`, `expected`, or both.",
    ]);
    const both = { tags: ["q3"], expected: { contains: "noon" } };
    expect((await room.owner.patch(`/messages/${id}`, both)).body).toMatchObject(both);
    const bad = await room.owner.patch(`/messages/${id}`, { tags: ["two words"], expected: null });
    expect(bad.status).toBe(422);
    expect((await room.owner.get(`/messages/${id}`)).body).toMatchObject(both);
  });
});

describe("a run of the test set", () => {
  test("is a table of what became of each, with sums, and changes nothing else", async () => {
    const good = await mailed({ contains: "noon" });
    const bad = await mailed({ equals: "At one." });
    await mailed();
    const before = (await room.owner.get(`/messages/${good.id}`)).body;
    const [sent, spent] = [await room.outgoing(), await credits()];
    answer = ({ model }) => `At noon, says ${model}.`;
    const table = await run({ model: "other" });
    expect(table).toMatchObject({
      status: "done",
      asked: { connection_id: null, model: "other", contexts: "then", context_versions: {}, tag: null },
      messages: 2,
      processing: 0,
      passed: 1,
      failed: 1,
      errors: 0,
      completed: expect.any(Number),
    });
    const [one, two] = structuredClone(table.items);
    expect(table.items).toMatchObject([
      {
        message_id: good.id,
        instruction: "When is lunch?",
        expected: { contains: "noon" },
        answer_before: "Lunch is at noon.",
        answer: "At noon, says other.",
        status: "passed",
        why: null,
        model: "other",
        duration_ms: expect.any(Number),
      },
      {
        message_id: bad.id,
        status: "failed",
        why: "Expected “At one.”, but it says “At noon, says other.”.",
      },
    ]);
    expect(table.usage).toEqual({
      input_tokens: one.usage.input_tokens + two.usage.input_tokens,
      output_tokens: one.usage.output_tokens + two.usage.output_tokens,
    });
    expect(table.duration_ms).toBe(one.duration_ms + two.duration_ms);
    expect(await credits()).toBe(spent + 2);
    expect((await room.owner.get(`/messages/${good.id}`)).body).toEqual(before);
    expect(await room.outgoing()).toEqual(sent);
    const { items: _, ...card } = table;
    expect((await room.owner.get("/v1/test-runs")).body).toEqual([card]);
    const whole = await room.owner.get(`/messages/${good.id}/replays/${one.replay_id}`);
    expect(whole.body).toMatchObject({ result: "At noon, says other.", test_run_id: table.id });
    expect((await room.owner.get(`/messages/${good.id}/replays`)).body).toEqual([]);
  });

  test("keeps what was expected then", async () => {
    const { id } = await mailed({ contains: "noon" });
    const { id: test_run_id } = await run();
    await star(id, { contains: "midnight" });
    expect((await read(test_run_id)).items).toMatchObject([
      { expected: { contains: "noon" }, status: "passed" },
    ]);
    await star(id, null);
    expect((await read(test_run_id)).items).toHaveLength(1);
  });

  test("with other words asks these of each message, with what it came with as material", async () => {
    const { body } = await room.owner.post("/v1/messages", {
      instruction: "When is lunch?",
      content: "Soup is served at noon.",
    });
    await star(body.message_id, { contains: "noon" });
    let asked = "";
    answer = ({ messages }) => {
      asked = JSON.stringify(messages);
      return "At noon.";
    };
    const table = await run({ instruction: "Name the hour in one word." });
    expect(table).toMatchObject({ passed: 1, asked: { instruction: "Name the hour in one word." } });
    expect(asked).toContain("Name the hour in one word.");
    expect(asked).toContain("Soup is served at noon.");
    expect(asked).not.toContain("When is lunch?");
  });

  test("of a tag runs those alone that have it", async () => {
    await mailed({ contains: "noon" });
    const { id } = await mailed({ contains: "noon" });
    await room.owner.patch(`/messages/${id}`, { tags: ["Q3"] });
    const table = await run({ tag: "#q3" });
    expect(table.asked.tag).toBe("#q3");
    expect(table.items).toMatchObject([{ message_id: id }]);
    const none = await room.owner.post("/v1/test-runs", { tag: "q4" });
    expect([none.status, none.body.detail]).toEqual([
      409,
      "The part of the test set with this tag has no messages.",
    ]);
  });

  test("tells an error where there is no answer, beside the others, and that costs nothing", async () => {
    const lost = await mailed({ contains: "noon" });
    await mailed({ contains: "noon" });
    await room.app.db.deleteFrom("message_contents").where("message_id", "=", lost.id).execute();
    const { raw_mail_id } = await room.app.db
      .selectFrom("messages")
      .select("raw_mail_id")
      .where("id", "=", lost.id)
      .executeTakeFirstOrThrow();
    await room.app.db
      .updateTable("raw_mails")
      .set({ bytes: null, purged_at: room.app.now() })
      .where("id", "=", raw_mail_id ?? "")
      .execute();
    const spent = await credits();
    const table = await run();
    expect(table).toMatchObject({ messages: 2, passed: 1, failed: 0, errors: 1 });
    expect(table.items).toMatchObject([
      {
        message_id: lost.id,
        status: "error",
        answer: null,
        why: "What this message was about has been deleted, as it is kept for a limited time only. Send it again.",
      },
      { status: "passed" },
    ]);
    expect(await credits()).toBe(spent + 1);
  });

  test("tells why a model did not answer", async () => {
    await mailed({ contains: "noon" });
    const spent = await credits();
    const table = await run({ model: "gone" });
    expect(table).toMatchObject({ errors: 1, passed: 0, failed: 0 });
    expect(table.items[0]).toMatchObject({ status: "error", usage: null });
    expect(table.items[0].why).toContain('"gone"');
    expect(await credits()).toBe(spent);
  });

  test("tells that what was expected cannot be read any more, instead of a verdict", async () => {
    await mailed({ contains: "noon" });
    await room.app.db.updateTable("starred_messages").set({ expected: "{" }).execute();
    const table = await run();
    expect(table).toMatchObject({ errors: 1, passed: 0, failed: 0 });
    const why = "What was expected cannot be read any more.";
    expect(table.items).toMatchObject([
      { status: "error", expected: null, answer: "Lunch is at noon.", why },
    ]);
  });

  test("is one at a time, and is deleted with what is still to come of it", async () => {
    await mailed({ contains: "noon" });
    const spent = await credits();
    const { body } = await room.owner.post("/v1/test-runs", {});
    expect(body).toMatchObject({ status: "processing", processing: 1, completed: null });
    const second = await room.owner.post("/v1/test-runs", {});
    expect([second.status, second.body.detail]).toEqual([409, "The test set is being run already."]);
    expect(second.body.fix).toContain(`DELETE /v1/test-runs/${body.id}`);
    expect((await room.owner.delete(`/v1/test-runs/${body.id}`)).status).toBe(204);
    await room.drain();
    expect((await room.owner.get(`/v1/test-runs/${body.id}`)).status).toBe(404);
    expect(
      await room.app.db.selectFrom("replays").select("id").where("test_run_id", "=", body.id).execute(),
    ).toEqual([]);
    expect(await credits()).toBe(spent);
    expect((await run()).passed).toBe(1);
  });

  test("ends with the key that has asked for it, and costs nothing then", async () => {
    await mailed({ contains: "noon" });
    const { body: key } = await room.owner.post("/auth/api-key", {});
    const spent = await credits();
    const { status, body } = await room.request("/v1/test-runs", {
      method: "POST",
      headers: { "x-api-key": key.key },
    });
    expect(status).toBe(202);
    expect((await room.owner.delete(`/auth/api-keys/${key.id}`)).status).toBe(204);
    await room.drain();
    const { items } = await read(body.id);
    expect(items).toMatchObject([{ status: "error", answer: null }]);
    expect(items[0].why).toContain("key");
    expect(await credits()).toBe(spent);
  });

  test("is begun once where it is asked for twice at the same time", async () => {
    await mailed({ contains: "noon" });
    const both = await Promise.all([1, 2].map(() => room.owner.post("/v1/test-runs", {})));
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    await room.drain();
    expect((await room.owner.get("/v1/test-runs")).body).toMatchObject([{ status: "done", passed: 1 }]);
  });

  test("has no more than 50 messages, and no more than 20 are kept", async () => {
    const none = await room.owner.post("/v1/test-runs", {});
    expect([none.status, none.body.detail]).toEqual([409, "The test set has no messages."]);
    const { id } = await mailed({ contains: "noon" });
    const { user_id } = await room.app.db
      .selectFrom("messages")
      .select("user_id")
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const created = room.app.now();
    const runs = Array.from({ length: 20 }, () => ({ id: room.app.newId(), user_id, asked: "{}", created }));
    await room.app.db.insertInto("test_runs").values(runs).execute();
    const many = await room.owner.post("/v1/test-runs", {});
    expect([many.status, many.body.detail]).toEqual([409, "20 runs of the test set are kept already."]);
    await room.app.db.deleteFrom("test_runs").execute();
    const row = await room.app.db
      .selectFrom("messages")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    const others = Array.from({ length: 50 }, () => ({ ...row, id: room.app.newId(), dedupe_key: null }));
    for (const other of others) await room.app.db.insertInto("messages").values(other).execute();
    const stars = others.map((other) => ({
      message_id: other.id,
      user_id,
      expected: '{"contains":"a"}',
      created,
    }));
    await room.app.db.insertInto("starred_messages").values(stars).execute();
    const full = await room.owner.post("/v1/test-runs", {});
    expect([full.status, full.body.detail]).toEqual([
      409,
      "The test set has 51 messages, and a run at most 50.",
    ]);
    expect(full.body.fix).toContain("`tag`");
    for (const other of others) await room.app.db.deleteFrom("messages").where("id", "=", other.id).execute();
    expect((await room.owner.get("/v1/test-set")).body).toHaveLength(1);
  });

  test("is nobody else's", async () => {
    const { id } = await mailed({ contains: "noon" });
    const { id: test_run_id } = await run();
    const eve = await room.as("eve@example.com");
    expect((await eve.get("/v1/test-set")).body).toEqual([]);
    expect((await eve.get("/v1/test-runs")).body).toEqual([]);
    for (const answered of [
      await eve.get(`/v1/test-runs/${test_run_id}`),
      await eve.delete(`/v1/test-runs/${test_run_id}`),
      await eve.patch(`/messages/${id}`, { expected: null }),
      await eve.patch(`/messages/${id}`, { expected: { contains: "x" } }),
    ])
      expect(answered.status).toBe(404);
    const foreign = await room.owner.post("/v1/test-runs", { connection_id: Bun.randomUUIDv7() });
    expect([foreign.status, foreign.body.errors?.[0]?.path]).toEqual([422, "body.connection_id"]);
    expect((await room.owner.get("/v1/test-set")).body).toHaveLength(1);
  });

  test("goes with its messages, and counts as stored while it is there", async () => {
    const counted = async () =>
      (await storedBytes(room.app.db, { user_id: room.owner.user.id }))[0]?.bytes ?? 0;
    const bytes = async () => {
      const kept = await counted();
      await recountStorage(room.app, room.owner.user.id);
      expect(await counted()).toBe(kept);
      return kept;
    };
    const { id } = await mailed({ contains: "midnight" });
    const before = await bytes();
    await star(id, { contains: "twelve o'clock at night" });
    expect(await bytes()).toBeGreaterThan(before);
    const { id: test_run_id } = await run();
    expect(await bytes()).toBeGreaterThan(before);
    expect((await room.owner.delete(`/messages/${id}`)).status).toBe(204);
    expect(await read(test_run_id)).toMatchObject({ messages: 0, items: [] });
    expect((await room.owner.get("/v1/test-set")).body).toEqual([]);
    room.clock.advance("1h");
    await room.drain();
    expect(
      await room.app.db.selectFrom("replays").select("id").where("test_run_id", "=", test_run_id).execute(),
    ).toEqual([]);
    expect(await room.app.db.selectFrom("starred_messages").selectAll().execute()).toEqual([]);
    await bytes();
  });
});

test("without the credits for all of it, no message of the test set is run", async () => {
  await using poor = await mailroom({
    config: { plans: { team: { credits: 4 } } },
    model: { reply: () => "At noon." },
  });
  for (const _ of [1, 2, 3]) {
    const { body } = await poor.owner.post("/v1/messages", { instruction: "When is lunch?" });
    await poor.owner.patch(`/messages/${body.message_id}`, { expected: { contains: "noon" } });
  }
  const { status, body } = await poor.owner.post("/v1/test-runs", {});
  expect([status, body.code, body.detail]).toEqual([
    403,
    "plan_limit_reached",
    "The account has 1 credits left, and a run of 3 messages may cost 3.",
  ]);
  expect(await poor.app.db.selectFrom("replays").select("id").execute()).toEqual([]);
  expect(await poor.app.db.selectFrom("test_runs").select("id").execute()).toEqual([]);
});

test("what a starred message is about is kept while it has its star, whatever the days of others", async () => {
  let asked = "";
  await using kept = await mailroom({
    model: {
      reply: ({ messages }) => {
        asked += JSON.stringify(messages);
        return "At noon.";
      },
    },
  });
  const send = async (text: string) => {
    await kept.send({ subject: text, text, ...freshId() });
    await kept.drain();
    return (await kept.newest()).id;
  };
  const [mail, other] = [await send("When is lunch?"), await send("When is dinner?")];
  const { body } = await kept.owner.post("/v1/messages", {
    instruction: "When is it?",
    content: "It is served from twelve to one.",
    attachments: [{ filename: "menu.txt", content_type: "text/plain", data: btoa("Soup of the day") }],
  });
  const starred = [mail, body.message_id];
  for (const id of starred) await kept.owner.patch(`/messages/${id}`, { expected: { contains: "noon" } });
  await pass(kept, 31);
  const raw = async (id: string) => (await kept.owner.get(`/messages/${id}`)).body.raw_available;
  expect([await raw(mail), await raw(other)]).toEqual([true, false]);
  asked = "";
  const run = await kept.owner.post("/v1/test-runs", {});
  await kept.drain();
  expect((await kept.owner.get(`/v1/test-runs/${run.body.id}`)).body).toMatchObject({
    messages: 2,
    passed: 2,
  });
  for (const words of ["When is lunch?", "from twelve to one", "Soup of the day"])
    expect(asked).toContain(words);
  for (const id of starred) await kept.owner.patch(`/messages/${id}`, { expected: null });
  await purge(kept);
  expect(await raw(mail)).toBe(false);
  const { attachments } = (await kept.owner.get(`/messages/${body.message_id}`)).body;
  expect(attachments).toMatchObject([{ filename: "menu.txt", purged: true }]);
  const again = await kept.owner.post(`/messages/${body.message_id}/replay`, {});
  expect([again.status, again.body.detail]).toEqual([
    409,
    "What this message was about has been deleted, as it is kept for a limited time only.",
  ]);
});

test("what a run has cost is beside each message and in its sums, and a budget holds for it", async () => {
  await using priced = await mailroom({
    config: {
      costs: { prices: { own: { model: "*", kind: "openai_compatible", input: 0, output: 1_000 } } },
    },
    model: { reply: () => "At noon." },
  });
  for (const _ of [1, 2]) {
    const { body } = await priced.owner.post("/v1/messages", { instruction: "When is lunch?" });
    await priced.owner.patch(`/messages/${body.message_id}`, { expected: { contains: "noon" } });
  }
  const run = async () => {
    const { body } = await priced.owner.post("/v1/test-runs", {});
    await priced.drain();
    return (await priced.owner.get(`/v1/test-runs/${body.id}`)).body;
  };
  const table = await run();
  expect(table).toMatchObject({ cost: 0.014, items: [{ cost: 0.007 }, { cost: 0.007 }] });
  expect((await priced.owner.get("/usage")).body.costs.cost).toBe(0.028);
  await priced.owner.patch(`/inboxes/${priced.inbox.id}`, { monthly_budget: 0.03 });
  const beyond = await run();
  expect(beyond).toMatchObject({ errors: 2, passed: 0, cost: null });
  expect(beyond.items[0].why).toContain("budget");
  expect((await priced.owner.get("/usage")).body.costs.cost).toBe(0.028);
});
