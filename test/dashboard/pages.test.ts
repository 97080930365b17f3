import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, chromium, type Page } from "playwright-core";
import { builtBinary } from "../support/binary.ts";

const CHROMIUM = Bun.which("chromium");
const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"];
const DESK = { width: 1440, height: 900 };
const TABLET = { width: 768, height: 1024 };
const PHONE = { width: 390, height: 844 };
const PAGES = [
  "Activity",
  "Conversations",
  "Playground",
  "Inboxes",
  "Contexts",
  "Connections",
  "Recipes",
  "Domains",
  "Webhooks",
  "Usage",
  "Billing",
  "Settings",
  "Server",
];
const PASSWORD = "quiet river 42";
const FIRST_LOAD_BYTES = 200 * 1024;

if (CHROMIUM === null) console.log("The dashboard is not tried: apt-get install chromium");

/** The binary in an empty folder, with what it has said so far. */
async function startServer() {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-dashboard-"));
  const server = Bun.spawn([await builtBinary(), "serve", "--dev"], {
    cwd: dir,
    env: {
      ...process.env,
      MAILWRIGHT_SERVER__LISTEN: "127.0.0.1:0",
      MAILWRIGHT_SMTP__LISTEN: "127.0.0.1:0",
    },
    stdout: "pipe",
  });
  const reader = server.stdout.getReader();
  let log = "";
  const said = async (words: RegExp): Promise<string> => {
    for (;;) {
      const found = words.exec(log)?.[1];
      if (found) return found;
      const { value, done } = await reader.read();
      if (done) throw new Error(`The server ended: ${log}`);
      log += new TextDecoder().decode(value);
    }
  };
  return {
    said,
    async [Symbol.asyncDispose]() {
      server.kill("SIGTERM");
      await server.exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

describe.skipIf(CHROMIUM === null)("the dashboard", () => {
  const stack = new AsyncDisposableStack();
  const strange: string[] = [];
  let browser: Browser;
  let page: Page;
  let url = "";
  let first_answer = "";

  /** As somebody does who has just started the server: from the link in its log to the first answer. */
  async function beginFrom(setup: string): Promise<string> {
    await page.goto(setup);
    await page.getByLabel("Your mail address").fill("ada@example.org");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Make the account" }).click();
    await page.getByRole("button", { name: "Begin with the demo model" }).click();
    await page.getByRole("link", { name: "Connect another" }).waitFor();
    await page.getByRole("button", { name: "Get an address" }).click();
    await page.getByLabel("The mail it works on").fill("The bridge opens on 3 May at 10:30.");
    await page.getByRole("button", { name: "Send it" }).click();
    await page.getByText("This is the built-in demo model.").waitFor();
    return page.locator("main").innerText();
  }

  beforeAll(async () => {
    const server = stack.use(await startServer());
    const setup = await server.said(/(http:\S+\/app\/setup\?token=\S+)/);
    url = await server.said(/ready http=(\S+)/);
    browser = await chromium.launch({ executablePath: CHROMIUM ?? "", args: ARGUMENTS });
    stack.defer(() => browser.close());
    const context = await browser.newContext({ viewport: DESK });
    page = await context.newPage();
    page.on("console", (line) => line.type() === "error" && strange.push(line.text()));
    page.on("pageerror", (error) => strange.push(error.message));
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== new URL(url).origin) strange.push(request.url());
    });
    first_answer = await beginFrom(setup);
  }, 120_000);

  beforeEach(async () => {
    await page.setViewportSize(DESK);
    await page.goto(`${url}/app`);
    await page.getByRole("heading", { level: 1 }).waitFor();
  });

  afterAll(() => stack.disposeAsync());

  test("leads from the link of the first start to the first answer", () => {
    expect(first_answer).toContain("This is the built-in demo model.");
    expect(first_answer).toContain("The bridge opens on 3 May at 10:30.");
    expect(strange).toEqual([]);
  });

  test("shows how an answer came about, and takes a signed-out browser to the sign-in and back", async () => {
    await page.getByRole("link", { name: /Test mail/ }).click();
    await page.getByRole("heading", { name: "What was asked" }).waitFor();
    await page.getByText("That is you: your words are instructions.").waitFor();
    const there = page.url();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Mailwright" }).waitFor();
    await page.goto(there);
    await page.getByRole("tab", { name: "Password" }).click();
    await page.getByLabel("Your mail address").fill("ada@example.org");
    await page.getByRole("textbox", { name: "Password" }).fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "What was asked" }).waitFor();
    expect(page.url()).toBe(there);
    // Being asked who is signed in, and answering that nobody is, is no fault.
    expect(strange.filter((line) => !line.includes("401"))).toEqual([]);
    strange.length = 0;
  }, 60_000);

  test.each([
    ["light", DESK],
    ["dark", PHONE],
  ] as const)(
    "has no serious fault of access on any page (%s, %o)",
    async (colorScheme, size) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(size);
      for (const name of PAGES) {
        await open(page, name);
        const { violations } = await new AxeBuilder({ page }).analyze();
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        expect([name, serious.map(({ id, nodes }) => [id, nodes[0]?.html])]).toEqual([name, []]);
      }
      expect(strange).toEqual([]);
    },
    120_000,
  );

  test.each([TABLET, PHONE])(
    "fits on a screen of %o",
    async (size) => {
      await page.setViewportSize(size);
      for (const name of PAGES) {
        await open(page, name);
        const wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth");
        expect([name, wide]).toEqual([name, false]);
      }
    },
    60_000,
  );

  test("loads little at first", async () => {
    const context = await browser.newContext();
    const fresh = await context.newPage();
    const sizes: Promise<number>[] = [];
    fresh.on("requestfinished", (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await fresh.goto(`${url}/app`);
    await fresh.getByRole("heading", { name: "Sign in to Mailwright" }).waitFor();
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(FIRST_LOAD_BYTES);
    await context.close();
  }, 30_000);
});

/** By the navigation, which is behind a button on a phone. */
async function open(page: Page, name: string): Promise<void> {
  const button = page.getByRole("button", { name: "Open the navigation" });
  if (await button.isVisible()) await button.click();
  await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
  await page.getByText("Loading").first().waitFor({ state: "detached" });
}
