import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Context, Endpoint, Inbox, Me } from "../../src/dashboard/api/shapes.ts";
import { type Dashboard, dashboard, hasChromium, TASK_LOOKS } from "./house.ts";

const rule = (name: string) => ({ name, when: [], do: { tags: ["seen"] } });

describe.skipIf(!hasChromium)("what somebody has written is not lost", () => {
  let at: Dashboard;

  beforeAll(async () => {
    at = await dashboard({ env: { MAILWRIGHT_WEBHOOKS__ALLOW: "127.0.0.1" } });
  }, 120_000);

  afterAll(() => at[Symbol.asyncDispose]());

  const makeInbox = (label: string) => at.api<Inbox>("POST", "/inboxes", { label });
  const inboxNow = ({ id }: Inbox) => at.api<Inbox>("GET", `/inboxes/${id}`);

  test("rules of another tab stay when those before them are taken back", async () => {
    const inbox = await makeInbox("Rules");
    await at.api("PATCH", `/inboxes/${inbox.id}`, { rules: [rule("First")] });
    await using visit = await at.visit();
    const { page } = visit;
    await page.goto(`${at.url}/app/inboxes/${inbox.id}#rules`);
    await page.getByRole("switch", { name: /^First/ }).click();
    await page.getByText("Saved.").waitFor();
    const { rules } = await inboxNow(inbox);
    await at.api("PATCH", `/inboxes/${inbox.id}`, { rules: [...rules, rule("Second")] });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("That could not be undone. It has been changed again since then.").waitFor();
    expect((await inboxNow(inbox)).rules).toMatchObject([
      { name: "First", enabled: false },
      { name: "Second" },
    ]);
  }, 60_000);

  test("so do a choice of the default inbox, a profile, an endpoint and the contexts of an inbox", async () => {
    // The first inbox of an account is its default.
    const other = await makeInbox("Third");
    const inbox = await makeInbox("Later");
    const endpoint = await at.api<Endpoint>("POST", "/v1/webhooks", {
      url: "http://127.0.0.1:9/hook",
      description: "Wiki",
      event_types: ["message.completed"],
    });
    const [kept, added] = await Promise.all(
      ["Kept", "Added"].map((title) =>
        at.api<Context>("POST", "/contexts", { title, body: "Text.", kind: "instruction" }),
      ),
    );
    await using visit = await at.visit();
    const { page } = visit;
    const refused = async (): Promise<void> => {
      await page.getByRole("button", { name: "Undo" }).click();
      const said = page.getByText("That could not be undone. It has been changed again since then.");
      await said.waitFor();
    };
    await page.goto(`${at.url}/app/inboxes/${inbox.id}#settings`);
    await page.getByRole("button", { name: "Make this the default inbox" }).click();
    await page.getByText("Saved.").waitFor();
    await at.api("PATCH", `/inboxes/${other.id}`, { is_default: true });
    await refused();
    expect((await inboxNow(other)).is_default).toBe(true);

    await page.goto(`${at.url}/app/settings`);
    await page.getByLabel("Name", { exact: true }).fill("Ada");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Your profile is saved.").waitFor();
    await at.api("PATCH", "/auth/profile", { name: "Ada L." });
    await refused();
    expect((await at.api<Me>("GET", "/auth/me")).name).toBe("Ada L.");

    await page.goto(`${at.url}/app/webhooks/${endpoint.id}`);
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByLabel("What it is for").fill("Library");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The endpoint is changed.").waitFor();
    await at.api("PATCH", `/v1/webhooks/${endpoint.id}`, { description: "Archive" });
    await refused();
    expect((await at.api<Endpoint>("GET", `/v1/webhooks/${endpoint.id}`)).description).toBe("Archive");

    await at.api("PATCH", `/inboxes/${inbox.id}`, { context_ids: [kept?.id] });
    await page.goto(`${at.url}/app/contexts/${kept?.id}`);
    await page.getByRole("link", { name: "Later" }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete the context" }).click();
    await page.getByText("The context is deleted.").waitFor();
    await at.api("PATCH", `/inboxes/${inbox.id}`, { context_ids: [added?.id] });
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("link", { name: "Kept" }).waitFor();
    expect((await inboxNow(inbox)).context_ids).toEqual([expect.any(String), added?.id]);
  }, 60_000);

  test.each(TASK_LOOKS)(
    "settings of an inbox that are not saved are asked about (%s)",
    async (name, look) => {
      const inbox = await makeInbox(`Settings ${name}`);
      await using visit = await at.visit({ look });
      const { page } = visit;
      const asked = page.getByRole("dialog", { name: "Leave without saving?" });
      await page.goto(`${at.url}/app/inboxes/${inbox.id}#settings`);
      const words = page.getByLabel("What should be done with mail that says nothing itself?");
      await words.fill("Count the words");
      await page.getByLabel("Name", { exact: true }).fill("Counting");
      await page.getByRole("tab", { name: "Rules" }).click();
      await asked.waitFor();
      await visit.look("inbox-unsaved");
      await asked.getByRole("button", { name: "Stay here" }).click();
      expect(await words.inputValue()).toBe("Count the words");
      await page.getByRole("button", { name: "Save", exact: true }).first().click();
      await page.getByRole("heading", { name: "Counting", level: 1 }).waitFor();
      await page.getByRole("tab", { name: "Rules" }).click();
      await asked.waitFor();
      await page.keyboard.press("Escape");
      const saved = page.waitForResponse((response) => response.request().method() === "PATCH");
      await page.getByRole("button", { name: "Save", exact: true }).nth(1).click();
      await saved;
      await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
      await page.getByRole("tab", { name: "Who may write" }).click();
      await page.getByLabel("People who may write and instruct").fill("bob@example.org");
      await page.getByRole("tab", { name: "Rules" }).click();
      await asked.getByRole("button", { name: "Throw the changes away" }).click();
      await page.getByText("No rule yet").waitFor();
      expect(await inboxNow(inbox)).toMatchObject({
        label: "Counting",
        default_instruction: "Count the words",
        allowlist_senders: [],
      });
    },
  );

  test.each(TASK_LOOKS)("a window asks before what was typed into it is gone (%s)", async (name, look) => {
    const inbox = await makeInbox(`Window ${name}`);
    await using visit = await at.visit({ look });
    const { page } = visit;
    await page.goto(`${at.url}/app/inboxes/${inbox.id}#rules`);
    const editor = page.getByRole("dialog", { name: "A new rule" });
    const asked = page.getByRole("dialog", { name: "Leave without saving?" });
    const begin = page.getByRole("button", { name: "Add a rule" });
    await begin.click();
    await page.keyboard.press("Escape");
    await editor.waitFor({ state: "detached" });
    await begin.click();
    await editor.getByLabel("Name", { exact: true }).fill("Half a rule");
    await page.keyboard.press("Escape");
    await asked.getByRole("button", { name: "Go on writing" }).click();
    await asked.waitFor({ state: "detached" });
    expect(await editor.getByLabel("Name", { exact: true }).inputValue()).toBe("Half a rule");
    await editor.getByRole("button", { name: "Close", exact: true }).first().click();
    await visit.look("window-unsaved");
    await asked.getByRole("button", { name: "Throw the changes away" }).click();
    await editor.waitFor({ state: "detached" });
    await begin.click();
    expect(await editor.getByLabel("Name", { exact: true }).inputValue()).toBe("");
    await editor.getByLabel("Name", { exact: true }).fill("Another");
    await editor.getByRole("button", { name: "Cancel" }).click();
    await editor.waitFor({ state: "detached" });
    await begin.click();
    await editor.getByLabel("Name", { exact: true }).fill("Whole");
    await editor.getByRole("button", { name: "Take the condition out" }).click();
    await editor.getByLabel("Tags that it gets").fill("seen");
    await editor.getByRole("button", { name: "Save the rule" }).click();
    await editor.waitFor({ state: "detached" });
    await page.getByText("Every message: tag it #seen.").waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("no one gets that address again: not even you. Nothing brings").waitFor();
  });
});
