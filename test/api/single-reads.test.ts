import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";

test("an inbox is read as the list shows it, also one that rests beyond the plan", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const ids: string[] = [];
  for (let turn = 0; turn < 5; turn++) ids.push((await ada.post("/inboxes", { label: `${turn}` })).body.id);
  await t.app.write((tx) => tx.updateTable("users").set({ plan: "free" }).execute());
  const listed = (await ada.get("/inboxes")).body;
  for (const [index, id] of ids.entries())
    expect((await ada.get(`/inboxes/${id}`)).body).toEqual(listed[index]);
  await ada.delete(`/inboxes/${ids[0]}`);
  expect((await ada.get(`/inboxes/${ids[0]}`)).status).toBe(404);
});

test("a connection is read as the list shows it, with its uses and without its secret", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const made = await ada.post("/connections", { kind: "openai", credential: "sk-very-secret-1234" });
  await ada.post("/inboxes", { default_connection_id: made.body.id });
  const { status, body } = await ada.get(`/connections/${made.body.id}`);
  expect([status, body]).toEqual([200, (await ada.get("/connections")).body[0]]);
  expect(body.used_by_inboxes).toBe(1);
  expect(JSON.stringify(body)).not.toContain("very-secret");
});
