import { expect, test } from "bun:test";
import { RECIPES } from "../../src/resources/recipes/catalogue.ts";
import { asked, call, context, withContexts } from "../support/commands.ts";
import { mailroom } from "../support/mailroom.ts";

const STRANGER = "Eve <eve@example.net>";

test("after four recipes a plain question in another inbox gets none of their contexts", async () => {
  await using room = await mailroom();
  for (const id of ["email-summarizer", "translate", "extract-to-json", "draft-reply"])
    expect((await room.owner.post(`/recipes/${id}/apply`)).status).toBe(200);
  const done = await call(room, "When does the bridge open?");
  expect(done.steps).toEqual([]);
  const titles = RECIPES.flatMap(({ contexts }) => contexts.map(({ title }) => title));
  expect(titles.filter((title) => asked(room).system.includes(title))).toEqual([]);
  const contexts: { inbox_ids: string[] | null }[] = (await room.owner.get("/contexts")).body;
  expect(contexts.map(({ inbox_ids }) => inbox_ids?.length)).toEqual([1, 1, 1, 1, 1]);
});

test("a recipe's inbox works by its contexts, and its owner may name them anywhere, but a listed sender only there", async () => {
  await using room = await mailroom({ inbox: { allowlist_senders: ["bob@example.org"] } });
  const { created } = (await room.owner.post("/recipes/email-summarizer/apply")).body;
  const [inbox] = created.inboxes;
  await call(room, "Sum up", { inbox_id: inbox.id });
  expect(asked(room).system).toContain("How to summarise a mail");
  await call(room, "Sum up +email-summary");
  expect(asked(room).system).toContain("How to summarise a mail");
  await room.send({ from: "bob@example.org", text: "Sum up +email-summary" });
  await room.drain();
  expect(JSON.stringify(asked(room).body)).not.toContain("How to summarise a mail");
});

test("a context for these inboxes goes along there, also with strangers, and nowhere else", async () => {
  await using room = await withContexts([context("tone", "Write gently."), context("all", "Be brief.")]);
  const [tone] = (await room.owner.get("/contexts")).body;
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  const changed = await room.owner.patch(`/contexts/${tone.id}`, { inbox_ids: [other.id] });
  expect([changed.status, changed.body.inbox_ids]).toEqual([200, [other.id]]);
  await call(room, "Write");
  expect(asked(room).system).not.toContain("gently");
  expect(asked(room).system).toContain("Be brief.");
  await call(room, "Write", { inbox_id: other.id });
  expect(asked(room).system).toContain("gently");
  expect(asked(room).system).toContain("Be brief.");
  await room.send({ from: STRANGER, rcpt: other.address, text: "Tell me all that you know" });
  await room.drain();
  expect(asked(room).system).toContain("gently");
  expect(asked(room).system).not.toContain("Be brief.");
  await room.send({ from: STRANGER, text: "Tell me all that you know, please" });
  await room.drain();
  expect(JSON.stringify(asked(room).body)).not.toMatch(/gently|Be brief/);
});

test("to be for every inbox leaves strangers without it, and inboxes that choose with their choice", async () => {
  await using room = await withContexts([context("tone", "Write gently.")]);
  const [tone] = (await room.owner.get("/contexts")).body;
  const { body: chooser } = await room.owner.post("/inboxes", { label: "Chooses", context_ids: [] });
  await room.owner.patch(`/contexts/${tone.id}`, { inbox_ids: [room.inbox.id] });
  await room.owner.patch(`/contexts/${tone.id}`, { inbox_ids: null });
  await room.send({ from: STRANGER, text: "Tell me all that you know" });
  await room.drain();
  expect(JSON.stringify(asked(room).body)).not.toContain("gently");
  const inboxes = (await room.owner.get("/inboxes")).body;
  expect(inboxes.map((one: { context_ids: unknown }) => one.context_ids)).toEqual([null, []]);
  expect(inboxes[1].id).toBe(chooser.id);
});
