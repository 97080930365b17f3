import { expect, test } from "bun:test";
import { sweepUnproven } from "../../src/resources/accounts/unproven.ts";
import { namedSegments } from "../../src/db/segment-rows.ts";
import { JOB_RULES, type JobKind } from "../../src/jobs/kinds.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { testApp, type TestApp } from "../support/app.ts";

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
