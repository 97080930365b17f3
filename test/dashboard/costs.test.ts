import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { atWidths, type Dashboard, dashboard, hasChromium } from "./house.ts";
import { until } from "../support/until.ts";

const WIDTHS = [390, 768, 1440];

const dollars = (sum: number): string =>
  new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" }).format(sum);

describe.skipIf(!hasChromium)("costs and budgets", () => {
  let at: Dashboard;
  let model: ModelServer;
  let ids = { inbox: "", connection: "", message: "" };

  beforeAll(async () => {
    model = startModelServer();
    at = await dashboard({
      env: {
        MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1",
        MAILWRIGHT_COSTS__PRICES__OWN__MODEL: "*",
        MAILWRIGHT_COSTS__PRICES__OWN__KIND: "openai_compatible",
        MAILWRIGHT_COSTS__PRICES__OWN__INPUT: "1000",
        MAILWRIGHT_COSTS__PRICES__OWN__OUTPUT: "60000",
      },
    });
    const { id: connection } = await at.api<{ id: string }>("POST", "/connections", {
      kind: "openai_compatible",
      label: "The paid one",
      base_url: model.base_url,
      model: "m",
      monthly_budget: 500,
    });
    const { id: inbox } = await at.api<{ id: string }>("POST", "/inboxes", {
      label: "Support",
      default_connection_id: connection,
    });
    const { message_id } = await at.api<{ message_id: string }>("POST", "/v1/messages", {
      instruction: "Say it",
      inbox_id: inbox,
    });
    await at.api("POST", `/messages/${message_id}/replay`, {});
    ids = { inbox, connection, message: message_id };
    const isDone = async () =>
      (await at.api<{ status: string }[]>("GET", `/messages/${message_id}/replays`))[0]?.status === "done";
    await until(isDone);
  }, 120_000);

  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await model[Symbol.asyncDispose]();
  });

  test("pages show what was spent, and budgets are set", async () => {
    const budget = 390;
    await using visit = await at.visit({ look: atWidths(WIDTHS, "light") });
    const { page } = visit;
    await page.goto(`${at.url}/app/messages/${ids.message}`);
    await page.getByText("cost $0.43").waitFor();
    await page.getByRole("row", { name: /The one that counts.*\$0\.43/ }).waitFor();
    await visit.look(`costs-message`);
    for (const [path, field] of [
      ["settings", "What models may cost for all inboxes in a month, in USD"],
      [`inboxes/${ids.inbox}`, "What models may cost for this inbox in a month, in USD"],
      [`connections/${ids.connection}`, "What its models may cost in a month, in USD"],
    ] as const) {
      await page.goto(`${at.url}/app/${path}`);
      if (path.startsWith("inboxes")) await page.getByRole("tab", { name: "Settings" }).click();
      await page.getByLabel(field).fill(String(budget));
      await page.getByRole("button", { name: "Set the budget" }).click();
      await page.getByText(`Saved: ${dollars(budget)} in a month.`).waitFor();
      expect(await page.getByLabel(field).inputValue()).toBe(String(budget));
      await visit.look(`costs-${path.split("/")[0]}`);
    }
    await visit.open("Usage");
    await page.getByText("$0.86").first().waitFor();
    await page
      .getByRole("row", { name: /Support/ })
      .first()
      .waitFor();
    expect(await page.getByRole("row", { name: /The paid one/ }).innerText()).toContain(dollars(budget));
    await visit.look(`costs-usage`);
  }, 60_000);

  test.each([
    ["5,50", 5.5],
    ["5.50", 5.5],
    [".5", 0.5],
    ["1,500", null],
    ["1.500,00", null],
    ["5,50 USD", null],
  ])(
    "a budget of %s, typed in an English browser, is %p; what may be something else is not taken",
    async (typed, budget) => {
      await at.api("PATCH", `/inboxes/${ids.inbox}`, { monthly_budget: 0.25 });
      await using visit = await at.visit();
      const { page } = visit;
      await page.goto(`${at.url}/app/inboxes/${ids.inbox}`);
      await page.getByRole("tab", { name: "Settings" }).click();
      const field = page.getByLabel("What models may cost for this inbox in a month, in USD");
      await field.fill("");
      await field.pressSequentially(typed);
      await page.getByRole("button", { name: "Set the budget" }).click();
      if (budget === null) await page.locator("input:invalid").waitFor();
      else await page.getByText(`Saved: ${dollars(budget)} in a month.`).waitFor();
      const { monthly_budget } = await at.api<{ monthly_budget: number }>("GET", `/inboxes/${ids.inbox}`);
      expect(monthly_budget).toBe(budget ?? 0.25);
    },
  );

  test("a budget is taken away by emptying its field, and what it held is said on the page of the message", async () => {
    await at.api("PATCH", `/inboxes/${ids.inbox}`, { monthly_budget: 0.01 });
    const limited = await at.api<{ message_id: string; status: string }>("POST", "/v1/messages", {
      instruction: "Say it",
      inbox_id: ids.inbox,
    });
    expect(limited.status).toBe("limited");
    await using visit = await at.visit();
    const { page } = visit;
    await page.goto(`${at.url}/app/messages/${limited.message_id}`);
    await page.getByText(/the monthly budget of the inbox “Support”: 0\.01 USD/).waitFor();
    await page.getByRole("link", { name: "What models have cost, and your budgets" }).waitFor();
    await visit.look("costs-limited");
    await page.goto(`${at.url}/app/inboxes/${ids.inbox}`);
    await page.getByRole("tab", { name: "Settings" }).click();
    await page.getByLabel(/^What models may cost for this inbox/).fill("");
    await page.getByRole("button", { name: "Set the budget" }).click();
    await page.getByText("Saved: no limit.").waitFor();
    const { monthly_budget } = await at.api<{ monthly_budget: number | null }>(
      "GET",
      `/inboxes/${ids.inbox}`,
    );
    expect(monthly_budget).toBeNull();
  }, 60_000);
});
