import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { deskOf } from "./desk.ts";

const VOICE = { title: "Brand voice", body: "Plain words.", kind: "instruction" };
const WEEKLY = new File(["# Weekly"], "weekly.md");
const MAX_BODY_BYTES = 262_144;

test("a context comes back whole, in the list and by its id", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/contexts", { ...VOICE, body: "Grüße 👋", nonsense: 1, id: "mine" });
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    title: "Brand voice",
    body: "Grüße 👋",
    kind: "instruction",
    slug: "brand-voice",
    enabled: true,
    inbox_ids: null,
    size: 12,
    created: t.app.now(),
    version: 1,
    updated: t.app.now(),
    warnings: ["nonsense", "id"].map((name) => expect.objectContaining({ path: `body.${name}` })),
  });
  const second = await ada.post("/contexts", {
    ...VOICE,
    kind: "knowledge",
    slug: "facts-2",
    enabled: false,
  });
  expect(second.body).toMatchObject({ kind: "knowledge", slug: "facts-2", enabled: false });
  const { warnings: _, ...made } = answer.body;
  expect((await ada.get("/contexts")).body).toEqual([made, second.body]);
  expect((await ada.get(`/contexts/${made.id}`)).body).toEqual(made);
});

test.each([
  ["Ångström & Über", "angstrom-uber"],
  ["  --a--b--  ", "a-b"],
  ["ﬁle №5 ①", "file-no5-1"],
  ["Q3/Reports_2026", "q3-reports-2026"],
  ["x".repeat(200), "x".repeat(64)],
  [`${"x".repeat(63)} yz`, "x".repeat(63)],
])("the slug of %p is %p", async (title, slug) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { status, body } = await ada.post("/contexts", { ...VOICE, title });
  expect([status, body.slug]).toEqual([201, slug]);
});

test("a title without a letter that fits makes a slug of its own", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/contexts", { ...VOICE, title: "日本語" });
  expect(body).toMatchObject({ title: "日本語", slug: expect.stringMatching(/^context-[0-9a-f]{4}$/) });
});

test("a slug that is taken gets a number when it was derived, and is refused when it was chosen", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const slugs: string[] = [];
  for (const title of ["Brand voice", "Brand Voice", "brand-voice!"])
    slugs.push((await ada.post("/contexts", { ...VOICE, title })).body.slug);
  expect(slugs).toEqual(["brand-voice", "brand-voice-2", "brand-voice-3"]);
  const taken = await ada.post("/contexts", { ...VOICE, slug: "brand-voice-2" });
  expect([taken.status, taken.body.code]).toEqual([409, "slug_taken"]);
  // Another account has slugs of its own.
  const bob = await t.as("bob@example.com");
  expect((await bob.post("/contexts", { ...VOICE, slug: "brand-voice-2" })).status).toBe(201);
});

test("a derived slug with a number behind it keeps within 64 characters", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const title = `${"x".repeat(61)} yz`;
  const slugs: string[] = [];
  for (let count = 0; count < 10; count += 1)
    slugs.push((await ada.post("/contexts", { ...VOICE, title })).body.slug);
  expect(slugs.slice(0, 2)).toEqual([`${"x".repeat(61)}-yz`, `${"x".repeat(61)}-2`]);
  expect(slugs.at(-1)).toBe(`${"x".repeat(61)}-10`);
  expect(new Set(slugs).size).toBe(10);
});

test("equal titles at the same time get different slugs, and of equal chosen slugs one is made", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const derived = await Promise.all(Array.from({ length: 5 }, () => ada.post("/contexts", VOICE)));
  expect(new Set(derived.map(({ body }) => body.slug)).size).toBe(5);
  const chosen = await Promise.all(
    Array.from({ length: 5 }, () => ada.post("/contexts", { ...VOICE, slug: "mine" })),
  );
  expect(chosen.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
});

test("lengths are counted in characters for a title and in bytes for a body", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const longest = { ...VOICE, title: "👋".repeat(200), body: "ü".repeat(MAX_BODY_BYTES / 2) };
  const made = await ada.post("/contexts", longest);
  expect([made.status, made.body.size]).toEqual([201, MAX_BODY_BYTES]);
  expect(made.body).toMatchObject(longest);
  for (const [change, path, code] of [
    [{ title: "👋".repeat(201) }, "body.title", "too_long"],
    [{ body: `${"ü".repeat(MAX_BODY_BYTES / 2)}a` }, "body.body", "too_long"],
  ] as const) {
    const answer = await ada.post("/contexts", { ...VOICE, ...change });
    expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path, code }]);
  }
});

test("half of a character is replaced before it is counted, stored and shown", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const made = await ada.post("/contexts", { ...VOICE, title: "a\ud800", body: "b\udfff" });
  expect(made.body).toMatchObject({ title: "a\ufffd", body: "b\ufffd", size: 4 });
  expect((await ada.get(`/contexts/${made.body.id}`)).body).toEqual(made.body);
});

