import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { RECIPES } from "../../src/resources/recipes/catalogue.ts";
import { slugOf } from "../../src/lib/slug.ts";
import { type Caller, type TestApp, testApp } from "../support/app.ts";

const IDS = [
  "bug-report-to-issue",
  "draft-reply",
  "email-summarizer",
  "extract-to-json",
  "invoice-to-sheet",
  "meeting-notes",
  "research-brief",
  "translate",
  "weekday-digest",
];
const MODEL = { llm: { kind: "demo" } } as const;
const FREE = { plans: { default: "free" } } as const;

test("there are nine recipes, whole, and none is applied", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { status, body } = await ada.get("/recipes");
  expect(status).toBe(200);
  expect(body).toEqual(RECIPES.map((recipe) => ({ ...recipe, applied: false })));
  expect(body.map(({ id }: { id: string }) => id).sort()).toEqual(IDS);
});

test("recipes do not take each other's slugs and labels", () => {
  const slugs = RECIPES.flatMap(({ contexts }) => contexts.map(({ slug }) => slug));
  expect(new Set(slugs).size).toBe(slugs.length);
  expect(slugs.filter((slug) => slugOf(slug) !== slug || slug.length > 64)).toEqual([]);
  const labels = RECIPES.map(({ inbox }) => inbox.label);
  expect(new Set(labels).size).toBe(labels.length);
});

test("eight recipes fit the Free plan, each on an account of its own", async () => {
  await using t = await testApp(FREE);
  const statuses: Record<string, number> = {};
  for (const id of IDS) {
    const caller = await t.as(`${id}@example.com`);
    statuses[id] = (await apply(caller, id)).status;
  }
  expect(statuses).toEqual({ ...Object.fromEntries(IDS.map((id) => [id, 200])), "research-brief": 403 });
});

test.each(IDS)("%s makes what it says, an inbox that works by its contexts", async (id) => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const recipe = RECIPES.find((one) => one.id === id);
  const { status, body } = await apply(ada, id);
  expect(status).toBe(200);
  const contexts = (await ada.get("/contexts")).body;
  const inboxes = (await ada.get("/inboxes")).body;
  const schedules = (await ada.get("/v1/schedules")).body;
  expect(body).toEqual({
    recipe_id: id,
    created: { contexts, inboxes, ...(recipe?.schedule ? { schedules } : {}) },
    skipped: [],
    next_steps: expect.any(Array),
  });
  expect(schedules).toMatchObject(recipe?.schedule ? [{ title: recipe.schedule.title }] : []);
  expect(contexts).toMatchObject(recipe?.contexts ?? []);
  expect(inboxes).toMatchObject([
    { ...recipe?.inbox, context_ids: contexts.map((context: { id: string }) => context.id) },
  ]);
  const applied = (await ada.get("/recipes")).body.filter((one: { applied: boolean }) => one.applied);
  expect(applied.map((one: { id: string }) => one.id)).toEqual([id]);
});

test("all of them can be applied side by side", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  for (const id of IDS) expect((await apply(ada, id)).body.skipped).toEqual([]);
  expect((await ada.get("/inboxes")).body).toHaveLength(IDS.length);
  expect((await ada.get("/recipes")).body.every((one: { applied: boolean }) => one.applied)).toBe(true);
  const bob = await t.as("bob@example.com");
  expect((await bob.get("/recipes")).body.some((one: { applied: boolean }) => one.applied)).toBe(false);
});

test("a second time makes nothing and says what is there", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  await apply(ada, "draft-reply");
  const before = await everythingOf(ada);
  expect((await apply(ada, "draft-reply")).body).toEqual({
    recipe_id: "draft-reply",
    created: { contexts: [], inboxes: [] },
    skipped: [
      { type: "context", slug: "reply-drafts", reason: "exists" },
      { type: "context", slug: "about-me", reason: "exists" },
      { type: "inbox", label: "Reply drafts", reason: "exists" },
    ],
    next_steps: [],
  });
  expect(await everythingOf(ada)).toEqual(before);
});

test("five times at once make it once", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const answers = await Promise.all(Array.from({ length: 5 }, () => apply(ada, "draft-reply")));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  expect(answers.filter(({ body }) => body.created.inboxes.length === 1)).toHaveLength(1);
  const { contexts, inboxes } = await everythingOf(ada);
  expect([contexts.length, inboxes.length]).toEqual([2, 1]);
});

test("only what is missing is made; what has the slug already is used as it is", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const own = { title: "Me", body: "I am Ada.", kind: "knowledge", slug: "about-me" };
  const { body: mine } = await ada.post("/contexts", own);
  const { body } = await apply(ada, "draft-reply");
  expect(body.skipped).toEqual([{ type: "context", slug: "about-me", reason: "exists" }]);
  const [rules] = body.created.contexts;
  expect(rules.slug).toBe("reply-drafts");
  expect(body.created.inboxes[0].context_ids).toEqual([rules.id, mine.id]);
  expect((await ada.get(`/contexts/${mine.id}`)).body).toEqual(mine);
  // Somebody who deletes a part gets that part again.
  await ada.delete(`/inboxes/${body.created.inboxes[0].id}`);
  const recipe = (await ada.get("/recipes")).body.find((one: { id: string }) => one.id === "draft-reply");
  expect(recipe.applied).toBe(false);
  const again = (await apply(ada, "draft-reply")).body;
  expect([again.created.contexts.length, again.created.inboxes.length]).toEqual([0, 1]);
});

