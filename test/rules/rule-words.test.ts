import { describe, expect, test } from "bun:test";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { startModelServer } from "../support/model-server.ts";

async function roomWith(acts: object, more: Parameters<typeof mailroom>[0] = {}): Promise<Mailroom> {
  const room = await mailroom(more);
  const { owner, inbox } = room;
  const { status } = await owner.patch(`/inboxes/${inbox.id}`, {
    rules: [{ name: "R", when: [], do: acts }],
  });
  expect(status).toBe(200);
  return room;
}

async function connect(room: Mailroom, base_url: string, more: object = {}): Promise<string> {
  const connection = { kind: "openai_compatible", label: "Own", base_url, model: "own", ...more };
  return (await room.owner.post("/connections", connection)).body.id;
}

const LOCAL = { config: { egress: { allow: ["127.0.0.1"] } } };

describe("what a rule has chosen is told with its name, and no flag that nobody typed:", () => {
  test("a model that the operator does not allow", async () => {
    await using room = await roomWith({ model: "nope" });
    await room.send({ text: "Hello" });
    await room.drain();
    const { reason, error } = await room.newest();
    expect(reason).toBe("model_not_allowed");
    expect(error).toContain("The rule “R” asks for it: choose another model in the rule");
    expect(error).not.toContain("--");
  });

  test("a model that is not there", async () => {
    const missing = { error: { message: "no such model", code: "model_not_found" } };
    await using server = startModelServer({ reply: () => Response.json(missing, { status: 404 }) });
    await using room = await mailroom(LOCAL);
    const connection_id = await connect(room, server.base_url);
    const rules = [{ name: "R", when: [], do: { connection_id, model: "nope" } }];
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
    await room.send({ text: "Hello" });
    await room.drain();
    const { reason, error } = await room.newest();
    expect(reason).toBe("model_not_found");
    expect(error).toContain("The rule “R” of the inbox asks for it: name a model there that there is");
    expect(error).not.toContain("--model");
  });

  test("a typed model is told as such", async () => {
    await using room = await roomWith({ model: "nope" });
    await room.send({ text: "Hello --model=other" });
    await room.drain();
    expect((await room.newest()).error).toContain("Leave --model out");
  });

  test("an option that does not go with a typed one", async () => {
    await using room = await roomWith({ options: { attach: "csv" } });
    await room.send({ text: "Hello --format=json" });
    await room.drain();
    expect((await room.newest()).steps).toContain(
      "`attach: csv` of the rule “R” asks for csv, but --format=json was done.",
    );
  });

  test("an answer that it forbids", async () => {
    await using room = await roomWith({ answer: false });
    await room.send({ text: "Hello" });
    await room.drain();
    const { reply_error } = await room.newest();
    expect(reply_error).toContain("No answer was mailed: the rule “R” of the inbox has it so.");
    await room.send({ text: "Hello --no-reply" });
    await room.drain();
    expect((await room.newest()).reply_error).toContain("the instruction says --no-reply");
  });
});

describe("a context of a rule that was deleted", () => {
  test("is named with its rule and the mend when rules are saved, as is a connection", async () => {
    await using room = await mailroom();
    const context = (await room.owner.post("/contexts", { title: "A", kind: "knowledge", body: "a" })).body;
    const rules = [{ name: "R", when: [], do: { context_ids: [context.id] } }];
    const path = `/inboxes/${room.inbox.id}`;
    expect((await room.owner.patch(path, { rules })).status).toBe(200);
    await room.owner.delete(`/contexts/${context.id}`);
    const refused = async (acts: object) =>
      (await room.owner.patch(path, { rules: [{ name: "R", when: [], do: acts }] })).body.errors[0].message;
    expect(await refused({ context_ids: [context.id] })).toContain(
      "The rule “R” names a context that is not",
    );
    expect(await refused({ connection_id: context.id })).toContain("The rule “R” names a model connection");
    // The rule that is stored goes on without it, and says so.
    await room.send({ text: "Hello" });
    await room.drain();
    const { state, steps } = await room.newest();
    expect(state).toBe("done");
    expect(steps).toContain("A context that a rule gives to this message is switched off");
  });
});

