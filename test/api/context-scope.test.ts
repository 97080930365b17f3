import { expect, test } from "bun:test";
import { type Answer, type Caller, testApp } from "../support/app.ts";

const BODY = { title: "Tone", body: "Gently.", kind: "instruction" };

/** An account with two inboxes, one of which chooses its contexts itself. */
async function accountOf(ada: Caller) {
  const { body: open } = await ada.post("/inboxes", { label: "Open" });
  const { body: chooser } = await ada.post("/inboxes", { label: "Chooser", context_ids: [] });
  return { open: open.id as string, chooser: chooser.id as string };
}

async function listsOf(ada: Caller): Promise<unknown[]> {
  return (await ada.get("/inboxes")).body.map(({ context_ids }: { context_ids: unknown }) => context_ids);
}

test("a context is for every inbox unless it names some, and both sides show the same", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { open, chooser } = await accountOf(ada);
  const { body: every } = await ada.post("/contexts", BODY);
  expect(every.inbox_ids).toBeNull();
  const { body: named, status } = await ada.post("/contexts", {
    ...BODY,
    slug: "two",
    inbox_ids: [open, chooser, open],
  });
  expect([status, named.inbox_ids]).toEqual([201, [open, chooser]]);
  expect(await listsOf(ada)).toEqual([null, [named.id]]);
  // Chosen at the inbox, it is named all the same.
  await ada.patch(`/inboxes/${chooser}`, { context_ids: [every.id] });
  expect((await ada.get(`/contexts/${named.id}`)).body.inbox_ids).toEqual([open]);
  expect((await ada.get(`/contexts/${every.id}`)).body.inbox_ids).toBeNull();
  const { body: none } = await ada.patch(`/contexts/${named.id}`, { inbox_ids: [] });
  expect(none.inbox_ids).toEqual([]);
  const unchanged = await ada.patch(`/contexts/${named.id}`, { title: "Voice" });
  expect([unchanged.body.title, unchanged.body.inbox_ids]).toEqual(["Voice", []]);
});

test("an inbox that takes those for every inbox again keeps what is for it alone", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { chooser } = await accountOf(ada);
  const { body: own } = await ada.post("/contexts", { ...BODY, inbox_ids: [chooser] });
  const { body: every } = await ada.post("/contexts", { ...BODY, slug: "two" });
  await ada.patch(`/inboxes/${chooser}`, { context_ids: [own.id, every.id] });
  expect((await ada.patch(`/inboxes/${chooser}`, { context_ids: null })).body.context_ids).toBeNull();
  expect((await ada.get(`/contexts/${own.id}`)).body.inbox_ids).toEqual([chooser]);
  await ada.delete(`/contexts/${own.id}`);
  await ada.delete(`/inboxes/${chooser}`);
  expect((await ada.get("/contexts")).body).toMatchObject([{ id: every.id, inbox_ids: null }]);
});

test("a deleted inbox is named no more, and a context can be for none", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { open } = await accountOf(ada);
  const { body } = await ada.post("/contexts", { ...BODY, inbox_ids: [open] });
  await ada.delete(`/inboxes/${open}`);
  expect((await ada.get(`/contexts/${body.id}`)).body.inbox_ids).toEqual([]);
});

test("only inboxes of one's own can be named, and a refusal changes nothing", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const { open } = await accountOf(ada);
  const foreign = (await bob.post("/inboxes", {})).body.id;
  const { body: context } = await ada.post("/contexts", BODY);
  const patch = (inbox_ids: unknown): Promise<Answer> => ada.patch(`/contexts/${context.id}`, { inbox_ids });
  for (const id of [foreign, Bun.randomUUIDv7()]) {
    const answer = await patch([open, id]);
    expect([answer.status, answer.body.errors]).toEqual([
      422,
      [{ path: "body.inbox_ids.1", code: "inbox_not_found", message: "inbox not found" }],
    ]);
  }
  for (const wrong of ["every", [1], ["x"], {}, true]) expect((await patch(wrong)).status).toBe(422);
  expect((await ada.post("/contexts", { ...BODY, slug: "two", inbox_ids: [foreign] })).status).toBe(422);
  expect((await ada.get("/contexts")).body).toEqual([context]);
  expect(await listsOf(ada)).toEqual([null, []]);
  expect((await bob.get("/inboxes")).body[0].context_ids).toBeNull();
});

test("what a recipe makes is for its inbox, and a part that is made again belongs to it too", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await accountOf(ada);
  const first = (await ada.post("/recipes/draft-reply/apply")).body.created;
  const id = first.inboxes[0].id;
  expect(first.contexts.map(({ inbox_ids }: { inbox_ids: unknown }) => inbox_ids)).toEqual([[id], [id]]);
  await ada.delete(`/contexts/${first.contexts[0].id}`);
  const again = (await ada.post("/recipes/draft-reply/apply")).body.created;
  expect(again.contexts).toMatchObject([{ slug: "reply-drafts", inbox_ids: [id] }]);
  expect(again.inboxes).toEqual([]);
  const inbox = (await ada.get(`/inboxes/${id}`)).body;
  expect(inbox.context_ids).toEqual([first.contexts[1].id, again.contexts[0].id]);
});

test("a context of one's own that has a recipe's short name stays for every inbox", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: mine } = await ada.post("/contexts", { ...BODY, kind: "knowledge", slug: "about-me" });
  await ada.post("/recipes/draft-reply/apply");
  expect((await ada.get(`/contexts/${mine.id}`)).body.inbox_ids).toBeNull();
});
