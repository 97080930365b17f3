import { expect, test } from "bun:test";
import { type Answer, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";
import { LISTEN, openDoor } from "./door.ts";

const SHORT = { routing: { sync_budget_seconds: 0.05 } };

test("past the budget answers 202 with where to ask and when, and the run goes on to its end", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(modelAt(model, SHORT));
  const { ada } = await deskOf(t);
  const answer = await ada.post("/v1/messages", { instruction: "Take your time" });
  const path = `/v1/messages/${answer.body.message_id}`;
  expect([answer.status, answer.headers.get("location"), answer.headers.get("retry-after")]).toEqual([
    202,
    path,
    "2",
  ]);
  expect(answer.body).toMatchObject({
    status: "processing",
    result: "",
    error: null,
    usage: null,
    credits: { charged: 0, remaining: 9_999 },
  });
  const polled = await ada.get(path);
  expect([polled.status, polled.headers.get("retry-after"), polled.body.status]).toEqual([
    200,
    "2",
    "processing",
  ]);
  expect((await ada.get("/messages")).body.items[0].status).toBe("received");
  const ended = t.app.finished.wait(answer.body.message_id, 5_000);
  open("Done at last.");
  expect(await ended).toBeTruthy();
  const done = await ada.get(path);
  expect(done.headers.get("retry-after")).toBe(null);
  expect(done.body).toMatchObject({
    status: "done",
    result: "Done at last.",
    credits: { charged: 1, remaining: 9_999 },
  });
  expect(model.requests).toHaveLength(1);
});

test("async answers 202 at once, before the model is asked", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model));
  const { ada } = await deskOf(t);
  const answer = await ada.post("/v1/messages", { instruction: "Later", async: true });
  expect([answer.status, answer.body.status, answer.body.credits]).toEqual([
    202,
    "processing",
    { charged: 0, remaining: 9_999 },
  ]);
  expect(answer.headers.get("location")).toBe(`/v1/messages/${answer.body.message_id}`);
  expect(model.requests).toHaveLength(0);
  await t.drain();
  const done = await ada.get(`/v1/messages/${answer.body.message_id}`);
  expect([done.body.status, done.body.credits.charged]).toEqual(["done", 1]);
});

test("async: false is the same as none", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const { ada } = await deskOf(t);
  expect((await ada.post("/v1/messages", { instruction: "Now", async: false })).status).toBe(200);
});

test("Prefer: wait lowers the budget", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(
    modelAt(model, { routing: { sync_budget_seconds: 60, hard_cap_seconds: 60 } }),
  );
  const { ada } = await deskOf(t);
  for (const prefer of ["wait=0", "respond-async", "respond-async, wait=0", 'handling=strict; wait="0"']) {
    const { status, body } = await ada.post("/v1/messages", { instruction: "x" }, { prefer });
    expect([prefer, status, body.status]).toEqual([prefer, 202, "processing"]);
  }
  open("ok");
});

test("Prefer: wait cannot raise the budget, and nonsense in it is ignored", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(modelAt(model, SHORT));
  const { ada } = await deskOf(t);
  for (const prefer of ["wait=600", "wait=soon", "wait=-1", "await=0", "respond-asynchronous"]) {
    const { status } = await ada.post("/v1/messages", { instruction: "x" }, { prefer });
    expect([prefer, status]).toEqual([prefer, 202]);
  }
  open("ok");
});

test("a sync call waits for a slot of the worker and is still answered with its result", async () => {
  await using model = startModelServer({ fault: "slow", slow_ms: 30 });
  await using t = await testApp(modelAt(model, { routing: { concurrency: 2 } }));
  t.app.worker?.start();
  const { ada } = await deskOf(t);
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => ada.post("/v1/messages", { instruction: "x" })),
  );
  expect(answers.map(({ status, body }) => [status, body.status])).toEqual(
    Array.from({ length: 6 }, () => [200, "done"]),
  );
});

test("a client that hangs up does not end the run", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(modelAt(model, { server: LISTEN }));
  await using door = await openDoor(t);
  const { ada } = await deskOf(t);
  const hangUp = new AbortController();
  const call = door.request("/v1/messages", {
    method: "POST",
    headers: { "x-api-key": ada.key, "content-type": "application/json" },
    body: JSON.stringify({ instruction: "Do it all the same" }),
    signal: hangUp.signal,
  });
  await model.received(1);
  hangUp.abort();
  const cut: unknown = await call.then(
    () => "answered",
    (error: unknown) => (error as Error).name,
  );
  expect(cut).toBe("AbortError");
  const [{ message_id }] = (await ada.get("/messages")).body.items;
  const ended = t.app.finished.wait(message_id, 5_000);
  open("Done for nobody.");
  expect(await ended).toBeTruthy();
  const done = await ada.get(`/v1/messages/${message_id}`);
  expect([done.body.status, done.body.result]).toEqual(["done", "Done for nobody."]);
});

test("a run whose inbox is deleted while it waits ends as failed, with its credit given back", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const { ada, inbox_id } = await deskOf(t);
  const { body } = await ada.post("/v1/messages", { instruction: "x", async: true });
  await ada.delete(`/inboxes/${inbox_id}`);
  await t.drain();
  const ended = await ada.get(`/v1/messages/${body.message_id}`);
  expect(ended.body).toMatchObject({
    status: "failed",
    error: "The inbox was deleted before the message was worked on.",
    credits: { charged: 0, remaining: 10_000 },
  });
});

test("a model that answers in time answers a call in time over a real socket, many at once", async () => {
  await using model = startModelServer({ fault: "slow", slow_ms: 10 });
  await using t = await testApp(modelAt(model, { server: LISTEN }));
  t.app.worker?.start();
  await using door = await openDoor(t);
  const { ada } = await deskOf(t);
  const send = (index: number): Promise<Answer> =>
    door.request("/v1/messages", {
      method: "POST",
      headers: { "x-api-key": ada.key, "content-type": "application/json" },
      body: JSON.stringify({ instruction: `call ${index}` }),
    });
  const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => send(index)));
  expect(answers.map(({ body }) => body.result)).toEqual(answers.map((_, index) => `Echo: call ${index}`));
});
