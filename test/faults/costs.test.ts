import { expect, test } from "bun:test";
import { startModelServer, toolCalls } from "../support/model-server.ts";
import { account, house, inbox } from "./house.ts";
import { closing, untilIdle } from "./load.ts";

/** What each answer of the stand-in costs, in millionths, and what is set aside for one. */
const COST = 7_000;
const HELD = 0.01;

const file = () =>
  toolCalls([
    { name: "files_create", args: { filename: "a.txt", content: "x", content_type: "text/plain" } },
  ]);

test("kill -9 between setting money aside and the answer gives it back; what was answered counts, each time and once", async () => {
  const answers = [file, () => new Promise<never>(() => undefined), file, () => "Done."];
  await using model = startModelServer({ reply: () => (answers.shift() ?? (() => "More."))() });
  await using at = await house({
    llm: { kind: "openai_compatible", base_url: model.base_url, model: "m" },
    costs: { prices: { own: { model: "m", kind: "openai_compatible", input: 0, output: 1_000 } } },
  });
  const owner = await account(at, "ann@client.example");
  const headers = { "x-api-key": owner.api_key, "content-type": "application/json" };
  const first = await at.start();
  await inbox(first, owner);
  // Room for the three answers, and for what is set aside for the last of them; not for what was for another.
  const budget = { monthly_budget: (2 * COST) / 1_000_000 + HELD };
  const sent = await fetch(`${first.http}/auth/profile`, {
    method: "PATCH",
    headers,
    body: JSON.stringify(budget),
  });
  expect(sent.status).toBe(200);
  const called = await fetch(`${first.http}/v1/messages`, {
    method: "POST",
    headers: { ...headers, prefer: "respond-async" },
    body: JSON.stringify({ instruction: "Make a file --max-tokens=10" }),
  });
  expect(called.status).toBe(202);
  await model.received(2);
  first.kill("SIGKILL");
  await first.exited;
  await using second = await at.start();
  await model.received(4);
  await untilIdle(at);
  second.kill("SIGTERM");
  await second.exited;
  using database = closing(at.database());
  const rows = (query: string) => database.db.prepare(query).all();
  expect(rows("select state, cost from messages")).toEqual([{ state: "done", cost: 2 * COST }]);
  expect(rows("select cost from model_costs")).toEqual([{ cost: 3 * COST }]);
  expect(model.requests).toHaveLength(4);
}, 120_000);