test("a title is one line; a body stays as it is, to the byte", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const body = "\r\n one\r\n\ttwo \0 \u2028\n\n";
  const made = await ada.post("/contexts", { ...VOICE, title: "  Brand\r\nvoice\u2028now\t", body });
  expect(made.body).toMatchObject({ title: "Brand voice now", body });
  expect((await ada.get(`/contexts/${made.body.id}`)).body.body).toBe(body);
});

const FAULTS: [name: string, change: object, path: string, code: string][] = [
  ["no title", { title: undefined }, "body.title", "missing"],
  ["an empty title", { title: "" }, "body.title", "too_short"],
  ["a blank title", { title: " \n " }, "body.title", "too_short"],
  ["a title that is null", { title: null }, "body.title", "invalid"],
  ["a title that is a number", { title: 7 }, "body.title", "invalid"],
  ["no body", { body: undefined }, "body.body", "missing"],
  ["an empty body", { body: "" }, "body.body", "too_short"],
  ["a body that is null", { body: null }, "body.body", "invalid"],
  ["no kind", { kind: undefined }, "body.kind", "missing"],
  ["an unknown kind", { kind: "macro" }, "body.kind", "unknown_value"],
  ["a kind that is null", { kind: null }, "body.kind", "unknown_value"],
  ["a slug that is null", { slug: null }, "body.slug", "invalid"],
  ["an empty slug", { slug: "" }, "body.slug", "invalid_slug"],
  ["a slug in capitals", { slug: "Brand" }, "body.slug", "invalid_slug"],
  ["a slug with two hyphens", { slug: "a--b" }, "body.slug", "invalid_slug"],
  ["a slug that ends with a hyphen", { slug: "a-" }, "body.slug", "invalid_slug"],
  ["a slug with a line break", { slug: "a\n" }, "body.slug", "invalid_slug"],
  ["a slug that is too long", { slug: "x".repeat(65) }, "body.slug", "invalid_slug"],
  ["enabled that is no boolean", { enabled: "yes" }, "body.enabled", "invalid"],
  ["enabled that is null", { enabled: null }, "body.enabled", "invalid"],
];

test.each(FAULTS)("%s is refused when a context is made", async (_name, change, path, code) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/contexts", { ...VOICE, ...change });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path, code }]);
  expect((await ada.get("/contexts")).body).toEqual([]);
});

test.each(FAULTS.filter(([, , , code]) => code !== "missing"))(
  "%s is refused when a context is changed",
  async (_name, change, path, code) => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const { body: made } = await ada.post("/contexts", VOICE);
    const answer = await ada.patch(`/contexts/${made.id}`, change);
    expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path, code }]);
    expect((await ada.get("/contexts")).body).toEqual([made]);
  },
);

test("what is no JSON object is refused", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: made } = await ada.post("/contexts", VOICE);
  for (const sent of ["{ not json", "[]", "7", ""]) {
    for (const answer of [await ada.post("/contexts", sent), await ada.patch(`/contexts/${made.id}`, sent)])
      expect([sent, answer.status, answer.body.errors[0].code]).toEqual([sent, 422, "json_invalid"]);
  }
});

test("a patch changes what it names; the slug follows no title", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: made } = await ada.post("/contexts", VOICE);
  const path = `/contexts/${made.id}`;
  t.clock.advance("1m");
  expect((await ada.patch(path, {})).body).toEqual(made);
  const { warnings, ...same } = (await ada.patch(path, { unknown: true, size: 9 })).body;
  expect(same).toEqual(made);
  expect(warnings).toHaveLength(2);
  const titled = await ada.patch(path, { title: "House style" });
  expect([titled.status, titled.body]).toEqual([
    200,
    { ...made, title: "House style", version: 2, updated: made.updated + 60 },
  ]);
  const all = { title: "T", body: "ß", kind: "knowledge", slug: "house-style", enabled: false };
  const changed = await ada.patch(path, all);
  expect(changed.body).toEqual({ ...made, ...all, size: 2, version: 3, updated: made.updated + 60 });
  expect((await ada.get(path)).body).toEqual(changed.body);
  // The old slug is free again, and its own is not taken from it.
  expect((await ada.patch(path, { slug: "house-style" })).status).toBe(200);
  expect((await ada.post("/contexts", { ...VOICE, slug: "brand-voice" })).status).toBe(201);
});

test("a patch that names the version it was made of is refused once there is another", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: made } = await ada.post("/contexts", VOICE);
  const path = `/contexts/${made.id}`;
  expect((await ada.patch(path, { version: 1, body: "One" })).body).toMatchObject({
    body: "One",
    version: 2,
  });
  const late = await ada.patch(path, { version: 1, body: "Two" });
  expect([late.status, late.body.code]).toEqual([409, "conflict"]);
  expect((await ada.get(path)).body.body).toBe("One");
  expect((await ada.patch(path, { body: "Three" })).body.version).toBe(3);
});

test("a patch does not take the slug of another context", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: first } = await ada.post("/contexts", VOICE);
  const { body: second } = await ada.post("/contexts", { ...VOICE, slug: "second" });
  const answer = await ada.patch(`/contexts/${second.id}`, { title: "New", slug: first.slug });
  expect([answer.status, answer.body.code]).toEqual([409, "slug_taken"]);
  expect((await ada.get(`/contexts/${second.id}`)).body).toEqual(second);
});

