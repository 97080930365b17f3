import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Inbox } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { startModelServer } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { atWidths, type Dashboard, dashboard, hasChromium, type Look, OWNER } from "./house.ts";

const LOOKS: [string, Look][] = [["360-800-1280", atWidths([360, 800, 1280], "light")]];

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

  test.each(LOOKS)(
    "say whose clock they go by, and what they would have given each mail (%s)",
    async (_, look) => {
      const rules = [
        {
          name: "Night",
          when: [{ field: "time", from: "00:00", to: "23:59", zone: "Europe/Berlin" }],
          do: { tags: ["late"], instruction: "Sum it up", wait: { until: "08:00", zone: "Asia/Tokyo" } },
        },
      ];
      await at.api("PATCH", `/inboxes/${inbox.id}`, { rules });
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/inboxes/${inbox.id}#rules`);
      await page.getByRole("button", { name: "Change “Night”" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("By the clock of Europe/Berlin.").waitFor();
      await dialog.getByText("By the clock of Asia/Tokyo.").waitFor();
      expect(await dialog.getByText("your time zone").count()).toBe(0);
      await dialog.getByRole("button", { name: "Try on the last 100 mails" }).click();
      await dialog
        .getByText(
          "Night: let it wait until 08:00 (Asia/Tokyo), ask for “Sum it up” where it asks for nothing and tag it #late",
        )
        .first()
        .scrollIntoViewIfNeeded();
      await visit.look("rules-given");
    },
    60_000,
  );

  test.each(LOOKS)(
    "that were changed meanwhile leave what was typed where it is, and take it in all the same (%s)",
    async (_, look) => {
      const rule = (name: string, tag: string) => ({ name, when: [], do: { tags: [tag] } });
      const path = `/inboxes/${inbox.id}`;
      await at.api("PATCH", path, { rules: [rule("One", "one"), rule("Two", "two")] });
      await using visit = await at.visit({ look, refusals: [409] });
      const { page } = visit;
      await page.goto(`${at.url}/app/inboxes/${inbox.id}#rules`);
      await page.getByRole("button", { name: "Change “Two”" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Tags that it gets").fill("mine");
      await at.api("PATCH", path, { rules: [rule("Two", "theirs"), rule("Three", "three")] });
      await dialog.getByRole("button", { name: "Save the rule" }).click();
      await dialog.getByText("have been changed since you read them").waitFor();
      await dialog.getByText("it takes the place of “Two”").waitFor();
      expect(await dialog.getByLabel("Tags that it gets").inputValue()).toBe("mine");
      await dialog.getByRole("button", { name: "Save mine all the same" }).scrollIntoViewIfNeeded();
      await visit.look("rules-conflict");
      await dialog.getByRole("button", { name: "Save the rule" }).click();
      await dialog.getByRole("button", { name: "Save mine all the same" }).click();
      await dialog.waitFor({ state: "detached" });
      const now = async () => (await at.api<Inbox>("GET", path)).rules;
      expect(await now()).toMatchObject([rule("Two", "mine"), rule("Three", "three")]);
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("It is as it was before.").waitFor();
      expect(await now()).toMatchObject([rule("Two", "theirs"), rule("Three", "three")]);
    },
    60_000,
  );
});
