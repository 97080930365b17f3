import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Inbox } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { startModelServer } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { type Dashboard, dashboard, hasChromium, type Look, OWNER } from "./house.ts";

const LOOKS: [string, Look][] = [
  ["360", { viewport: { width: 360, height: 900 }, colorScheme: "light" }],
  ["800", { viewport: { width: 800, height: 900 }, colorScheme: "dark" }],
  ["1280", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
];

describe.skipIf(!hasChromium)("rules of an inbox", () => {
  const stack = new AsyncDisposableStack();
  const model = stack.use(startModelServer());
  let at: Dashboard;
  let inbox: Inbox;

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
    inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Desk" });
    const [host = "", port] = (await at.said(/ready .*smtp=(\S+)/)).split(":");
    for (const subject of ["Your invoice", "Lunch?"]) {
      const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
      const raw = rawMail({ from: OWNER.email, to: inbox.address, subject, text: "Hello", headers });
      await deliver({ host, port: Number(port) }, { from: OWNER.email, to: inbox.address, raw });
    }
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  test.each(LOOKS)(
    "are made, tried on the mails that are here, ordered, switched off and deleted (%s)",
    async (_, look) => {
      await at.api("PATCH", `/inboxes/${inbox.id}`, { rules: [] });
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      await page.goto(`${at.url}/app/inboxes/${inbox.id}#rules`);
      await page.getByText("No rule yet").waitFor();
      await visit.look("rules-empty");
      await page.getByRole("button", { name: "Add a rule" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name", { exact: true }).fill("Invoices");
      await dialog.getByLabel("What", { exact: true }).selectOption("subject");
      await dialog.getByLabel("Has one of").fill("invoice\nbill");
      await dialog.getByLabel("What becomes of it").selectOption("keep");
      await visit.look("rules-editor");
      await dialog.getByRole("button", { name: "Try on the last 100 mails" }).click();
      await dialog.getByText("1 of 2 mails would have met a rule.").waitFor();
      await visit.look("rules-editor-tried");
      await dialog.getByRole("button", { name: "Save the rule" }).click();
      await dialog.waitFor({ state: "detached" });
      await page
        .getByText("If the subject has “invoice” or “bill”: keep it without working on it.")
        .waitFor();
      await page.getByRole("button", { name: "Try on the last 100 mails" }).click();
      await page.getByText("1 of 2 mails would have met a rule.").waitFor();
      await visit.look("rules-tried");
      await page.getByRole("button", { name: "Add a rule" }).click();
      await dialog.getByLabel("Name", { exact: true }).fill("invoices");
      await dialog.getByRole("button", { name: "Take the condition out" }).click();
      await dialog.getByLabel("Tags that it gets").fill("seen");
      await dialog.getByRole("button", { name: "Save the rule" }).click();
      await dialog.getByText("Two rules are called “invoices”.").waitFor();
      await visit.look("rules-fault");
      await dialog.getByLabel("Name", { exact: true }).fill("Seen");
      await dialog.getByRole("button", { name: "Save the rule" }).click();
      await page.getByText("Every message: tag it #seen.").waitFor();
      await page.getByRole("button", { name: "Move “Seen” up" }).click();
      const names = async () =>
        (await at.api<Inbox>("GET", `/inboxes/${inbox.id}`)).rules.map(({ name }) => name);
      await page.locator("ol > li", { hasText: "Seen" }).and(page.locator(":first-child")).waitFor();
      expect(await names()).toEqual(["Seen", "Invoices"]);
      await page.getByRole("switch", { name: /^Seen/ }).click();
      await page.getByRole("switch", { name: /^Seen/, checked: false }).waitFor();
      await page.getByRole("button", { name: "Delete “Invoices”" }).click();
      await page.getByText("keep it without working on it").waitFor({ state: "detached" });
      expect((await at.api<Inbox>("GET", `/inboxes/${inbox.id}`)).rules).toMatchObject([
        { name: "Seen", enabled: false },
      ]);
    },
    60_000,
  );
});
