import { expect, test } from "bun:test";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { type ModelFault, type ModelServer, startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";

const SECRET = "sk-this-is-never-shown-1234";

test.each<[fault: ModelFault, words: RegExp, asked: number]>([
  ["unauthorized", /\(401\) asks for an API key, and this connection has none\. Enter one/, 1],
  ["unknown_model", /\(404\) does not know this model\. Choose another one/, 1],
  ["content_filter", /refused to write about this\. Change the instruction/, 1],
  ["redirect", /redirects to .* Enter the final address/, 1],
  ["rate_limited", /\(429\) is limiting this account's requests/, 2],
  ["html_502", /\(502\) has a fault of its own/, 2],
  ["garbage", /not JSON.* check that the base URL/, 2],
  ["html_200", /check that the base URL/, 2],
  ["no_choices", /check that the base URL/, 2],
  ["null_content", /answered without any text/, 2],
  ["drop_before_answer", /could not be reached\. \w.*broke off/, 2],
  ["drop_mid_body", /broke off/, 2],
  ["huge", /more than 4 MB/, 1],
])(
  "a model with the fault %s gives 200, failed, words to act on and no charge",
  async (fault, words, asked) => {
    await using model = startModelServer({ fault });
    await using t = await testApp(modelAt(model));
    const { ada } = await deskOf(t);
    const answer = await callToItsEnd(t, ada, model);
    expect([answer.status, answer.body.status]).toEqual([200, "failed"]);
    expect(answer.body.error).toMatch(words);
    expect(answer.body.error).toContain(`127.0.0.1:${model.port}`);
    expect(answer.body).toMatchObject({
      result: "",
      usage: null,
      credits: { charged: 0, remaining: 10_000 },
    });
    expect(model.requests).toHaveLength(asked);
    expect((await ada.get("/messages")).body.items[0]).toMatchObject({
      status: "failed",
      credits_charged: 0,
    });
    model.fault = "none";
    expect((await ada.post("/v1/messages", { instruction: "again" })).body.status).toBe("done");
  },
);

test("a model that never answers fails at the hard cap, and says so", async () => {
  await using model = startModelServer({ fault: "hang" });
  await using t = await testApp(
    modelAt(model, { routing: { sync_budget_seconds: 0.1, hard_cap_seconds: 0.1 } }),
  );
  const { ada } = await deskOf(t);
  const answer = await callToItsEnd(t, ada, model);
  expect(answer.body.status).toBe("failed");
  expect(answer.body.error).toMatch(/did not answer in time/);
  expect(answer.body.credits).toEqual({ charged: 0, remaining: 10_000 });
});

test("a model that recovers is asked again by itself, and the run is charged once", async () => {
  await using model = startModelServer({ fault: "rate_limited" });
  await using t = await testApp(modelAt(model, { routing: { sync_budget_seconds: 0.05 } }));
  const { ada } = await deskOf(t);
  const first = await ada.post("/v1/messages", { instruction: "x" });
  expect([first.status, first.body.status]).toEqual([202, "processing"]);
  model.fault = "none";
  await t.drain();
  expect(model.requests).toHaveLength(1);
  // It asked for 7 seconds.
  t.clock.advance("7s");
  await t.drain();
  const done = await ada.get(`/v1/messages/${first.body.message_id}`);
  expect(done.body).toMatchObject({ status: "done", credits: { charged: 1, remaining: 9_999 } });
});

test("no error text, no list and no log of a failed run shows the key, even when the provider repeats it", async () => {
  await using model = startModelServer({ fault: "unauthorized" });
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
  const { ada, inbox_id } = await deskOf(t);
  const made = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: model.base_url,
    credential: SECRET,
    model: "m",
  });
  await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: made.body.id });
  const answer = await ada.post("/v1/messages", { instruction: "x" });
  expect(model.requests[0]?.headers["authorization"]).toBe(`Bearer ${SECRET}`);
  expect(answer.body.status).toBe("failed");
  for (const path of ["/messages", "/connections", "/inboxes", `/v1/messages/${answer.body.message_id}`])
    expect(JSON.stringify((await ada.get(path)).body)).not.toContain(SECRET);
  expect(JSON.stringify(answer.body)).not.toContain(SECRET);
});

test("a connection that points at a private address is refused at the call, not asked", async () => {
  await using model = startModelServer();
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const made = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: `https://127.0.0.1:${model.port}/v1`,
    model: "m",
  });
  await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: made.body.id });
  const answer = await ada.post("/v1/messages", { instruction: "x" });
  expect([answer.status, answer.body.status]).toEqual([200, "failed"]);
  expect(answer.body.error).toMatch(/could not be reached/);
  expect(model.requests).toHaveLength(0);
});

/** Calls and lets the time pass that lies between the attempts. */
async function callToItsEnd(t: TestApp, ada: Caller, model: ModelServer): Promise<Answer> {
  const answered = ada.post("/v1/messages", { instruction: "x" });
  await model.received(1);
  await t.drain();
  t.clock.advance("10m");
  await t.drain();
  const answer = await answered;
  return answer.status === 200 ? answer : ada.get(`/v1/messages/${answer.body.message_id}`);
}