test("a deleted context is gone, and from the inboxes too", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const { body: first } = await ada.post("/contexts", VOICE);
  const { body: second } = await ada.post("/contexts", VOICE);
  await ada.patch(`/inboxes/${inbox_id}`, { context_ids: [first.id, second.id] });
  const deleted = await ada.delete(`/contexts/${first.id}`);
  expect([deleted.status, deleted.body]).toEqual([204, ""]);
  expect((await ada.get("/contexts")).body).toEqual([second]);
  expect((await ada.get("/inboxes")).body[0].context_ids).toEqual([second.id]);
  for (const answer of [
    await ada.get(`/contexts/${first.id}`),
    await ada.patch(`/contexts/${first.id}`, {}),
    await ada.delete(`/contexts/${first.id}`),
  ])
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
});

test("another user's context cannot be told from one that nobody has", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const { body: made } = await ada.post("/contexts", VOICE);
  for (const id of [made.id, Bun.randomUUIDv7()])
    for (const answer of [
      await bob.get(`/contexts/${id}`),
      await bob.patch(`/contexts/${id}`, { title: "Mine" }),
      await bob.delete(`/contexts/${id}`),
    ])
      expect([answer.status, answer.body.detail]).toEqual([404, "There is no such context."]);
  expect((await bob.get("/contexts")).body).toEqual([]);
  expect((await ada.get("/contexts")).body).toEqual([made]);
  const malformed = await ada.get("/contexts/upload");
  expect([malformed.status, malformed.body.errors[0].path]).toEqual([422, "path.context_id"]);
});

test("the Free plan has three contexts, enabled or not, and says so", async () => {
  await using t = await testApp({ plans: { default: "free" } });
  const ada = await t.as("ada@example.com");
  for (const enabled of [true, false, false]) await ada.post("/contexts", { ...VOICE, enabled });
  for (const answer of [await ada.post("/contexts", VOICE), await upload(t, ada, WEEKLY)])
    expect([answer.status, answer.body]).toMatchObject([
      403,
      { code: "plan_limit_reached", limit: 3, current: 3, fix: expect.any(String) },
    ]);
  await ada.delete(`/contexts/${(await ada.get("/contexts")).body[0].id}`);
  expect((await ada.post("/contexts", VOICE)).status).toBe(201);
});

test("ten contexts at once do not slip past the cap", async () => {
  await using t = await testApp({ plans: { team: { contexts: 3 } } });
  const ada = await t.as("ada@example.com");
  const answers = await Promise.all([
    ...Array.from({ length: 5 }, () => ada.post("/contexts", VOICE)),
    ...Array.from({ length: 5 }, () => upload(t, ada, WEEKLY)),
  ]);
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(7);
  expect((await ada.get("/contexts")).body).toHaveLength(3);
});

test("a command needs the Pro plan, to be made, to be uploaded and to become one", async () => {
  await using t = await testApp({ plans: { default: "free" } });
  const ada = await t.as("ada@example.com");
  const { body: made } = await ada.post("/contexts", VOICE);
  for (const answer of [
    await ada.post("/contexts", { ...VOICE, kind: "command" }),
    await ada.patch(`/contexts/${made.id}`, { kind: "command" }),
    await upload(t, ada, WEEKLY, "command"),
  ])
    expect([answer.status, answer.body]).toMatchObject([
      403,
      { code: "plan_required", required_plan: "pro", fix: expect.any(String) },
    ]);
  expect((await ada.get("/contexts")).body).toEqual([made]);
  for (const plan of ["pro", "team"] as const) {
    await setPlan(t.app, { email: "ada@example.com", plan });
    expect((await ada.post("/contexts", { ...VOICE, kind: "command" })).status).toBe(201);
    expect((await upload(t, ada, WEEKLY, "command")).body.kind).toBe("command");
  }
});

test("after a downgrade a command can be read, turned into something else and deleted, but not changed", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: made } = await ada.post("/contexts", { ...VOICE, kind: "command" });
  const { body: other } = await ada.post("/contexts", { ...VOICE, kind: "command" });
  await setPlan(t.app, { email: "ada@example.com", plan: "free" });
  const path = `/contexts/${made.id}`;
  expect((await ada.get(path)).body).toEqual(made);
  expect((await ada.patch(path, {})).status).toBe(200);
  const changed = await ada.patch(path, { body: "New" });
  expect([changed.status, changed.body.code]).toEqual([403, "plan_required"]);
  expect((await ada.patch(path, { kind: "instruction", body: "New" })).status).toBe(200);
  expect((await ada.delete(`/contexts/${other.id}`)).status).toBe(204);
});

function upload(t: TestApp, caller: Caller, file: File, kind?: string): Promise<Answer> {
  const body = new FormData();
  body.append("file", file);
  if (kind !== undefined) body.append("kind", kind);
  return t.request("/contexts/upload", { method: "POST", headers: { "x-api-key": caller.key }, body });
}
