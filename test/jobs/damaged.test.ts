import { expect, test } from "bun:test";
import { sweepUnproven } from "../../src/resources/accounts/unproven.ts";
import { namedSegments } from "../../src/db/segment-rows.ts";
import { JOB_RULES, type JobKind } from "../../src/jobs/kinds.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { signIn } from "../api/browser.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { mailroom } from "../support/mailroom.ts";

/** A job of each kind, for later, in which the disk has left half of what it is for. */
async function damagedJobs({ app }: TestApp): Promise<void> {
  for (const kind of Object.keys(JOB_RULES) as JobKind[])
    await app.write((tx) => enqueue(app, tx, { kind, payload: {}, run_at: app.now() + 3_600 }));
  await app.db.updateTable("jobs").set({ payload: '{"user_' }).execute();
}

test("jobs of which nobody can read what they are for keep nobody from a start, or from the end of an account", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await t.request("/auth/request-code", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: "eve@example.com" }),
  });
  await t.drain();
  const accounts = async () => {
    const rows = await t.app.db.selectFrom("users").select("email").where("deleted_at", "is", null).execute();
    return rows.map(({ email }) => email);
  };
  expect(await accounts()).toEqual(["ada@example.com", "eve@example.com"]);
  await damagedJobs(t);
  // What a start asks before it takes anything in.
  expect(await namedSegments(t.app.db)).toEqual([]);
  t.clock.advance("2d");
  await t.app.write((tx) => sweepUnproven(t.app, tx));
  expect(await accounts()).toEqual(["ada@example.com"]);
  const ended = await t.request("/auth/account", {
    method: "DELETE",
    headers: { "x-api-key": ada.key, "content-type": "application/json" },
    body: JSON.stringify({ confirm: "ada@example.com" }),
  });
  expect(ended.status).toBeLessThan(300);
  expect(await accounts()).toEqual([]);
});

test.each([
  ["is answered", 200, "done"],
  ["fails, and its sender is told", 400, "failed"],
])("a message of whose calls the note is damaged %s", async (_end, status, state) => {
  const reply = () => (status === 200 ? "Done." : new Response("no", { status }));
  await using room = await mailroom({ model: { reply } });
  await room.send({ text: "Say hello." });
  const { id } = await room.newest();
  const note = { message_id: id, fingerprint: "x", outcome: '{"ok":tr', created: room.app.now() };
  await room.app.db.insertInto("tool_calls").values(note).execute();
  await room.drain();
  const { steps, ...ended } = await room.newest();
  expect(ended.state).toBe(state as "done");
  // Whether the call was made is not known, and that is said.
  expect(steps).toContain("may or may not have been done");
  expect(await room.outgoing()).toHaveLength(1);
});

test("what is damaged of a domain keeps no list of domains from being shown", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  await ada.post("/custom-domains", { domain: "ai.acme.test" });
  await t.app.db.updateTable("custom_domains").set({ findings: '{"spf' }).execute();
  const { status, body } = await ada.get("/custom-domains");
  expect([status, body[0].domain]).toEqual([200, "ai.acme.test"]);
});

test("what is damaged of a mail about changes keeps nobody from the next change", async () => {
  await using t = await testApp();
  const browser = await signIn(t, "ada@example.com");
  const make = () => browser.post("/auth/api-key");
  for (let turn = 0; turn < 12; turn += 1) await make();
  const damaged = await t.app.db
    .updateTable("jobs")
    .set({ payload: '{"user_' })
    .where("kind", "=", "sum_up_notices")
    .returning("id")
    .execute();
  expect(damaged).toHaveLength(1);
  expect((await make()).status).toBe(200);
  t.clock.advance("1h");
  await t.drain();
  const last = (await t.app.db.selectFrom("outgoing_mails").selectAll().orderBy("id").execute()).at(-1);
  expect(Buffer.from(last?.raw ?? "").toString()).toContain("once more");
});
