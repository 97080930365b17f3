import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "../support/until.ts";
import type { Inbox, RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { startModelServer } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import {
  atWidth,
  atWidths,
  type Dashboard,
  dashboard,
  hasChromium,
  type Look,
  OWNER,
  settled,
} from "./house.ts";

const LOOKS: [string, Look][] = [["360-800-1280", atWidths([360, 800, 1280], "light")]];

describe.skipIf(!hasChromium)("everyday use", () => {
  const stack = new AsyncDisposableStack();
  let held = Promise.withResolvers<string>();
  const model = stack.use(
    startModelServer({
      reply: async ({ messages }) => {
        const said = messages.map(({ content }) => content).join("\n");
        return said.includes("Hold the line") ? held.promise : "Answered at last.";
      },
    }),
  );
  let at: Dashboard;
  let inbox: Inbox;

  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "openai_compatible",
          MAILWRIGHT_LLM__BASE_URL: model.base_url,
          MAILWRIGHT_LLM__MODEL: "stand-in",
          MAILWRIGHT_PLANS__FREE__CREDITS: "0",
          MAILWRIGHT_WEBHOOKS__ALLOW: "127.0.0.1",
          MAILWRIGHT_WEBHOOKS__BACKOFF: "0",
          MAILWRIGHT_WEBHOOKS__DISABLE_AFTER: "100",
          MAILWRIGHT_INBOXES__CHOSEN_ADDRESSES: "everywhere",
        },
      }),
    );
    inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Desk" });
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  async function send(parts: Parameters<typeof rawMail>[0], from = OWNER.email): Promise<string> {
    const [host = "", port] = (await at.said(/ready .*smtp=(\S+)/)).split(":");
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
    const raw = rawMail({ from, to: inbox.address, headers, ...parts });
    return deliver({ host, port: Number(port) }, { from, to: inbox.address, raw });
  }

  const call = (instruction: string) =>
    at.api<RoutingResult>("POST", "/v1/messages", { instruction, inbox_id: inbox.id });

  test.each(LOOKS)(
    "a message shows its answer first, leads to its neighbours and back, and goes on right there (%s)",
    async (name, look) => {
      for (const n of [1, 2, 3]) await call(`Number ${n} at ${name}`);
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.getByRole("searchbox").fill(`at ${name}`);
      await page.waitForURL(/[?&]q=/);
      await page.locator('li[aria-setsize="3"]').first().waitFor();
      await page.getByRole("link", { name: `Number 2 at ${name}` }).click();
      await page.getByRole("heading", { name: `Number 2 at ${name}`, level: 1 }).waitFor();
      const cards = page.locator("main h2");
      await cards.first().waitFor();
      expect((await cards.allInnerTexts()).slice(0, 2)).toEqual(["The answer", "Who wrote it"]);
      await page.getByRole("link", { name: "Newer" }).click();
      await page.getByRole("heading", { name: `Number 3 at ${name}`, level: 1 }).waitFor();
      await page.getByRole("link", { name: "Older" }).click();
      await page.getByRole("heading", { name: `Number 2 at ${name}`, level: 1 }).waitFor();
      await page.getByRole("link", { name: "Older" }).click();
      await page.getByRole("heading", { name: `Number 1 at ${name}`, level: 1 }).waitFor();
      await page.getByRole("link", { name: "Older" }).waitFor({ state: "detached" });
      await page.getByRole("textbox", { name: "Instruction" }).fill("Go on");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("link", { name: "How this answer came about" }).waitFor();
      await visit.look("message");
      await page.getByRole("link", { name: "Back to the activity" }).click();
      await page.locator('li[aria-setsize="3"]').first().waitFor();
      expect(await page.getByRole("searchbox").inputValue()).toBe(`at ${name}`);
    },
    60_000,
  );

  test("who types and opens a message before the list has followed is not led back", async () => {
    await call("To be opened");
    await using visit = await at.visit();
    const { page } = visit;
    const typing = 1_000;
    // The page of a message takes its time to arrive.
    await page.route(/\.js$/, async (route) => {
      await Bun.sleep(typing);
      await route.continue();
    });
    await page.getByRole("searchbox").fill("opened");
    await page.getByRole("link", { name: "To be opened" }).click();
    await page.getByRole("heading", { name: "To be opened", level: 1 }).waitFor();
    await Bun.sleep(typing);
    expect(new URL(page.url()).pathname).toStartWith("/app/messages/");
  });

  test.each(LOOKS)(
    "a run shows its seconds and is cancelled (%s)",
    async (name, look) => {
      held = Promise.withResolvers<string>();
      await send({
        subject: `Wait ${name}`,
        text: "Hold the line",
        headers: {
          "Message-ID": `<${Bun.randomUUIDv7()}@example.org>`,
          Cc: "Bob <bob@example.net>, carl@example.net",
        },
      });
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.getByRole("link", { name: `Wait ${name}` }).click();
      await page.getByRole("heading", { name: "It is being worked on" }).waitFor();
      await page
        .getByRole("timer")
        .filter({ hasText: /^[1-9]\d* s so far/ })
        .waitFor();
      await page.getByText(`To ${inbox.address}`, { exact: true }).waitFor();
      await page.getByText("Cc bob@example.net, carl@example.net", { exact: true }).waitFor();
      await visit.look("working");
      await page.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Cancel it" }).click();
      await page.getByText("It was cancelled before it was done.").waitFor();
      await page.getByRole("button", { name: "Try again" }).waitFor();
      held.resolve("Too late.");
      await visit.look("cancelled");
    },
    60_000,
  );

  test("several messages are deleted at once, and brought back; others are tagged and found", async () => {
    for (const n of [1, 2, 3]) await call(`Heap ${n}`);
    await using visit = await at.visit({ look: atWidth(360, "dark") });
    const { page } = visit;
    await page.getByRole("searchbox").fill("Heap");
    await page.waitForURL(/[?&]q=Heap/);
    await page.locator('li[aria-setsize="3"]').first().waitFor();
    await page.getByRole("button", { name: "Select" }).click();
    for (const n of [1, 2]) await page.getByRole("checkbox", { name: `Heap ${n}` }).check();
    await visit.look("selecting");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("2 messages are deleted.").waitFor();
    await page.locator('li[aria-setsize="1"]').waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.locator('li[aria-setsize="3"]').first().waitFor();
    await page.getByRole("checkbox", { name: "Heap 3" }).check();
    await page.getByRole("button", { name: "Tag" }).click();
    await page.getByRole("textbox", { name: "Tag", exact: true }).fill("#paid");
    await page.getByRole("button", { name: "Tag them" }).click();
    await page.getByText("1 message is tagged.").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    const found = await at.api<{ items: { subject: string }[] }>("GET", "/messages?tag=paid");
    expect(found.items.map(({ subject }) => subject)).toEqual(["Heap 3"]);
  }, 60_000);

  test("a message and a conversation are deleted from their pages, and brought back", async () => {
    await call("To be deleted");
    await using visit = await at.visit();
    const { page } = visit;
    const row = page.getByRole("link", { name: "To be deleted" });
    await row.click();
    await page.getByRole("button", { name: "Delete this message" }).click();
    await page.getByText("The message is deleted.").waitFor();
    await page.getByRole("searchbox").waitFor();
    expect(await row.count()).toBe(0);
    await page.getByRole("button", { name: "Undo" }).click();
    await row.click();
    await page.getByRole("link", { name: "The conversation" }).click();
    // The page of the message has such a field too.
    await page.getByText("The oldest turn first").waitFor();
    await page.getByRole("textbox", { name: "Instruction" }).fill("Go on here");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("Go on here").waitFor();
    await page.getByText("Answered at last.").nth(1).waitFor();
    await visit.look("conversation-goes-on");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("The conversation is deleted").waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByRole("link", { name: /To be deleted/ }).waitFor();
  }, 60_000);

  test.each(LOOKS)(
    "the list of inboxes says what goes on; one is paused, told what to do, and goes on (%s)",
    async (name, look) => {
      const made = await at.api<Inbox>("POST", "/inboxes", { label: `Shop ${name}` });
      await using visit = await at.visit({ look });
      const { page } = visit;
      const asked = page.waitForRequest((request) => new URL(request.url()).pathname === "/inboxes");
      await visit.open("Inboxes");
      // What the dashboard says wrongly is an error, and not a warning that nobody sees.
      expect((await asked).headers()["mailwright-strict"]).toBe("1");
      await page.getByText("The server’s own model").first().waitFor();
      await page
        .getByText(/mails? today/i)
        .first()
        .waitFor();
      await visit.look("inboxes");
      await page
        .getByRole("listitem")
        .filter({ hasText: `Shop ${name}` })
        .getByRole("link", { name: "Its activity" })
        .click();
      await page.waitForURL(`**/app/?inbox_id=${made.id}`);
      await page.goBack();
      await page.getByRole("link", { name: `Shop ${name}`, exact: true }).click();
      await page.getByRole("tab", { name: "Settings" }).click();
      await page.getByLabel(/mail that says nothing itself/).fill("Sum it up");
      await page
        .locator("section", { hasText: "Mail without words" })
        .getByRole("button", { name: "Save" })
        .click();
      await page.getByText("Saved.").waitFor();
      await page.getByLabel("Is this inbox paused?").selectOption("Yes: take new mail, and let it wait here");
      await page.getByText("It is paused:").waitFor();
      await visit.look("paused-inbox");
      const path = `/inboxes/${made.id}`;
      expect(await at.api<Inbox>("GET", path)).toMatchObject({
        paused: "keep",
        default_instruction: "Sum it up",
      });
      await page.reload();
      await page.getByRole("tab", { name: "Settings", selected: true }).waitFor();
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("It is paused:").waitFor({ state: "detached" });
      await at.api("DELETE", path);
    },
    60_000,
  );

  test("an inbox gets the address that its owner wants", async () => {
    await using visit = await at.visit({ refusals: [422] });
    const { page } = visit;
    await visit.open("Inboxes");
    await page.getByRole("button", { name: "New inbox" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Billing");
    await page.getByRole("checkbox", { name: "Choose the whole address" }).check();
    const field = page.getByRole("textbox", { name: "Address" });
    await field.fill("postmaster");
    await page.getByRole("button", { name: "Make the inbox" }).click();
    await page.getByText("is kept for who runs a mail server").waitFor();
    await visit.look("chosen-address");
    await field.fill("billing");
    await page.getByRole("button", { name: "Make the inbox" }).click();
    await page.getByRole("heading", { name: "Billing", level: 1 }).waitFor();
    await page.getByText(/^billing@/).waitFor();
  }, 60_000);

  test("a refused sender is allowed from the message, and the first entry of a list is asked about", async () => {
    const path = `/inboxes/${inbox.id}`;
    await at.api("PATCH", path, { allowlist_senders: ["bob@example.net"] });
    expect(await send({ subject: "Let me in", text: "Hello" }, "grace@example.net")).toStartWith("550");
    await using visit = await at.visit({ look: atWidth(360, "light") });
    const { page } = visit;
    await page.getByRole("link", { name: "Let me in" }).click();
    await page.getByRole("link", { name: "Who may write to this inbox" }).waitFor();
    await page.getByRole("button", { name: "Allow this sender" }).click();
    await page.getByText("ask them to send it again").waitFor();
    await visit.look("allow-sender");
    await page.getByRole("dialog").getByRole("button", { name: "Allow this sender" }).click();
    await page.getByText("Saved.").waitFor();
    expect((await at.api<Inbox>("GET", path)).allowlist_senders).toEqual([
      "bob@example.net",
      "grace@example.net",
    ]);
    await at.api("PATCH", path, { allowlist_senders: [] });
    await page.reload();
    await page.getByRole("button", { name: "Allow this sender" }).click();
    await page.getByText("mail from everybody who is not on it would be refused").waitFor();
    await page.getByRole("button", { name: "Leave it as it is" }).click();
    await page.getByRole("link", { name: "Who may write to this inbox" }).click();
    await page.getByRole("tab", { name: "Who may write", selected: true }).waitFor();
    await page.getByLabel("People who may write and instruct").fill("grace@example.net");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Until now anybody may write to this inbox").waitFor();
    await page.getByRole("button", { name: "Leave it as it is" }).click();
    expect((await at.api<Inbox>("GET", path)).allowlist_senders).toEqual([]);
  }, 60_000);

  test("why a mail was not answered is said beside its answer, with the way to the switch", async () => {
    const path = `/inboxes/${inbox.id}`;
    await at.api("PATCH", path, { reply_enabled: false });
    await send({ subject: "No answer", text: "Hello" });
    await using visit = await at.visit({ look: atWidth(390, "light") });
    const { page } = visit;
    await page.getByRole("link", { name: "No answer" }).click();
    await page.getByText("No answer was mailed: the inbox is set to answer nobody.").waitFor();
    await visit.look("not-answered");
    await page.getByRole("link", { name: "How this inbox answers" }).click();
    await page.getByRole("tab", { name: "Settings", selected: true }).waitFor();
    await page.getByRole("switch", { name: /Answer by mail/, checked: false }).waitFor();
    await at.api("PATCH", path, { reply_enabled: true });
    // Where nothing is sold, a limit leads to no page for paying.
    const { items } = await at.api<{ items: { id: string }[] }>("GET", "/admin/users");
    const plan = (name: string) => at.api("PATCH", `/admin/users/${items[0]?.id}`, { plan: name });
    await plan("free");
    await send({ subject: "Without credits", text: "Hello" });
    await plan("team");
    await page.goto(`${at.url}/app/`);
    await page.getByRole("link", { name: "Without credits" }).click();
    await page.getByRole("heading", { name: "Without credits", level: 1 }).waitFor();
    await page.getByText("Limit reached", { exact: true }).waitFor();
    await visit.look("without-credits");
    expect(await page.getByRole("link", { name: /plan/i }).count()).toBe(0);
  });

  test.each(LOOKS)(
    "a tool server that no inbox has leads to those that could (%s)",
    async (name, look) => {
      const { id } = await at.api<{ id: string }>("POST", "/connections", {
        kind: "mcp",
        label: `Shopping ${name}`,
        base_url: "https://mcp.example.org/mcp",
      });
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/connections/${id}`);
      await page.getByText("No inbox uses it yet. Give it to one:").waitFor();
      await page.getByText(`@shopping-${name}`).waitFor();
      expect(await page.getByRole("button", { name: "Sign in at this server" }).count()).toBe(0);
      await visit.look("unused-tool");
      await page.getByRole("link", { name: "Desk › Tools" }).click();
      await page.getByRole("tab", { name: "Tools", selected: true }).waitFor();
      await page
        .getByRole("checkbox", { name: `Shopping ${name}` })
        .first()
        .click();
      await page.getByText("Saved.").waitFor();
      await page.goto(`${at.url}/app/connections/${id}`);
      await page.getByRole("link", { name: "Desk", exact: true }).waitFor();
      await at.api("DELETE", `/connections/${id}`);
    },
    60_000,
  );

  test("a tool server that its inbox may not use is pointed out, and allowed", async () => {
    const calendar = await at.api<{ id: string }>("POST", "/connections", {
      kind: "mcp",
      label: "Calendar",
      base_url: "https://mcp.example.org/mcp",
    });
    const path = `/inboxes/${inbox.id}`;
    await at.api("PATCH", path, {
      mcp_connection_ids: [calendar.id],
      scope: { targets: [], autonomous: [] },
    });
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Inboxes");
    await page.getByRole("link", { name: "Desk", exact: true }).click();
    await page.getByRole("tab", { name: "Tools" }).click();
    await page.getByText("may use no tools at all").waitFor();
    await visit.look("idle-tool");
    await page.getByRole("button", { name: "Allow Calendar" }).click();
    await page.getByText("may use no tools at all").waitFor({ state: "detached" });
    expect((await at.api<Inbox>("GET", path)).scope?.targets).toEqual(["mcp:calendar"]);
  }, 60_000);

  test("earlier messages are kept from an inbox, which still makes files", async () => {
    const { id } = await at.api<Inbox>("POST", "/inboxes", { label: "Forgetful" });
    const scope = async () => (await at.api<Inbox>("GET", `/inboxes/${id}`)).scope;
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Inboxes");
    await page.getByRole("link", { name: "Forgetful", exact: true }).click();
    await page.getByRole("tab", { name: "Tools" }).click();
    const box = page.getByRole("checkbox", { name: "Earlier messages @memory" });
    await visit.look("memory-of-inbox");
    await box.click();
    await page.getByText("Only what is ticked is allowed.").waitFor();
    expect((await scope())?.targets).not.toContain("memory");
    expect((await scope())?.targets).not.toEqual([]);
    await box.click();
    await until(async () => (await scope())?.targets?.includes("memory") === true);
  }, 60_000);

  test("all failed deliveries are sent again after a question with their number, and it is shown how far that is", async () => {
    let is_up = false;
    await using receiver = startReceiver(() => new Response(null, { status: is_up ? 204 : 503 }));
    const endpoint = await at.api<{ id: string }>("POST", "/v1/webhooks", {
      url: receiver.url,
      event_types: ["message.completed"],
    });
    for (const n of [1, 2]) await call(`Tell them ${n}`);
    await receiver.reached(2);
    await using visit = await at.visit({ look: atWidth(360, "light") });
    const { page } = visit;
    await visit.open("Webhooks");
    await page.locator(`a[href$="${endpoint.id}"]`).first().click();
    await page.getByRole("button", { name: "Send all failed again" }).click();
    await page.getByRole("button", { name: "Send 2 again" }).waitFor();
    await visit.look("replay");
    expect(receiver.received).toHaveLength(2);
    is_up = true;
    await page.getByRole("button", { name: "Send 2 again" }).click();
    await page.getByText("2 deliveries: each was sent again.").waitFor();
    expect(receiver.received).toHaveLength(4);
    await at.api("DELETE", `/v1/webhooks/${endpoint.id}`);
  }, 60_000);

  test("Markdown shows tasks as boxes, and numbers where the table says", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await page.goto(`${at.url}/app/contexts/new`);
    const table = "| Month | Sales |\n|---|---:|\n| May | 12 |";
    await page.getByLabel("Text in Markdown").fill(`- [x] checked\n- [ ] open\n- [y] neither\n\n${table}`);
    await page.getByRole("tab", { name: "Preview" }).click();
    expect(await page.getByRole("tabpanel").getByRole("listitem").allInnerTexts()).toEqual([
      "☑ checked",
      "☐ open",
      "[y] neither",
    ]);
    const align = "getComputedStyle(document.querySelector('td:last-child')).textAlign";
    expect(await page.evaluate<string>(align)).toBe("right");
  }, 60_000);

  test("outgoing mail is searched, and read", async () => {
    await send({ subject: "Find this one", text: "Hello" });
    await until(async () => {
      const { items } = await at.api<{ items: { subject: string; status: string }[] }>("GET", "/messages");
      return items.some(({ subject, status }) => subject === "Find this one" && status === "done");
    });
    await using visit = await at.visit({ look: atWidth(800, "light") });
    const { page } = visit;
    await visit.open("Server");
    await page.getByRole("tab", { name: "Outgoing mail" }).click();
    await page.getByRole("searchbox").fill("find this");
    await page.getByRole("button", { name: /Re: Find this one/ }).click();
    await page.getByText("Answered at last.").first().waitFor();
    await settled(page);
    await visit.look("outgoing-mail");
  }, 60_000);
});
