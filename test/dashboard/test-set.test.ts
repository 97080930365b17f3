import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { startModelServer } from "../support/model-server.ts";
import { atWidths, type Dashboard, dashboard, hasChromium, type Look } from "./house.ts";

const LOOKS: [string, Look][] = [["390-768-1440", atWidths([390, 768, 1440], "dark")]];

describe.skipIf(!hasChromium)("the test set", () => {
  const stack = new AsyncDisposableStack();
  const answers: Record<string, string> = {};
  const model = stack.use(
    startModelServer({
      reply: ({ messages, model: name }) => {
        const asked = messages.at(-1)?.content ?? "";
        const [, word = "lunch"] = /When is (\w+)/.exec(asked) ?? [];
        return answers[name] ?? `The ${word} is at noon, in the garden.`;
      },
      models: ["stand-in", "other"],
    }),
  );
  let at: Dashboard;
  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "openai_compatible",
          MAILWRIGHT_LLM__BASE_URL: model.base_url,
          MAILWRIGHT_LLM__MODEL: "stand-in",
          MAILWRIGHT_LLM__MODELS: "other",
        },
      }),
    );
    await at.api("POST", "/inboxes", { label: "Desk" });
    await using visit = await at.visit();
    await visit.open("Test set");
    await visit.page.getByText("No message is starred yet").waitFor();
    await visit.look("test-set-empty");
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(LOOKS)(
    "is filled on the pages of messages, run against another model, and shown as a table (%s)",
    async (_name, look) => {
      const ask = (word: string) =>
        at.api<RoutingResult>("POST", "/v1/messages", { instruction: `When is ${word}?` });
      const [lunch, dinner] = [await ask("lunch"), await ask("dinner")];
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      await page.goto(`${at.url}/app/messages/${lunch.message_id}`);
      await page.getByRole("button", { name: "Star it as a test" }).click();
      const dialog = page.getByRole("dialog");
      const text = dialog.getByLabel("Expected answer", { exact: true });
      expect(await text.inputValue()).toBe("The lunch is at noon, in the garden.");
      await visit.look("test-set-star");
      await dialog.getByLabel("The answer").selectOption("schema");
      await dialog.getByRole("button", { name: "Star it" }).click();
      await dialog.getByText("This is no JSON object.").waitFor();
      await text.fill('{"pattern": "a"}');
      await dialog.getByRole("button", { name: "Star it" }).click();
      await dialog.getByText("`pattern` is not checked here").first().waitFor();
      await dialog.getByLabel("The answer").selectOption("contains");
      await text.fill("noon");
      await dialog.getByRole("button", { name: "Star it" }).click();
      await page.getByText("It contains “noon”.").waitFor();
      await visit.look("test-set-starred");
      const expected = { equals: "The dinner is at eight." };
      await at.api("PATCH", `/messages/${dinner.message_id}`, { expected });

      await page.getByRole("link", { name: "The test set" }).click();
      await page.getByText("2 starred messages").waitFor();
      await page.getByRole("button", { name: "Run the test set" }).click();
      await visit.look("test-set-form");
      await page.getByLabel("Name of another model there").fill("other");
      await page.getByRole("button", { name: "Run it", exact: true }).click();
      await page.getByRole("status").getByText("1 of 2 passed, 1 failed").waitFor();
      const table = page.getByRole("group", { name: "What became of each message" });
      await table.getByText("Expected “The dinner is at eight.”, but it says").waitFor();
      await page.getByRole("button", { name: "other, today’s contexts" }).waitFor();
      await table.getByRole("button", { name: "Compare the answers to When is lunch?" }).click();
      await page.getByText("It says the very same.").waitFor();
      await visit.look("test-set");

      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("button", { name: "Delete the run" }).click();
      await table.waitFor({ state: "detached" });
      for (const word of ["lunch", "dinner"]) {
        await page.getByRole("button", { name: `Expected answer to When is ${word}?` }).click();
        await page.getByRole("button", { name: "Take the star away" }).click();
        await dialog.waitFor({ state: "detached" });
      }
      await page.getByText("No message is starred yet").waitFor();
    },
    60_000,
  );
});
