import { describe, expect, test } from "bun:test";
import { recountStorage, storedBytes } from "../../src/db/account-storage.ts";
import { type Caller, type TestApp, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { modelAt } from "./desk.ts";

const VOICE = { title: "Voice", body: "One.", kind: "instruction" };

/** A context that has been written three times. */
async function written(t: TestApp): Promise<{ ada: Caller; path: string; id: string }> {
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/contexts", VOICE);
  const path = `/contexts/${body.id}`;
  t.clock.advance("1h");
  await ada.patch(path, { body: "Two." });
  t.clock.advance("1h");
  await ada.patch(path, { title: "Tone", body: "Three.", kind: "knowledge" });
  return { ada, path, id: body.id };
}

describe("versions of a context", () => {
  test("are listed without their texts, newest first, and read one by one", async () => {
    await using t = await testApp();
    const begun = t.app.now();
    const { ada, path } = await written(t);
    const { status, body } = await ada.get(`${path}/versions`);
    expect(status).toBe(200);
    const [three, two, one] = [
      { version: 3, title: "Tone", kind: "knowledge", size: 6, current: true, created: begun + 7_200 },
      { version: 2, title: "Voice", kind: "instruction", size: 4, current: false, created: begun + 3_600 },
      { version: 1, title: "Voice", kind: "instruction", size: 4, current: false, created: begun },
    ];
    expect(body).toEqual([three, two, one]);
    expect((await ada.get(`${path}/versions/1`)).body).toEqual({ ...one, body: "One." });
    expect((await ada.get(`${path}/versions/2`)).body).toEqual({ ...two, body: "Two." });
    expect((await ada.get(`${path}/versions/3`)).body).toEqual({ ...three, body: "Three." });
    expect((await ada.get(path)).body).toMatchObject({ version: 3, body: "Three." });
  });

  test("are made by another title, text or kind, and by nothing else", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    for (const change of [{ enabled: false }, { slug: "other" }, { inbox_ids: [] }, { body: "Three." }, {}])
      expect((await ada.patch(path, change)).body).toMatchObject({ version: 3 });
    expect((await ada.patch(path, { kind: "instruction" })).body).toMatchObject({ version: 4 });
  });

  test("a restored one is a new version, and keeps short name, scope and use", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    await ada.patch(path, { enabled: false, inbox_ids: [] });
    const { status, body } = await ada.post(`${path}/versions/1/restore`);
    expect([status, body]).toMatchObject([
      200,
      {
        title: "Voice",
        body: "One.",
        kind: "instruction",
        version: 4,
        slug: "voice",
        enabled: false,
        inbox_ids: [],
      },
    ]);
    expect((await ada.get(`${path}/versions`)).body.map((one: { version: number }) => one.version)).toEqual([
      4, 3, 2, 1,
    ]);
    expect((await ada.post(`${path}/versions/4/restore`)).body).toMatchObject({ version: 4 });
  });

  test("a macro that the plan no longer has is not restored", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    await t.app.db.updateTable("users").set({ plan: "pro" }).execute();
    const { body } = await ada.post("/contexts", { ...VOICE, kind: "command" });
    await ada.patch(`/contexts/${body.id}`, { kind: "knowledge" });
    await t.app.db.updateTable("users").set({ plan: "free" }).execute();
    const refused = await ada.post(`/contexts/${body.id}/versions/1/restore`);
    expect([refused.status, refused.body.code]).toEqual([403, "plan_required"]);
  });

  test("one that was never to be kept is forgotten, the current one not", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    expect((await ada.delete(`${path}/versions/3`)).status).toBe(409);
    expect((await ada.delete(`${path}/versions/2`)).status).toBe(204);
    for (const call of [ada.delete(`${path}/versions/2`), ada.get(`${path}/versions/2`)]) {
      const { status, body } = await call;
      expect([status, body.detail]).toEqual([404, "There is no such version of this context."]);
      expect(body.fix).toContain(`GET ${path}/versions`);
    }
    expect((await ada.get(`${path}/versions`)).body.map((one: { version: number }) => one.version)).toEqual([
      3, 1,
    ]);
  });

  test.each(["0", "-1", "1.5", "x", "99999999999999999999"])("a version %s is none", async (version) => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    expect((await ada.get(`${path}/versions/${version}`)).status).toBe(404);
  });

  test("are nobody else's", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    const eve = await t.as("eve@example.com");
    for (const call of [
      eve.get(`${path}/versions`),
      eve.get(`${path}/versions/1`),
      eve.post(`${path}/versions/1/restore`),
      eve.delete(`${path}/versions/1`),
    ])
      expect((await call).status).toBe(404);
    expect((await ada.get(`${path}/versions`)).body).toHaveLength(3);
  });

  test("the newest 200 are kept, and all go with their context", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    for (let at = 4; at <= 210; at += 1) await ada.patch(path, { body: `Version ${at}.` });
    const { body } = await ada.get(`${path}/versions`);
    expect([body.length, body[0].version, body.at(-1).version]).toEqual([201, 210, 10]);
    expect((await ada.delete(path)).status).toBe(204);
    expect(await t.app.db.selectFrom("context_versions").select("id").execute()).toEqual([]);
  });

  test("count as stored, whoever counts", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    const counted = async () => (await storedBytes(t.app.db, { user_id: ada.user.id }))[0]?.bytes ?? 0;
    const before = await counted();
    await ada.patch(path, { body: "x".repeat(1_000) });
    expect((await counted()) - before).toBe(1_000);
    const kept = await counted();
    await recountStorage(t.app, ada.user.id);
    expect(await counted()).toBe(kept);
    await ada.delete(path);
    expect(await counted()).toBe(before - "One.Two.Three.".length);
  });

  test("are not kept where the account has no room for them, and the context changes all the same", async () => {
    await using t = await testApp({ plans: { team: { storage_mb: 1 } } });
    const { ada, path } = await written(t);
    const large = "x".repeat(250_000);
    for (let at = 0; at < 3; at += 1) await ada.post("/contexts", { ...VOICE, body: large });
    expect((await ada.patch(path, { body: large })).status).toBe(200);
    expect((await ada.patch(path, { body: large.slice(1) })).body).toMatchObject({ version: 5 });
    const { body } = await ada.get(`${path}/versions`);
    expect(body.map((one: { version: number }) => one.version)).toEqual([5, 2, 1]);
    expect((await ada.patch(path, { body: "Small again." })).body).toMatchObject({ version: 6 });
  });

  test("two changes at the same time make two versions", async () => {
    await using t = await testApp();
    const { ada, path } = await written(t);
    await Promise.all([ada.patch(path, { body: "Left." }), ada.patch(path, { body: "Right." })]);
    const { body } = await ada.get(`${path}/versions`);
    expect(body.map((one: { version: number }) => one.version)).toEqual([5, 4, 3, 2, 1]);
  });
});

test("a message remembers which version of which context and macro it was worked on with", async () => {
  await using model = await startModelServer();
  await using t = await testApp(modelAt(model));
  const { ada, path, id } = await written(t);
  await ada.post("/inboxes", {});
  const macro = await ada.post("/contexts", { title: "Sum", body: "Sum up.", kind: "command" });
  await ada.patch(path, { kind: "instruction" });
  const used = async (instruction: string) => {
    const { body } = await ada.post("/v1/messages", { instruction });
    return (await ada.get(`/messages/${body.message_id}`)).body.contexts;
  };
  const voice = { id, slug: "voice", version: 4 };
  expect(await used("Say hello.")).toEqual([voice]);
  await ada.patch(path, { body: "Five." });
  expect(await used("$sum this")).toEqual([
    { ...voice, version: 5 },
    { id: macro.body.id, slug: "sum", version: 1 },
  ]);
  await ada.patch(path, { enabled: false });
  expect(await used("Say hello.")).toEqual([]);
});
