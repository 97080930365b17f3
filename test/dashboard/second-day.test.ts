import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Connection, Context, Endpoint, Inbox, RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { startModelServer } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER } from "./house.ts";

/** What a proxy says while there is nobody behind it. */
const GONE = { status: 503, contentType: "text/html", body: "nobody there" };

describe.skipIf(!hasChromium)("what one meets on the second day", () => {
  const stack = new AsyncDisposableStack();
  const model = stack.use(startModelServer({ reply: () => "## Birds\n\nThe `whimbrel` sings **loudly**." }));
  let at: Dashboard;

  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "demo",
          MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1",
          MAILWRIGHT_WEBHOOKS__ALLOW: "127.0.0.1",
        },
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

  test("what another tab has changed of an inbox stays as it is when this one saves something else", async () => {
    const inbox = await makeInbox({ label: "Two tabs" });
    await using visit = await at.visit();
    const { page } = visit;
    await page.goto(`${at.url}/app/inboxes/${inbox.id}#settings`);
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("Both tabs");
    await at.api("PATCH", `/inboxes/${inbox.id}`, { retention_days: 30 });
    const [sent] = await Promise.all([
      page.waitForRequest((request) => request.method() === "PATCH"),
      page.getByRole("button", { name: "Save", exact: true }).first().click(),
    ]);
    expect(sent.postDataJSON()).toEqual({ label: "Both tabs" });
    await page.getByText("Saved.").first().waitFor();
    expect((await at.api<Inbox>("GET", `/inboxes/${inbox.id}`)).retention_days).toBe(30);
    await page.goto(`${at.url}/app/settings`);
    await page.getByLabel("Name", { exact: true }).fill("Ada L.");
    const [profile] = await Promise.all([
      page.waitForRequest((request) => request.method() === "PATCH"),
      page.getByRole("button", { name: "Save", exact: true }).first().click(),
    ]);
    expect(profile.postDataJSON()).toEqual({ name: "Ada L." });
    await page.getByText("Your profile is saved.").waitFor();
    await at.api("PATCH", "/auth/profile", { name: null });
  });

  test.each(LOOKS)(
    "a row of the activity names its inbox and its tags, which are given and taken on its page (%s)",
    async (name, look) => {
      // A row names no inbox that is the only one.
      await makeInbox({ label: `Others ${name}` });
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

  test.each(LOOKS)(
    "a delivery that failed says when it is tried again, and its endpoint that some do (%s)",
    async (name, look) => {
      const inbox = await makeInbox({ label: `Told ${name}` });
      let status = 500;
      await using receiver = startReceiver(() => new Response(null, { status }));
      const endpoint = await at.api<Endpoint>("POST", "/v1/webhooks", {
        url: receiver.url,
        event_types: ["message.completed"],
      });
      const { message_id } = await at.api<RoutingResult>("POST", "/v1/messages", {
        instruction: "Tell them",
        inbox_id: inbox.id,
      });
      await receiver.reached(1);
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Webhooks");
      await page.getByText("1 failed, to be tried again").waitFor();
      await visit.look("failing-endpoints");
      await page.locator(`a[href$="${endpoint.id}"]`).click();
      await page.getByText(/^Will be tried again (in|just)/).waitFor();
      await page.getByText("1 failed, to be tried again").waitFor();
      await visit.look("failing-endpoint");
      await page.goto(`${at.url}/app/messages/${message_id}`);
      await page.getByText(/^Will be tried again (in|just)/).waitFor();
      // Who has mended the receiver need not wait.
      status = 204;
      await page.goto(`${at.url}/app/webhooks/${endpoint.id}`);
      await page.getByText(/^Will be tried again in/).click();
      await visit.look("waiting-delivery");
      await page.getByRole("button", { name: "Try it now" }).click();
      await page.getByText("Delivered").waitFor();
      await receiver.reached(2);
      await at.api("DELETE", `/v1/webhooks/${endpoint.id}`);
    },
    60_000,
  );

  test("an inbox tells of a failure until something has gone well, and a find is shown without marks", async () => {
    const connection = await at.api<Connection>("POST", "/connections", {
      kind: "openai_compatible",
      base_url: model.base_url,
      model: "stand-in",
    });
    const inbox = await makeInbox({ label: "Shaky", default_connection_id: connection.id });
    const call = () =>
      at.api("POST", "/v1/messages", { instruction: "What does it say?", inbox_id: inbox.id });
    await using visit = await at.visit();
    const { page } = visit;
    const card = page.getByRole("listitem").filter({ hasText: "Shaky" });
    model.fault = "unauthorized";
    await call();
    await visit.open("Inboxes");
    await card.getByText(/^Last failure:/).waitFor();
    model.fault = "none";
    await call();
    await page.reload();
    await card.getByText(/mails? today/i).waitFor();
    expect(await card.getByText(/^Last failure:/).count()).toBe(0);
    await visit.open("Activity");
    await page.getByRole("searchbox").fill("whimbrel");
    await page.locator('li[aria-setsize="1"]').getByText("The whimbrel sings loudly.").waitFor();
  }, 60_000);

  test("waiting work names its account, and what was left out is not put on rules", async () => {
    const inbox = await makeInbox({ label: "Clock" });
    await at.api("POST", "/v1/schedules", { instruction: "Sum up", every: "hourly", inbox_id: inbox.id });
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>`, "Auto-Submitted": "auto-replied" };
    await send(inbox, { subject: "I am away", headers });
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Server");
    await page.getByText("Left out", { exact: true }).waitFor();
    await page.getByRole("tab", { name: "Waiting work" }).click();
    const row = page.getByRole("listitem").filter({ hasText: `a schedule of ${inbox.address}` });
    await row.getByText(`Account ${OWNER.email}`).waitFor();
    await visit.look("waiting-work");
  }, 60_000);

  test.each([800, 1280])(
    "contexts stand in columns (%s)",
    async (width) => {
      for (const [title, kind] of [
        ["A", "instruction"],
        ["A context with a much longer title than the others", "knowledge"],
      ])
        await at.api("POST", "/contexts", { title, body: "Text", kind });
      await using visit = await at.visit({
        look: { viewport: { width, height: 900 }, colorScheme: "light" },
      });
      const { page } = visit;
      await visit.open("Contexts");
      const rows = page.getByRole("main").getByRole("listitem");
      await rows.first().waitFor();
      const places = await rows
        .getByText("Every inbox")
        .evaluateAll((cells) => cells.map((cell) => Math.round(cell.getBoundingClientRect().left)));
      expect(places.length).toBeGreaterThan(1);
      expect(new Set(places).size).toBe(1);
      await visit.look("contexts-columns");
    },
    60_000,
  );

  test("a new inbox asks for its name, tells of one that is too long, and offers no model that is not there", async () => {
    await using bare = await dashboard();
    await bare.api("POST", "/inboxes", { label: "First" });
    await using visit = await bare.visit({ refusals: [422] });
    const { page } = visit;
    await visit.open("Inboxes");
    await page.getByRole("button", { name: "New inbox" }).click();
    const name = page.getByRole("textbox", { name: "Name" });
    expect(await page.getByRole("option", { name: /server/ }).count()).toBe(0);
    await page.getByRole("button", { name: "Make the inbox" }).click();
    await name.and(page.locator(":invalid:focus")).waitFor();
    await name.fill("x".repeat(120));
    await page.getByRole("button", { name: "Make the inbox" }).click();
    await name.and(page.locator("[aria-invalid=true]")).waitFor();
    await page.getByText(/at most 100 characters/).waitFor();
    await visit.look("new-inbox");
    expect(await bare.api<Inbox[]>("GET", "/inboxes")).toHaveLength(1);
  }, 60_000);
});
