import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Locator, Page } from "playwright-core";
import { stringify } from "smol-toml";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { type Domain, publish } from "../support/domain-desk.ts";
import { type GuardedMcp, startGuardedMcp } from "../support/oauth-mcp-server.ts";
import { type OAuthProviders, startOAuthProviders } from "../support/oauth-providers.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER, TASK_LOOKS } from "./house.ts";
import { until } from "../support/until.ts";

const EVERYTHING = fileURLToPath(
  import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"),
);
const MARKDOWN = "# House style\n\n- Plain words\n- **Short** sentences\n";
const LOOK_MS = 60_000;
/** How often the page of domains looks by itself. */
const LOOK_AGAIN_MS = 15_000;
/** Where all looks would only say the same again. */
const ONE_LOOK = LOOKS.slice(0, 1);
/** For pages that lead in and out, which many open where they read their mail. */
const PHONE = { look: { viewport: { width: 390, height: 844 }, colorScheme: "dark" as const } };

interface Made {
  id: string;
}

type DefaultInbox = Made & { is_default: boolean };

describe.skipIf(!hasChromium)("what an account has", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;
  let providers: OAuthProviders;
  let guarded: GuardedMcp;
  let dns: TestDnsServer;
  let model: Made;
  let dir: string;

  beforeAll(async () => {
    providers = stack.use(startOAuthProviders());
    guarded = stack.use(await startGuardedMcp());
    dns = stack.use(await startDnsServer());
    dir = await mkdtemp(join(tmpdir(), "mailwright-resources-"));
    stack.defer(() => rm(dir, { recursive: true }));
    const program = { command: process.execPath, args: [EVERYTHING, "stdio"] };
    const { "codehost-b": _none, ...integrations } = providers.config.integrations ?? {};
    const config = {
      egress: providers.config.egress,
      integrations,
      mcp: { stdio: { everything: program } },
      dns: { servers: [dns.address] },
      smtp: { hostname: "mx.acme.test" },
    };
    await writeFile(join(dir, "config.toml"), stringify(config));
    at = stack.use(await dashboard({ env: { MAILWRIGHT_CONFIG: join(dir, "config.toml") } }));
    model = await at.api<Made>("POST", "/connections", { kind: "demo", label: "Demo model" });
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  /** The page of an inbox that is there already. */
  async function inboxPage({ page }: { page: Page }, label: string): Promise<Made> {
    const inbox = await at.api<Made>("POST", "/inboxes", { label, default_connection_id: model.id });
    await page.goto(`${at.url}/app/inboxes/${inbox.id}`);
    await page.getByRole("heading", { name: label, level: 1 }).waitFor();
    return inbox;
  }

  test.each(TASK_LOOKS)(
    "an inbox is made, and its test mail answered on the page (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Inboxes");
      await visit.look("inboxes");
      await press(page, "New inbox");
      await page.getByLabel("Name").fill(`Desk ${name}`);
      // Many people press everything twice.
      await page.getByRole("button", { name: "Make the inbox" }).dblclick();
      await page.getByRole("heading", { name: `Desk ${name}`, level: 1 }).waitFor();
      const made = await at.api<{ label: string }[]>("GET", "/inboxes");
      expect(made.filter(({ label }) => label === `Desk ${name}`)).toHaveLength(1);
      await page.getByLabel("The mail it works on").fill("The bridge opens on 3 May at 10:30.");
      await press(page, "Send it");
      await page.getByText("This is the built-in demo model.").waitFor();
      await page.getByText(`The mail to ${OWNER.email} is kept here`).waitFor();
      await visit.look("inbox-try");
      await page.getByRole("link", { name: "See what it keeps" }).click();
      await page
        .getByRole("tabpanel", { name: "Outgoing mail" })
        .getByRole("button", { name: new RegExp(`^Kept here Re: .* To ${OWNER.email}`) })
        .first()
        .waitFor();
    },
    LOOK_MS,
  );

  test.each(ONE_LOOK)(
    "an inbox is handed on, restricted, moved and deleted (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look, alone: true, refusals: [422] });
      const { page } = visit;
      await inboxPage(visit, `Invoices ${name}`);
      const address = await page.getByText(/^invoices-\S+@/).innerText();
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await press(page, "Copy the address");
      await page.getByRole("button", { name: "Copied" }).waitFor();
      expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(address);
      await press(page, "QR code");
      await page.getByRole("img", { name: `QR code of ${address}` }).waitFor();
      await press(page, "Close");
      await press(page, "Mail me the card");
      await page.getByText(`The mail to ${OWNER.email} is kept here`).waitFor();
      const [card] = await Promise.all([
        page.waitForEvent("download"),
        page.getByRole("link", { name: "Contact card" }).click(),
      ]);
      expect(await Bun.file(await card.path()).text()).toContain(address);

      await tab(page, "Settings");
      await page.getByRole("switch", { name: /Answer by mail/ }).click();
      await page.getByText("Reads only").waitFor();
      await press(page, "Undo");
      await page.getByText("Answers", { exact: true }).first().waitFor();
      await page.getByText("It is as it was before.").waitFor();
      await visit.look("inbox-settings");

      await tab(page, "Who may write");
      const senders = page.getByLabel("People who may write and instruct");
      await senders.fill("bob@example.com\nnobody");
      await press(page, "Save");
      await press(page, "Let only them write");
      await faultAt(senders, /"nobody" is neither an address/);
      await senders.fill("@gmail.com");
      await page.getByText("Anybody can have an address at gmail.com").waitFor();
      await visit.look("inbox-senders");
      await senders.fill("Bob Builder <Bob@Example.com>");
      await press(page, "Save");
      await press(page, "Let only them write");
      await page.getByText("Saved.").waitFor();
      expect(await senders.inputValue()).toBe("bob@example.com");

      await press(page, "New address");
      await page.getByText(`Mail to ${address} will be refused`).waitFor();
      await press(page, "Give it a new address");
      await page.getByText(/^The new address is invoices-/).waitFor();
      expect(await page.getByText(/^invoices-\S+@/).innerText()).not.toBe(address);

      await press(page, "Delete");
      await press(page, "Delete the inbox");
      await page.getByText("The inbox is deleted.").waitFor();
      await page.getByText(`Invoices ${name}`).first().waitFor({ state: "detached" });
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "a context is written, seen as it reads, and saved (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Contexts");
      await visit.look("contexts");
      await page.getByRole("link", { name: "New context" }).first().click();
      await page.getByLabel("Title").fill(`Voice ${name}`);
      await page.getByLabel("Text in Markdown").fill(MARKDOWN);
      await tab(page, "Preview");
      await page.getByRole("listitem").filter({ hasText: "Short sentences" }).waitFor();
      await press(page, "Save");
      await page.getByRole("heading", { name: `Voice ${name}`, level: 1 }).waitFor();
      await page.getByRole("heading", { name: "Where it is used" }).waitFor();
      expect(await page.getByLabel("Short name").inputValue()).toBe(`voice-${name}`);
      await visit.look("context");
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "a context is for one inbox, which says so, and the list of contexts too (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const [label, title] = [`Scoped ${name}`, `For one ${name}`];
      const inbox = await at.api<Made>("POST", "/inboxes", { label });
      const body = { title, body: MARKDOWN, kind: "instruction" };
      const { id, slug } = await at.api<Made & { slug: string }>("POST", "/contexts", body);
      const namesake = await at.api<Made>("POST", "/contexts", { ...body, inbox_ids: [] });
      await page.goto(`${at.url}/app/contexts/${id}`);
      await page.getByLabel("For", { exact: true }).selectOption("These inboxes");
      await page.getByText("Mail from strangers to these inboxes is answered with it too.").waitFor();
      await page.getByRole("checkbox", { name: label }).check();
      await press(page, "Save");
      await page.getByText("Saved.").waitFor();
      await page.getByRole("link", { name: label }).waitFor();
      await visit.look("context-scope");
      await visit.open("Contexts");
      expect(await page.getByRole("link", { name: new RegExp(`${title}.*1 inbox`) }).count()).toBe(1);
      await page.goto(`${at.url}/app/inboxes/${inbox.id}`);
      await tab(page, "Settings");
      await page.getByRole("listitem").filter({ hasText: title }).getByText("for this inbox").waitFor();
      await page.getByRole("switch", { name: /Those for every inbox/ }).click();
      await page.getByRole("checkbox", { name: `${title} (${slug})`, checked: true }).waitFor();
      await page.getByRole("checkbox", { name: `${title} (${slug}-2)`, checked: false }).waitFor();
      await visit.look("inbox-contexts");
      await press(page, "Undo");
      await page.getByRole("listitem").filter({ hasText: title }).getByText("for this inbox").waitFor();
      const kept = await at.api<{ inbox_ids: string[] | null }>("GET", `/contexts/${id}`);
      expect(kept.inbox_ids).toEqual([inbox.id]);
      await at.api("DELETE", `/contexts/${namesake.id}`);
      await at.api("DELETE", `/contexts/${id}`);
      await at.api("DELETE", `/inboxes/${inbox.id}`);
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "an earlier version of a context is read and restored (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const body = { title: `Tone ${name}`, body: "Be brief.", kind: "instruction" };
      const { id } = await at.api<Made>("POST", "/contexts", body);
      await page.goto(`${at.url}/app/contexts/${id}`);
      expect(await page.getByRole("heading", { name: "Earlier versions" }).count()).toBe(0);
      await page.getByLabel("Text in Markdown").fill("Be long.");
      await press(page, "Save");
      await page.getByRole("heading", { name: "Earlier versions" }).waitFor();
      await visit.look("context-versions");
      await page.getByLabel("Text in Markdown").fill("Be funny.");
      await press(page, /Version 1/);
      await page.getByText("The page has changes that are not saved.").waitFor();
      expect(await page.getByRole("button", { name: "Restore" }).isDisabled()).toBe(true);
      await press(page, "Close");
      await press(page, "Save");
      await press(page, /Version 1/);
      await page.getByRole("region", { name: "Version 1" }).getByText("Be brief.").waitFor();
      await visit.look("context-version");
      await press(page, "Restore");
      await page.getByText("The context says again what version 1 said.").waitFor();
      expect(await page.getByLabel("Text in Markdown").inputValue()).toBe("Be brief.");
      await press(page, /Version 2/);
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await press(page, "Delete the version");
      await page.getByRole("button", { name: /Version 2/ }).waitFor({ state: "detached" });
      const versions = await at.api<{ version: number }[]>("GET", `/contexts/${id}/versions`);
      expect(versions.map(({ version }) => version)).toEqual([4, 3, 1]);
      await at.api("DELETE", `/contexts/${id}`);
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "an inbox is made the default one, and the one before it again (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const { id: other } = await at.api<Made>("POST", "/inboxes", { label: `Before ${name}` });
      const before = (await at.api<DefaultInbox[]>("GET", "/inboxes")).find(({ is_default }) => is_default);
      const label = `Usual ${name}`;
      const inbox = await inboxPage(visit, label);
      await tab(page, "Settings");
      await press(page, "Make this the default inbox");
      await page.getByText("it is your default inbox").waitFor();
      await page.getByText("Default", { exact: true }).waitFor();
      await visit.look("inbox-default");
      await press(page, "Undo");
      await page.getByRole("button", { name: "Make this the default inbox" }).waitFor();
      const after = (await at.api<DefaultInbox[]>("GET", "/inboxes")).find(({ is_default }) => is_default);
      expect(after?.id).toBe(before?.id);
      for (const id of [inbox.id, other]) await at.api("DELETE", `/inboxes/${id}`);
    },
    LOOK_MS,
  );

  test.each(ONE_LOOK)(
    "contexts are uploaded, left alone when somebody stays, deleted and brought back (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      const title = `Tone ${name}`;
      const { id } = await at.api<Made>("POST", "/contexts", { title, body: MARKDOWN, kind: "knowledge" });
      const { id: inbox_id } = await at.api<Made>("POST", "/inboxes", { label: title, context_ids: [id] });
      const { id: second_id } = await at.api<Made>("POST", "/inboxes", { label: "Second desk" });
      await visit.open("Contexts");
      await drop(page, [
        { name: "style.md", text: MARKDOWN },
        { name: "empty.md", text: "" },
        { name: "logo.png", text: "", type: "image/png" },
      ]);
      // Nothing is taken before it is said for whom.
      await page.getByRole("heading", { name: "Make 2 contexts" }).waitFor();
      await page.getByText("Left out, as a context is a text: logo.png.").waitFor();
      // As a new context begins, so that no mail of strangers is answered with it unasked.
      expect(await page.getByLabel("For").inputValue()).toBe("every");
      await page.getByText("and not for mail from strangers").waitFor();
      await page.getByLabel("For").selectOption("these");
      await page.getByRole("checkbox", { name: title }).check();
      await page.getByRole("checkbox", { name: "Second desk" }).check();
      await visit.look("contexts-scope");
      await press(page, "Make the contexts");
      await page.getByText("The file is now a context.").waitFor();
      await page.getByText("The file is empty.").waitFor();
      await page.getByRole("link", { name: /House style.*2 inboxes/ }).waitFor();
      await visit.look("contexts-uploaded");
      await press(page, "Undo");
      await page.getByRole("link", { name: /House style/ }).waitFor({ state: "detached" });

      const row = page.getByRole("link", { name: new RegExp(title) });
      await row.click();
      await page.getByLabel("Short name").fill("Not a name");
      await press(page, "Save");
      await faultAt(page.getByLabel("Short name"), /A slug is 1 to 64/);
      await toContexts(page);
      await press(page, "Stay here");
      expect(await page.getByLabel("Short name").inputValue()).toBe("Not a name");
      await toContexts(page);
      await press(page, "Throw the changes away");
      await row.click();
      await page.getByRole("link", { name: title }).waitFor();
      await press(page, "Delete");
      await press(page, "Delete the context");
      await row.waitFor({ state: "detached" });
      await press(page, "Undo");
      await row.click();
      await page.getByRole("link", { name: title }).waitFor();
      for (const made of [inbox_id, second_id]) await at.api("DELETE", `/inboxes/${made}`);
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "a tool is connected and tells what it can do (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Connections");
      await visit.look("connections");
      await press(page, /^Connect a tool server/);
      await page.getByLabel("Name").fill(`Tools ${name}`);
      await page.getByLabel("Where it runs").selectOption("On this server: everything");
      expect(await page.getByLabel("Address").or(page.getByLabel("Key")).count()).toBe(0);
      await press(page, "Connect and test");
      await page.getByRole("list", { name: "What it can do" }).getByText("echo", { exact: true }).waitFor();
      await page.getByText(`@tools-${name}`).waitFor();
      await visit.look("connection");
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "two tool servers with like names are told apart, and with both of them a name has to begin the mail (%s)",
    async (name, look) => {
      // In a house of its own: other tools that are connected there would be named first.
      await using own = await dashboard({ env: { MAILWRIGHT_CONFIG: join(dir, "config.toml") } });
      const make = (label: string) =>
        own.api<Made>("POST", "/connections", { kind: "mcp", label, base_url: "stdio:everything" });
      const older = await make("Team files");
      await make("Team-files");
      const label = `Two servers ${name}`;
      await own.api<Made>("POST", "/inboxes", { label, mcp_connection_ids: [older.id] });
      await using visit = await own.visit({ look });
      const { page } = visit;
      await visit.open("Inboxes");
      await page
        .getByRole("link", { name: new RegExp(label) })
        .first()
        .click();
      await tab(page, "Tools");
      const notice = page.getByText("What you ask for in a new mail of your own is done.");
      await notice.waitFor();
      expect(await notice.innerText()).not.toContain("could steer");
      await page.getByRole("checkbox", { name: "Team-files @team-files-2" }).click();
      await page.getByText("begin with the name of the tool, such as “@team-files do this”.").waitFor();
      await visit.look(`two-servers-${name}`);
    },
    LOOK_MS,
  );

  test.each(ONE_LOOK)(
    "a tool is refused with a reason, allowed in an inbox, trusted there after a question, and removed (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      const label = `Everything ${name}`;
      await visit.open("Connections");
      await press(page, /^Connect a tool server/);
      await page.getByLabel("Name").fill(label);
      await page.getByLabel("Address").fill("stdio:nothing");
      await press(page, "Connect and test");
      await faultAt(page.getByLabel("Address"), /There is no tool server "nothing"/);
      await visit.look("connection-form");
      // A field that is folded away is shown for what is wrong with it.
      await page.getByLabel("Address").fill("https://tools.example.com/mcp");
      const special = page.getByText("More, for special servers");
      await special.click();
      await page.getByLabel("Headers").fill("Host: example.com");
      await special.click();
      await page.getByLabel("Headers").waitFor({ state: "hidden" });
      await press(page, "Connect and test");
      await faultAt(page.getByLabel("Headers"), /none of which the connection sets itself/);
      await page.getByLabel("Where it runs").selectOption("On this server: everything");
      await press(page, "Connect and test");
      await page.getByRole("list", { name: "What it can do" }).waitFor();

      const inbox = await inboxPage(visit, label);
      await tab(page, "Tools");
      await page.getByRole("checkbox", { name: new RegExp(`^Everything ${name} @`) }).click();
      await page.getByText("Saved.").waitFor();
      const row = page.getByRole("listitem").filter({ hasText: `@everything-${name}` });
      await row.getByRole("checkbox", { name: /May change things without being named/ }).click();
      await press(page, "Let it act by itself");
      await page.getByText("It acts by itself, also on what others wrote.").waitFor();
      await visit.look("inbox-tools");
      const { scope } = await at.api<{ scope: unknown }>("GET", `/inboxes/${inbox.id}`);
      expect(scope).toMatchObject({ autonomous: [`mcp:everything-${name}`] });
      await press(page, "Allow all services again");
      await page.getByText("It acts by itself").waitFor({ state: "detached" });

      await visit.open("Connections");
      await page.getByRole("link", { name: new RegExp(label) }).click();
      await page.getByRole("link", { name: label }).waitFor();
      await press(page, "Delete");
      await press(page, "Delete the connection");
      await page.getByText("The connection is deleted.").waitFor();
      await page.getByRole("link", { name: new RegExp(label) }).waitFor({ state: "detached" });
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "a domain's records are seen one after another, and the page finds by itself that all are there (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look, alone: true });
      const { page } = visit;
      // The page's own clock, so that nobody waits for its next look.
      await page.clock.install();
      await page.goto(`${at.url}/app/domains`);
      await press(page, "Add a domain");
      await page.getByLabel("Domain", { exact: true }).fill(`ai-${name}.acme.test`);
      await press(page, "Add it");
      const card = page.locator("section").filter({ hasText: `ai-${name}.acme.test` });
      await card.getByText("Waiting for its records").waitFor();
      await card.getByText("Not looked for yet.").waitFor();
      const domain = await domainNamed(`ai-${name}.acme.test`);

      const ownership = card.getByRole("listitem").filter({ hasText: "Shows that the domain is yours" });
      const mx = card.getByRole("listitem").filter({ hasText: "Brings its mail here" });
      publish(dns, domain, ["ownership"]);
      await press(page, "Look now");
      await ownership.getByText("Seen", { exact: true }).waitFor();
      await mx.getByText("Missing", { exact: true }).waitFor();
      await visit.look("domain-waits");

      publish(dns, domain, ["inbound_mx"]);
      await lookWithoutThePage(domain);
      expect(await card.getByText("Waiting for its records").isVisible()).toBe(true);
      await page.clock.fastForward(LOOK_AGAIN_MS);
      await card.getByText("Active", { exact: true }).waitFor();
      await mx.getByText("Seen", { exact: true }).waitFor();
      await press(page, "Remove");
      await press(page, "Remove the domain");
      await card.waitFor({ state: "detached" });
    },
    LOOK_MS,
  );

  async function domainNamed(name: string): Promise<Domain> {
    const domain = (await at.api<Domain[]>("GET", "/custom-domains")).find(({ domain: own }) => own === name);
    if (!domain) throw new Error(`There is no domain ${name}.`);
    return domain;
  }

  /** The look that the server takes by itself every ten minutes, at once. */
  async function lookWithoutThePage({ domain }: Domain): Promise<void> {
    const { items } = await at.api<{ items: Made[] }>("GET", "/admin/queue?kind=check_domain");
    for (const { id } of items) await at.api("POST", `/admin/queue/${id}/retry`);
    await until(async () => (await domainNamed(domain)).status === "active");
  }

  test.each(LOOKS)(
    "a recipe of which nothing is missing offers its inbox, and nothing to make (%s)",
    async (_name, look) => {
      type Applied = { created: { inboxes: Made[]; contexts: Made[] } };
      const { created } = await at.api<Applied>("POST", "/recipes/translate/apply");
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Recipes");
      await press(page, "See what it makes: Translate");
      const had = page.getByRole("dialog");
      await had.getByText("You have all of it already.").waitFor();
      await had.getByRole("link", { name: "Open the inbox and try it" }).waitFor();
      expect(await had.getByRole("button", { name: /Make/ }).count()).toBe(0);
      await visit.look("recipe-had");
      await had.getByRole("button", { name: "Close" }).last().click();
      await had.waitFor({ state: "detached" });
      for (const { id } of created.inboxes) await at.api("DELETE", `/inboxes/${id}`);
      for (const { id } of created.contexts) await at.api("DELETE", `/contexts/${id}`);
    },
    LOOK_MS,
  );

  test.each(TASK_LOOKS)(
    "a recipe shows what it makes, makes it, and takes it back (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Recipes");
      await visit.look("recipes");
      await press(page, "See what it makes: Summarise mail");
      await page.getByRole("heading", { name: "It makes an inbox" }).waitFor();
      await page.locator("summary").first().click();
      await page.getByRole("heading", { name: "How to summarise a mail" }).waitFor();
      await visit.look("recipe");
      await press(page, "Make it");
      await page.getByText("It is ready. Write to this address:").waitFor();
      await press(page, "Undo");
      await page.getByText("You have it").waitFor({ state: "detached" });
      await press(page, "See what it makes: Weekday digest");
      await page.getByText("That is mailed to you on weekdays at 8:00.").waitFor();
      await visit.look("recipe-digest");
      await press(page, "Make it");
      await page.getByText("It is ready. Have what you want summed up sent to this address:").waitFor();
      const schedules = () => at.api<{ title: string }[]>("GET", "/v1/schedules");
      expect(await schedules()).toMatchObject([{ title: "Weekday digest" }]);
      await press(page, "Undo");
      await page.getByText("You have it").waitFor({ state: "detached" });
      expect(await schedules()).toEqual([]);
    },
    LOOK_MS,
  );

  test(
    "an account elsewhere is connected over its own sign-in, and told of on the way back",
    async () => {
      const elsewhere = [new URL(providers.config.integrations?.notes?.authorize_url ?? "").origin];
      await using visit = await at.visit({ elsewhere });
      const { page } = visit;
      for (const [kind, name, made] of [
        ["notes", "Notes (Notion)", "Notion (Notes of ada)"],
        ["codehost-a", "GitHub", "GitHub (ada)"],
        ["sheets", "Google Sheets", "Google Workspace (ada@example.com)"],
      ] as const) {
        await visit.open("Connections");
        await page.getByRole("button", { name: `Connect ${name}` }).click();
        if (kind === "sheets") await page.getByText("Google ends it after an hour").waitFor();
        await press(page, `Sign in at ${name}`);
        await page.waitForURL(`${at.url}/app/connections?connected=${kind}`);
        await page.getByText(`${made} is connected.`).waitFor();
        await page.getByRole("link", { name: "See what it can do" }).click();
        await page.getByRole("heading", { name: made, level: 1 }).waitFor();
        await press(page, "Delete");
        await press(page, "Delete the connection");
        await page.getByText("The connection is deleted.").first().waitFor();
      }
    },
    LOOK_MS,
  );

  test(
    "what a program began ends in a browser: after a sign-in, and after a question",
    async () => {
      const { key } = await at.api<{ key: string }>("POST", "/auth/api-key", { name: "laptop" });
      const begun = await fetch(`${at.url}/integrations/notes/connect`, {
        method: "POST",
        headers: { "x-api-key": key },
      });
      const { authorize_url } = (await begun.json()) as { authorize_url: string };
      const elsewhere = [new URL(authorize_url).origin];
      await using visit = await at.visit({ signed_out: true, elsewhere, ...PHONE });
      const { page } = visit;
      await page.goto(authorize_url);
      await page.getByRole("heading", { name: "Sign in to go on" }).waitFor();
      await visit.look("consent-sign-in");
      await page.getByRole("link", { name: "Sign in" }).click();
      await page.getByRole("tab", { name: "Password" }).click();
      await page.getByLabel("Mail address").fill(OWNER.email);
      await page.getByRole("textbox", { name: "Password" }).fill(OWNER.password);
      await press(page, "Sign in");
      await page.getByRole("heading", { name: "Connect Notion?" }).waitFor();
      await page.getByText("with the API key laptop").waitFor();
      await visit.look("consent-question");
      await press(page, "Connect");
      await page.waitForURL(`${at.url}/app/connections?connected=notes`);
      await page.getByText("Notion (Notes of ada) is connected.").waitFor();
      await page.getByRole("link", { name: "See what it can do" }).click();
      await press(page, "Delete");
      await press(page, "Delete the connection");
      await page.getByText("The connection is deleted.").first().waitFor();
    },
    LOOK_MS,
  );

  test(
    "where the server cannot lead to a sign-in, a token does",
    async () => {
      await using visit = await at.visit({ refusals: [400] });
      const { page } = visit;
      await visit.open("Connections");
      await press(page, /^Connect GitLab/);
      await press(page, "Sign in at GitLab");
      await page.getByText("This server is not set up for signing in at GitLab.").waitFor();
      await page.getByLabel("Key").fill("token-5f0c93d1e7");
      await press(page, "Connect and test");
      await page.getByRole("dialog").getByRole("alert").waitFor();
      await press(page, "Connect it all the same");
      await page.getByRole("heading", { name: "GitLab", level: 1 }).waitFor();
      await page.getByRole("alert").waitFor();
      await visit.look("connection-refused");
    },
    LOOK_MS,
  );

  test(
    "a guarded tool server is signed in at, and a way back that nobody set out on leads to nothing",
    async () => {
      await using visit = await at.visit({ elsewhere: [guarded.issuer], refusals: [400] });
      const { page } = visit;
      const { id } = await at.api<Made>("POST", "/connections", {
        kind: "mcp",
        label: "Guarded",
        base_url: guarded.url,
      });
      await page.goto(`${at.url}/app/connections/${id}`);
      await press(page, "Test it");
      await page.getByText("Sign in again").waitFor();
      await press(page, "Sign in at this server");
      await page.getByText(`You were sent to ${new URL(guarded.issuer).host} to agree.`).waitFor();
      await visit.look("consent-access");
      await press(page, "Connect");
      await page.getByText("Guarded is connected.").waitFor();
      await page.getByRole("link", { name: "See what it can do" }).click();
      await page.getByRole("list", { name: "What it can do" }).getByText("look", { exact: true }).waitFor();
      await page.goto(`${at.url}/integrations/mcp/callback?state=unknown&error=access_denied`);
      await page.getByRole("heading", { name: "Not connected" }).waitFor();
      await visit.look("callback");
      await page.getByRole("link", { name: "Go to your connections" }).click();
      await page.getByRole("heading", { name: "Connections", level: 1 }).waitFor();
      expect(await page.getByText("is connected.").count()).toBe(0);
    },
    LOOK_MS,
  );
});