test("rules are not replaced by somebody who has not seen what was saved meanwhile", async () => {
  await using room = await mailroom();
  const path = `/inboxes/${room.inbox.id}`;
  const named = (name: string) => [{ name, when: [], do: { keep: true } }];
  const { rules_version } = (await room.owner.get(path)).body;
  const first = await room.owner.patch(path, { rules: named("First"), rules_version });
  expect(first.status).toBe(200);
  expect(first.body.rules_version).not.toBe(rules_version);
  const second = await room.owner.patch(path, { rules: named("Second"), label: "Other", rules_version });
  expect([second.status, second.body.code]).toEqual([409, "conflict"]);
  expect(second.body.fix).toContain("reload the page");
  const { rules, label } = (await room.owner.get(path)).body;
  expect([rules[0].name, label]).toEqual(["First", "Desk"]);
  const { rules_version: now } = first.body;
  expect((await room.owner.patch(path, { rules: named("Second"), rules_version: now })).status).toBe(200);
  expect((await room.owner.patch(path, { rules: [] })).status).toBe(200);
});

test("what a rule has left out is to be written anew: the same mail, sent again, is known", async () => {
  await using room = await roomWith({ skip: true });
  await room.send({ text: "Hello" });
  await room.drain();
  const { status, body } = await room.owner.post(`/messages/${(await room.newest()).id}/retry`);
  expect(status).toBe(409);
  expect(body.fix).toContain("have it written anew");
  expect(body.fix).not.toContain("sent again");
});

describe("a connection that only a rule uses", () => {
  test("counts as used, also beside the model of the inbox, once", async () => {
    await using room = await mailroom(LOCAL);
    const connection_id = await connect(room, "https://127.0.0.1:9/v1");
    const rules = [
      { name: "R", when: [], do: { connection_id } },
      { name: "S", when: [], do: { connection_id } },
    ];
    const path = `/inboxes/${room.inbox.id}`;
    await room.owner.patch(path, { rules });
    const used = async () => (await room.owner.get(`/connections/${connection_id}`)).body.used_by_inboxes;
    expect(await used()).toBe(1);
    await room.owner.patch(path, { default_connection_id: connection_id });
    expect(await used()).toBe(1);
    await room.owner.patch(path, { default_connection_id: null, rules: [] });
    expect(await used()).toBe(0);
  });

  test("that is deleted has its mail fail, and no other provider is told of it", async () => {
    await using room = await mailroom(LOCAL);
    const connection_id = await connect(room, "https://127.0.0.1:9/v1");
    const rules = [{ name: "R", when: [], do: { connection_id } }];
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
    expect((await room.owner.delete(`/connections/${connection_id}`)).status).toBe(204);
    await room.send({ text: "Hello" });
    await room.drain();
    const { state, reason, error } = await room.newest();
    expect([state, reason]).toEqual(["failed", "unknown_connection"]);
    expect(error).toContain("The rule “R” names a model connection that is not there any more.");
    expect(room.model.requests).toEqual([]);
  });

  test("shows a key that is refused, with a model of the rule too, and no fault of that model", async () => {
    let answer = () => new Response("no", { status: 401 });
    await using server = startModelServer({ reply: () => answer() });
    await using room = await mailroom(LOCAL);
    const connection_id = await connect(room, server.base_url);
    const acts = { connection_id, model: "other" };
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules: [{ name: "R", when: [], do: acts }] });
    const statusAfter = async () => {
      await room.send({ text: "Hello" });
      await room.drain();
      return (await room.owner.get(`/connections/${connection_id}`)).body.status;
    };
    expect(await statusAfter()).toBe("error");
    await room.owner.patch(`/connections/${connection_id}`, { credential: "another" });
    answer = () => Response.json({ error: { message: "no", code: "model_not_found" } }, { status: 404 });
    expect(await statusAfter()).toBe("untested");
  });
});
