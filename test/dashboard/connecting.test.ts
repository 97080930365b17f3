import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Connection, Inbox } from "../../src/dashboard/api/shapes.ts";
import { startModelServer } from "../support/model-server.ts";
import { type ProviderServer, startProvider } from "../support/provider-server.ts";
import { until } from "../support/until.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER, type Visit } from "./house.ts";

const LOOK_MS = 60_000;
const GPTS = ["gpt-4.1", "gpt-5", "gpt-5-mini"];
const GB = 1_000_000_000;
/** Who runs the proxy in front says that there is nobody behind it. */
const GONE = { status: 503, contentType: "text/html", body: "<h1>Bad gateway</h1>" };

describe.skipIf(!hasChromium)("connecting a model", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;
  let server: ProviderServer;
  let ollama: ProviderServer;
  let fetched = false;

  beforeAll(async () => {
    server = stack.use(startProvider("openai_compatible", { credential: "sk-right-one", models: GPTS }));
    ollama = stack.use(startProvider("ollama", { answer: ({ path }) => answerOf(path) }));
    at = stack.use(await dashboard({ env: { MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1" } }));
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  /** An Ollama with no model, until it has fetched one. */
  function answerOf(path: string): Response {
    if (path === "/api/tags") return Response.json({ models: fetched ? [{ name: "llama3.2:latest" }] : [] });
    const lines = [
      { status: "pulling manifest" },
      { status: "pulling dde5aa3fc5ff", total: 2 * GB, completed: GB },
      { status: "success" },
    ];
    fetched = true;
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const line of lines) {
          controller.enqueue(Buffer.from(`${JSON.stringify(line)}\n`));
          await Bun.sleep(700);
        }
        controller.close();
      },
    });
    return new Response(stream);
  }

  async function begin({ page, open }: Visit, name: RegExp): Promise<void> {
    await open("Connections");
    await page.getByRole("button", { name }).click();
  }

  const labels = async (): Promise<string[]> =>
    (await at.api<{ label: string }[]>("GET", "/connections")).map(({ label }) => label);

  test.each(LOOKS)(
    "up to three others are asked where it does not answer, in the order that is chosen (%s)",
    async (name, look) => {
      const make = (label: string) =>
        at.api<Connection>("POST", "/connections", { kind: "demo", label: `${label} ${name}` });
      const { id } = await make("Asked first");
      const [one, two, three] = [await make("Spare one"), await make("Spare two"), await make("Spare three")];
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/connections/${id}`);
      await page.getByLabel("If it does not answer, ask").selectOption({ label: `Spare two ${name}` });
      await page.getByLabel("And then").selectOption({ label: `Spare one ${name}` });
      expect(await page.getByLabel("And then").count()).toBe(2);
      await visit.look("fallbacks");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Saved.").waitFor();
      const kept = async () =>
        (await at.api<Connection>("GET", `/connections/${id}`)).fallback_connection_ids;
      expect(await kept()).toEqual([two.id, one.id]);
      await page.getByLabel("If it does not answer, ask").selectOption({ label: "Nobody else" });
      await page.getByRole("button", { name: "Save" }).click();
      await until(async () => (await kept())?.join() === one.id);
      for (const { id: made } of [{ id }, one, two, three]) await at.api("DELETE", `/connections/${made}`);
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "what does not work stays in its window with what was entered, and nothing is made of it (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await begin(visit, /^Connect another model server/);
      const dialog = page.getByRole("dialog");
      const connect = dialog.getByRole("button", { name: "Connect and test" });
      await dialog.getByLabel("Name").fill(`Lab ${name}`);
      await dialog.getByLabel("Address").fill(server.origin);
      await dialog.getByLabel("Key").fill("sk-right-one");
      await connect.click();
      await dialog.getByText(`but at ${server.origin}/v1.`).waitFor();
      await visit.look("connect-moved");
      await dialog.getByRole("button", { name: `Use ${server.origin}/v1` }).click();
      await dialog.getByText("needs the name of a model.").waitFor();
      expect(await dialog.getByLabel("Address").inputValue()).toBe(`${server.origin}/v1`);
      expect(await dialog.getByLabel("Key").inputValue()).toBe("sk-right-one");
      expect(await labels()).not.toContain(`Lab ${name}`);
      await visit.look("connect-model");
      await dialog.getByRole("combobox", { name: "Model" }).selectOption("gpt-5");
      await dialog.getByText("needs the name of a model.").waitFor({ state: "detached" });
      await connect.click();
      await page.getByRole("heading", { name: `Lab ${name}`, level: 1 }).waitFor();
      await page.getByText("3 models visible").waitFor();
      expect((await labels()).filter((label) => label.startsWith(`Lab ${name}`))).toHaveLength(1);
    },
    LOOK_MS,
  );

  test(
    "the models are shown before anything is made, and one may be connected that does not work",
    async () => {
      await using visit = await at.visit();
      const { page } = visit;
      await begin(visit, /^Connect another model server/);
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Address").fill(`${server.origin}/v1`);
      await dialog.getByLabel("Key").fill("sk-wrong-one");
      await dialog.getByRole("button", { name: "Show its models" }).click();
      await dialog.getByText("did not accept the key").waitFor();
      await dialog.getByLabel("Key").fill("sk-right-one");
      await dialog.getByText("did not accept the key").waitFor({ state: "detached" });
      await dialog.getByRole("button", { name: "Show its models" }).click();
      await dialog.getByRole("combobox", { name: "Model" }).selectOption("gpt-5-mini");
      server.fault = "broken";
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      await dialog.getByText("We are down.").waitFor();
      await dialog.getByRole("button", { name: "Connect it all the same" }).click();
      await page.getByRole("heading", { name: "OpenAI-compatible server", level: 1 }).waitFor();
      await page.getByText("Does not work").waitFor();
      server.fault = "none";
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "a model that lists and answers nothing says so from the first message on, and what its test has tried (%s)",
    async (name, look) => {
      await using model = startModelServer({ models: ["m"] });
      const label = `Silent ${name}`;
      const kind = "openai_compatible";
      const { id } = await at.api<Connection>("POST", "/connections", {
        kind,
        label,
        model: "m",
        credential: "key",
        base_url: model.base_url,
      });
      const inbox = await at.api<Inbox>("POST", "/inboxes", { label, default_connection_id: id });
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/connections/${id}`);
      await page.getByRole("button", { name: "Test it" }).click();
      await page.getByText("The model was asked nothing").waitFor();
      await page.getByText("Connected", { exact: true }).waitFor();
      await page.getByText(/^Checked (now|\d+ seconds? ago)$/).waitFor();
      await visit.look("connection-tested");
      model.fault = "html_502";
      const ask = () =>
        at
          .api("POST", "/v1/messages", { inbox_id: inbox.id, instruction: "Hello", wait: true })
          .catch(String);
      await ask();
      await page.reload();
      await page.getByText("Does not work", { exact: true }).waitFor();
      await page.getByText("at least since").waitFor();
      await page.getByText("(502) has a fault of its own").waitFor();
      await visit.look("connection-silent");
      model.fault = "none";
      await ask();
      await page.reload();
      await page.getByText("Connected", { exact: true }).waitFor();
      expect(await page.getByText("has a fault of its own").count()).toBe(0);
      await at.api("PATCH", `/connections/${id}`, { model: "n" });
      await page.reload();
      await page.getByText(/^Changed since it was checked (now|\d+ seconds? ago)$/).waitFor();
      await at.api("DELETE", `/inboxes/${inbox.id}`);
      await at.api("DELETE", `/connections/${id}`);
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "an address that is refused says at its field what is wrong, and what mends it (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look, refusals: [422] });
      const { page } = visit;
      await begin(visit, /^Connect another model server/);
      const dialog = page.getByRole("dialog", { name: "Connect another model server" });
      expect(await dialog.getByLabel("Name").inputValue()).toBe("OpenAI-compatible server");
      await dialog.getByLabel("Model").fill("small");
      await dialog.getByLabel("Address").fill("localhost:24001/v1");
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      const unclear = dialog.getByText("must begin with http:// or https://");
      await unclear.waitFor();
      await dialog.getByLabel("Address").fill("http://192.168.1.5:1234/v1");
      await unclear.waitFor({ state: "detached" });
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      const refused = dialog.getByText('writes allow = ["192.168.1.5"] under [egress]');
      await refused.waitFor();
      await visit.look("connect-refused");
      await dialog.getByLabel("Address").fill("http://192.168.1.5:1234/");
      await refused.waitFor({ state: "detached" });
      await dialog.getByRole("button", { name: "Show its models" }).click();
      await refused.waitFor();
      await dialog.getByLabel("Address").fill(`${server.origin}/v1`);
      await refused.waitFor({ state: "detached" });
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "a tool server whose address lacks its /mcp is offered the whole one (%s)",
    async (name, look) => {
      await using tools = startProvider("mcp");
      await using visit = await at.visit({ look });
      const { page } = visit;
      await begin(visit, /^Connect a tool server/);
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name").fill(`Lab tools ${name}`);
      await dialog.getByLabel("Address").fill(tools.origin);
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      await dialog.getByText(`but at ${tools.origin}/mcp.`).waitFor();
      await visit.look("connect-tool-moved");
      await dialog.getByRole("button", { name: `Use ${tools.origin}/mcp` }).click();
      await page.getByRole("heading", { name: `Lab tools ${name}`, level: 1 }).waitFor();
      await page.getByRole("list", { name: "What it can do" }).waitFor();
    },
    LOOK_MS,
  );

  test(
    "an Ollama that is not there is told where it was looked for, and a tool server how it will be called",
    async () => {
      await using visit = await at.visit();
      const { page } = visit;
      await begin(visit, /^Connect Ollama/);
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Address").fill("http://127.0.0.1:9");
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      await dialog.getByText("Left empty, the address is http://localhost:11434.").waitFor();
      await visit.look("connect-unreached");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Throw the changes away" }).click();
      await page.getByRole("button", { name: /^Connect a tool server/ }).click();
      const tool = page.getByRole("dialog", { name: "Connect a tool server (MCP)" });
      await tool.getByText("You will call it @calendar.").waitFor();
      await tool.getByLabel("Name").fill("Team Shopping");
      await tool.getByText("You will call it @team-shopping.").waitFor();
      await tool.getByLabel("Name").fill("Notes");
      await tool.getByText("You will call it @mcp:notes.").waitFor();
      await visit.look("connect-tool");
    },
    LOOK_MS,
  );

  test(
    "an Ollama without the model fetches it in the window, and is connected then",
    async () => {
      await using visit = await at.visit();
      const { page } = visit;
      await begin(visit, /^Connect Ollama/);
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Address").fill(ollama.origin);
      await dialog.getByRole("button", { name: "Connect and test" }).click();
      await dialog.getByText('has no model "llama3.2". It has none at all yet.').waitFor();
      await dialog.getByRole("button", { name: "Fetch llama3.2" }).click();
      await dialog.getByText("1.0 of 2.0 GB").waitFor();
      await visit.look("connect-fetching");
      await page.getByRole("heading", { name: "Ollama", level: 1 }).waitFor();
      await page.getByText("1 model visible").waitFor();
    },
    LOOK_MS,
  );

  test(
    "the sign-in opens on what was used last on this browser, and an invitation on its address",
    async () => {
      await using visit = await at.visit({ signed_out: true });
      const { page } = visit;
      const chosen = (name: string) => page.getByRole("tab", { name, selected: true }).waitFor();
      await chosen("Code by mail");
      await page.getByRole("tab", { name: "Password" }).click();
      await page.getByLabel("Your mail address").fill(OWNER.email);
      await page.getByRole("textbox", { name: "Password" }).fill(OWNER.password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page
        .getByRole("heading", { name: "Activity", level: 1 })
        .or(page.getByRole("heading", { name: "Get started" }))
        .waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      await chosen("Password");
      await page.goto(`${at.url}/app/sign-in?email=cleo%40example.org`);
      await chosen("Code by mail");
      expect(await page.getByLabel("Your mail address").inputValue()).toBe("cleo@example.org");
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "a page says that the server cannot be reached, and goes on when it can (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look, refusals: [503] });
      const { page } = visit;
      await visit.open("Connections");
      const banner = page.getByText("The server cannot be reached.");
      expect(await banner.count()).toBe(0);
      await page.route("**/*", (route) => route.fulfill(GONE));
      await page.getByRole("button", { name: /^Connect Ollama/ }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Show its models" }).click();
      await banner.waitFor();
      await page.keyboard.press("Escape");
      await visit.look("out-of-reach");
      // A page that was never opened before has to be fetched first.
      const navigation = page.getByRole("button", { name: "Open the navigation" });
      if (await navigation.isVisible()) await navigation.click();
      await page.getByRole("link", { name: "Webhooks", exact: true }).click();
      await page.getByRole("button", { name: "Try again" }).waitFor();
      // Once the server answers, the page may go on by itself before anybody can press anything.
      const asked = page.waitForRequest("**/livez");
      await page.getByRole("button", { name: "Try now" }).click();
      await asked;
      await page.unrouteAll();
      await banner.waitFor({ state: "detached" });
      await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    },
    LOOK_MS,
  );

  test.each(LOOKS)(
    "a new inbox has a model that works, and an inbox whose model does not says so (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const silent = await at.api<Connection>("POST", "/connections", {
        kind: "openai_compatible",
        label: `Broken ${name}`,
        base_url: "http://127.0.0.1:9/v1",
        model: "m",
      });
      await at.api("POST", `/connections/${silent.id}/test`);
      const demo = await at.api<Connection>("POST", "/connections", { kind: "demo", label: `Demo ${name}` });
      const broken = await at.api<Inbox>("POST", "/inboxes", {
        label: `Silent ${name}`,
        default_connection_id: silent.id,
      });
      await visit.open("Inboxes");
      const card = page.getByRole("listitem").filter({ hasText: `Silent ${name}` });
      await card.getByText("Model does not work").waitFor();
      expect(await card.getByText("Answers", { exact: true }).count()).toBe(0);
      await visit.look("inboxes-broken-model");
      await page.getByRole("button", { name: "New inbox" }).click();
      await page
        .getByRole("combobox", { name: "Model" })
        .getByText(`Broken ${name} (does not work)`)
        .waitFor({ state: "attached" });
      const chosen = await page.getByRole("combobox", { name: "Model" }).inputValue();
      expect(chosen).not.toBe(silent.id);
      await page.keyboard.press("Escape");
      await card.getByRole("link", { name: `Silent ${name}` }).click();
      await page.getByText("The model of this inbox does not work").waitFor();
      await visit.look("inbox-broken-model");
      // Another that is asked in its place works.
      await at.api("PATCH", `/connections/${silent.id}`, { fallback_connection_ids: [demo.id] });
      await page.reload();
      await page.getByText("Answers", { exact: true }).first().waitFor();
      expect(await page.getByText("The model of this inbox does not work").count()).toBe(0);
      await at.api("DELETE", `/inboxes/${broken.id}`);
      for (const { id } of [silent, demo]) await at.api("DELETE", `/connections/${id}`);
    },
    LOOK_MS,
  );
});
