import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Connection, Context, Inbox } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER } from "./house.ts";

/** What a proxy says while there is nobody behind it. */
const GONE = { status: 503, contentType: "text/html", body: "nobody there" };

describe.skipIf(!hasChromium)("what one meets on the second day", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;

  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: { MAILWRIGHT_LLM__KIND: "demo", MAILWRIGHT_LIMITS__INBOUND_PER_SENDER_HOUR: "1000" },
      }),
    );
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  const makeInbox = (body: object) => at.api<Inbox>("POST", "/inboxes", body);

  /** A mail from the owner to an inbox. */
  async function send({ address }: Inbox, parts: Parameters<typeof rawMail>[0]): Promise<void> {
    const [host = "", port] = (await at.said(/ready .*smtp=(\S+)/)).split(":");
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
    const raw = rawMail({ from: OWNER.email, to: address, text: "Hello", headers, ...parts });
    const said = await deliver({ host, port: Number(port) }, { from: OWNER.email, to: address, raw });
    expect(said).toStartWith("250");
  }

  test("an inbox says nothing of its model while its connections cannot be read", async () => {
    const { id } = await at.api<Connection>("POST", "/connections", { kind: "demo", label: "Own demo" });
    await makeInbox({ label: "With its own", default_connection_id: id });
    await using visit = await at.visit({ refusals: [503] });
    const { page } = visit;
    await page.route("**/connections", (route) => route.fulfill(GONE));
    await page.goto(`${at.url}/app/inboxes`);
    const card = page.getByRole("listitem").filter({ hasText: "With its own" });
    await card.getByText(/mails? today/i).waitFor();
    expect(await card.getByText("own model").count()).toBe(0);
    await page.unrouteAll();
    await page.reload();
    await card.getByText("Own demo").waitFor();
  }, 60_000);

  test.each(LOOKS)(
    "a mail that waits in a paused inbox says so, and leads there (%s)",
    async (name, look) => {
      const inbox = await makeInbox({ label: `Paused ${name}` });
      await at.api("PATCH", `/inboxes/${inbox.id}`, { paused: "keep" });
      await send(inbox, { subject: `Later ${name}` });
      await using visit = await at.visit({ look });
      const { page } = visit;
      const row = page.getByRole("listitem").filter({ hasText: `Later ${name}` });
      await row.getByText("Waits: the inbox is paused").waitFor();
      await visit.look("paused-list");
      await row.getByRole("link").click();
      await page.getByText("It waits: its inbox is paused.").waitFor();
      await page.getByText("Waits: the inbox is paused").waitFor();
      await visit.look("paused-message");
      await page.getByRole("link", { name: "The settings of this inbox" }).click();
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("It is paused:").waitFor({ state: "detached" });
      await visit.open("Activity");
      await row.getByText("Done", { exact: true }).waitFor();
    },
    60_000,
  );

  test.each(LOOKS)(
    "a context is not saved over what another tab has saved, unless one wants that (%s)",
    async (name, look) => {
      const { id } = await at.api<Context>("POST", "/contexts", {
        title: `Tone ${name}`,
        body: "Be brief.",
        kind: "instruction",
      });
      await using visit = await at.visit({ look, refusals: [409] });
      const { page } = visit;
      await page.goto(`${at.url}/app/contexts/${id}`);
      const text = page.getByLabel("Text in Markdown");
      await text.fill("Be kind.");
      await at.api("PATCH", `/contexts/${id}`, { body: "Be exact.", enabled: false });
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("This context has been changed since you read it.").waitFor();
      expect(await text.inputValue()).toBe("Be kind.");
      await visit.look("context-conflict");
      await page.getByRole("button", { name: "Save mine all the same" }).click();
      await page.getByText("Saved.").waitFor();
      // What was not changed here stays as the other tab has it.
      expect(await at.api<Context>("GET", `/contexts/${id}`)).toMatchObject({
        body: "Be kind.",
        enabled: false,
        version: 3,
      });
      await page.getByRole("button", { name: "Version 2" }).waitFor();
      await text.fill("Be both.");
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("Save mine all the same").waitFor({ state: "detached" });
      expect(await at.api<Context>("GET", `/contexts/${id}`)).toMatchObject({ version: 4 });
    },
    60_000,
  );

  test.each(LOOKS)(
    "a row of the activity names its inbox and its tags, which are given and taken on its page (%s)",
    async (name, look) => {
      const inbox = await makeInbox({ label: `Bills ${name}` });
      await send(inbox, { subject: `Invoice ${name}` });
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      const row = page.getByRole("listitem").filter({ hasText: `Invoice ${name}` });
      await row.getByText("Done", { exact: true }).waitFor();
      await row.getByText(`Bills ${name}`, { exact: true }).waitFor();
      await row.getByRole("link").click();
      await page.getByRole("button", { name: "Add a tag" }).click();
      const tag = page.getByRole("textbox", { name: "Tag", exact: true });
      await tag.fill("two words");
      await page.getByRole("button", { name: "Tag it" }).click();
      await page.getByText("A tag is one word").waitFor();
      await tag.fill("#paid");
      await page.getByRole("button", { name: "Tag it" }).click();
      await page.getByText("#paid", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Add a tag" }).click();
      await tag.fill("q3");
      await page.getByRole("button", { name: "Tag it" }).click();
      await page.getByRole("button", { name: "Take away #q3" }).waitFor();
      await visit.look("tagged-message");
      await page.getByRole("button", { name: "Take away #paid" }).click();
      await page.getByRole("button", { name: "Take away #paid" }).waitFor({ state: "detached" });
      await page.getByRole("link", { name: /^Back/ }).click();
      await row.getByText("#q3").waitFor();
      expect(await row.getByText("#paid").count()).toBe(0);
      await visit.look("tagged-list");
    },
    60_000,
  );

  test("all that is found is chosen at once, or a range of it; a bad tag costs no choice", async () => {
    const inbox = await makeInbox({ label: "Pile" });
    for (let number = 1; number <= 4; number += 1)
      await at.api("POST", "/v1/messages", { instruction: `Pile ${number}`, inbox_id: inbox.id });
    await using visit = await at.visit({ refusals: [422] });
    const { page } = visit;
    await page.getByRole("searchbox").fill("Pile");
    await page.waitForURL(/[?&]q=Pile/);
    await page.locator('li[aria-setsize="4"]').first().waitFor();
    await page.getByRole("button", { name: "Select", exact: true }).click();
    await page.getByRole("button", { name: "Select all" }).click();
    await page.getByText("4 chosen").waitFor();
    const box = (number: number) => page.getByRole("checkbox", { name: `Pile ${number}` });
    await box(4).click();
    await box(2).click({ modifiers: ["Shift"] });
    await page.getByText("1 chosen").waitFor();
    expect(await box(1).isChecked()).toBe(true);
    await box(3).click();
    await box(2).click({ modifiers: ["Shift"] });
    await page.getByText("3 chosen").waitFor();
    await page.getByRole("button", { name: "Tag", exact: true }).click();
    const tag = page.getByRole("dialog").getByRole("textbox", { name: "Tag", exact: true });
    await tag.fill("two words");
    await page.getByRole("button", { name: "Tag them" }).click();
    await page.getByText("A tag is one word").waitFor();
    await visit.look("bad-tag");
    await tag.fill("old");
    await page.getByRole("button", { name: "Tag them" }).click();
    await page.getByText("3 messages are tagged.").waitFor();
    for (const number of [2, 3]) await box(number).click();
    await visit.look("selection");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("2 messages are deleted.").waitFor();
    await page.locator('li[aria-setsize="2"]').first().waitFor();
    // The list looks again within seconds of any news.
    await Bun.sleep(3_000);
    expect(await page.getByRole("button", { name: /new message/ }).count()).toBe(0);
  }, 60_000);
});
