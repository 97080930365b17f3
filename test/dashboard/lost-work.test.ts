import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Context, Endpoint, Inbox, Me } from "../../src/dashboard/api/shapes.ts";
import { type Dashboard, dashboard, hasChromium } from "./house.ts";

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
    const inbox = await makeInbox("Later");
    const other = await makeInbox("Third");
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
});
