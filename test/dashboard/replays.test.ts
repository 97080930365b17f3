import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { startModelServer } from "../support/model-server.ts";
import { atWidths, type Dashboard, dashboard, hasChromium, type Look } from "./house.ts";

const LOOKS: [string, Look][] = [["360-800-1280", atWidths([360, 800, 1280], "dark")]];

describe.skipIf(!hasChromium)("a message that is run again, otherwise", () => {
  const stack = new AsyncDisposableStack();
  const model = stack.use(
    startModelServer({
      reply: ({ messages }) => {
        const asked = messages.at(-1)?.content ?? "";
        return asked.includes("in French")
          ? "Le déjeuner est à midi, au jardin."
          : "Lunch is at noon, in the garden.";
      },
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
        },
      }),
    );
    await at.api("POST", "/inboxes", { label: "Desk" });
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(LOOKS)(
    "shows what is otherwise beside the answer that counts (%s)",
    async (_name, look) => {
      const instruction = "When is lunch?";
      const { message_id } = await at.api<RoutingResult>("POST", "/v1/messages", { instruction });
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/messages/${message_id}`);
      await page.getByRole("button", { name: "Run it again" }).click();
      await visit.look("replay-form");
      await page.getByRole("dialog").getByLabel("Instruction").fill(`${instruction} Say it in French.`);
      await page.getByRole("button", { name: "Run it", exact: true }).click();
      await page.getByRole("button", { name: "1: other words" }).waitFor();
      const side = page.getByRole("group", { name: "This run" });
      await side.getByText("Le déjeuner").waitFor();
      expect(await side.locator("mark").first().textContent()).toContain("Le");
      expect(await page.getByRole("group", { name: "The answer that counts" }).textContent()).toBe(
        "Lunch is at noon, in the garden.",
      );
      await visit.look("replay");
      await page.getByRole("button", { name: "Run it again" }).click();
      await page.getByLabel("Name of another model there").fill("nowhere");
      await page.getByRole("button", { name: "Run it", exact: true }).click();
      await page.getByRole("button", { name: "2: another model (failed)" }).click();
      await page.getByText('The model "nowhere" is not allowed').waitFor();
      await page.getByRole("button", { name: "Delete", exact: true }).click();
      await page.getByRole("button", { name: "Delete the run" }).click();
      await page.getByRole("button", { name: "2: another model (failed)" }).waitFor({ state: "detached" });
      await side.getByText("Le déjeuner").waitFor();
    },
    60_000,
  );
});