const press = (page: Page, name: string | RegExp): Promise<void> =>
  page
    .getByRole("button", { name, exact: typeof name === "string" })
    .first()
    .click();
const tab = (page: Page, name: string): Promise<void> => page.getByRole("tab", { name }).click();

/** What is wrong with a field is said once, at the field, which has the focus. */
async function faultAt(field: Locator, words: RegExp): Promise<void> {
  await field.and(field.page().locator("[aria-invalid=true]:focus")).waitFor();
  await field.page().getByText(words).waitFor();
  expect(await field.page().getByRole("alert").count()).toBe(0);
}

/** By the navigation, without waiting for the page: something may stand in the way. */
async function toContexts(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Open the navigation" });
  if (await button.isVisible()) await button.click();
  await page.getByRole("navigation").getByRole("link", { name: "Contexts" }).click();
}

/** Drops files on the list of contexts, as a mouse does from a folder. */
async function drop(page: Page, files: { name: string; text: string; type?: string }[]): Promise<void> {
  const data = await page.evaluateHandle(
    `(() => { const data = new DataTransfer(); for (const { name, text, type } of ${JSON.stringify(files)}) data.items.add(new File([text], name, { type })); return data; })()`,
  );
  await page.getByRole("main").getByRole("list").dispatchEvent("drop", { dataTransfer: data });
}
