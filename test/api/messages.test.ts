import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";

test("runs an instruction through the only inbox and charges one credit", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const answer = await ada.post("/v1/messages", { instruction: "Summarise", content: "Pay by Friday." });
  expect(answer.status).toBe(200);
  expect(answer.body).toMatchObject({
    status: "done",
    error: null,
    credits: { charged: 1, remaining: 9_999 },
  });
  expect(answer.body.result).toContain("Pay by Friday.");
});

test("answers 401 before it looks at the body", async () => {
  await using t = await testApp();
  const answer = await t.request("/v1/messages", { method: "POST", body: "not json" });
  expect(answer.status).toBe(401);
  expect(answer.headers.get("www-authenticate")).toBe('ApiKey realm="mailwright"');
  expect(answer.body.code).toBe("unauthorized");
});

test("names the missing member", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/v1/messages", {});
  expect(answer.status).toBe(422);
  expect(answer.body.errors).toEqual([{ path: "body.instruction", code: "missing", message: "is required" }]);
});