test("over the cap on contexts nothing is made, and the numbers are true", async () => {
  await using t = await testApp(FREE);
  const ada = await t.as("ada@example.com");
  for (const title of ["One", "Two"]) await ada.post("/contexts", { title, body: "x", kind: "knowledge" });
  const before = await everythingOf(ada);
  const answer = await apply(ada, "draft-reply");
  expect([answer.status, answer.body]).toMatchObject([
    403,
    { code: "plan_limit_reached", limit: 3, current: 2 },
  ]);
  expect(await everythingOf(ada)).toEqual(before);
  expect((await apply(ada, "translate")).status).toBe(200);
  // At the cap, what is there can still be applied again.
  expect((await apply(ada, "translate")).status).toBe(200);
});

test("over the cap on inboxes no context is made either", async () => {
  await using t = await testApp({ plans: { default: "free", free: { inboxes: 1 } } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const before = await everythingOf(ada);
  const answer = await apply(ada, "email-summarizer");
  expect([answer.status, answer.body]).toMatchObject([
    403,
    { code: "plan_limit_reached", limit: 1, current: 1 },
  ]);
  expect(await everythingOf(ada)).toEqual(before);
});

test("a recipe of a larger plan is refused with the name of that plan", async () => {
  await using t = await testApp(FREE);
  const ada = await t.as("ada@example.com");
  const answer = await apply(ada, "research-brief");
  expect([answer.status, answer.body]).toMatchObject([403, { code: "plan_required", required_plan: "pro" }]);
  expect(await everythingOf(ada)).toEqual({ contexts: [], inboxes: [] });
  await setPlan(t.app, { email: "ada@example.com", plan: "pro" });
  const { body } = await apply(ada, "research-brief");
  expect(body.created.contexts[1]).toMatchObject({ slug: "brief", kind: "command" });
});

test("the next steps are what is missing", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const first = (await apply(ada, "invoice-to-sheet")).body;
  expect(first.created.inboxes[0].routed).toBe(false);
  expect(first.next_steps).toEqual([
    'Connect an LLM provider, then choose it for the inbox "Invoices"',
    "Connect Google Sheets",
  ]);
  // Applied again, it gives its inbox the model that was missing.
  const { body: connection } = await ada.post("/connections", { kind: "demo" });
  const again = (await apply(ada, "invoice-to-sheet")).body;
  expect([again.created.inboxes, again.next_steps]).toEqual([[], ["Connect Google Sheets"]]);
  expect((await ada.get("/inboxes")).body).toMatchObject([{ default_connection_id: connection.id }]);
  const row = await t.app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
  const sheets = { ...row, id: Bun.randomUUIDv7(), kind: "sheets" };
  await t.app.write((tx) => tx.insertInto("connections").values(sheets).execute());
  expect((await apply(ada, "invoice-to-sheet")).body.next_steps).toEqual([]);
});

test("the new inbox gets the user's own model where the operator offers none", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: connection } = await ada.post("/connections", { kind: "demo" });
  await ada.post("/connections", { kind: "demo", label: "Another" });
  const { body } = await apply(ada, "translate");
  expect(body.created.inboxes[0]).toMatchObject({ default_connection_id: connection.id, routed: true });
  expect(body.next_steps).toEqual([]);
  await using offered = await testApp(MODEL);
  const bob = await offered.as("bob@example.com");
  await bob.post("/connections", { kind: "demo" });
  expect((await apply(bob, "translate")).body.created.inboxes[0]).toMatchObject({
    default_connection_id: null,
    routed: true,
  });
});

test("an unknown recipe is not found", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const id of ["nothing", Bun.randomUUIDv7(), "TRANSLATE", "translate%20", "toString", "%00"]) {
    const answer = await apply(ada, id);
    expect([id, answer.status, answer.body.code]).toEqual([id, 404, "not_found"]);
  }
  const get = await ada.get("/recipes/translate/apply");
  expect(get.status).toBe(405);
});

test("a body is not needed, and not looked at unless it is no JSON", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  expect((await ada.post("/recipes/translate/apply", { label: "Mine" })).status).toBe(200);
  expect((await ada.get("/inboxes")).body[0].label).toBe("Translations");
  expect((await ada.post("/recipes/translate/apply", "{ not json")).status).toBe(422);
});

function apply(caller: Caller, id: string): ReturnType<TestApp["request"]> {
  return caller.post(`/recipes/${id}/apply`);
}

async function everythingOf(caller: Caller) {
  const [contexts, inboxes] = [await caller.get("/contexts"), await caller.get("/inboxes")];
  return { contexts: contexts.body, inboxes: inboxes.body };
}
