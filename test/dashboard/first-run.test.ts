import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { startModelServer } from "../support/model-server.ts";
import { type Dashboard, dashboard, hasChromium, TASK_LOOKS, OWNER, type Visit } from "./house.ts";

const HOST = "mx.acme.test";
const DOMAIN = "acme.test";
const BRIDGE = "The bridge opens on 3 May at 10:30.";

interface DnsView {
  records: { type: string; name: string; value: string | null; priority: number | null }[];
}

describe.skipIf(!hasChromium)("the first run", () => {
  test.each(TASK_LOOKS)(
    "the setup link leads over account, DNS and model to an address and the first answer, and stays done (%s)",
    async (_name, look) => {
      await using dns = await startDnsServer();
      await using model = startModelServer({ reply: () => "It is closed until 3 May." });
      await using at = await dashboard({
        fresh: true,
        env: {
          MAILWRIGHT_SMTP__HOSTNAME: HOST,
          MAILWRIGHT_SMTP__DOMAIN: DOMAIN,
          MAILWRIGHT_DNS__SERVERS: dns.address,
          MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1",
        },
      });
      await using visit = await at.visit({ look, signed_out: true, refusals: [401] });
      const { page } = visit;
      const devtools = await page.context().newCDPSession(page);
      await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "Europe/Berlin" });
      await page.getByText("Nobody has an account here yet.").waitFor();
      await page.getByRole("link", { name: "Where is it?" }).click();
      await page.getByText("open the whole link").waitFor();

      await page.goto(at.setup.slice(0, -3));
      await page.getByLabel("Your mail address").fill(OWNER.email);
      await page.getByLabel("Password").fill(OWNER.password);
      await page.getByRole("button", { name: "Make the account" }).click();
      await page.getByText("This setup link is wrong, or is not the newest one.").waitFor();
      await page.goto(at.setup);
      await page.getByLabel("Your mail address").fill(OWNER.email);
      await page.getByLabel("Password").fill(OWNER.password);
      await visit.look("setup");
      const { promise: made, resolve: release } = Promise.withResolvers<void>();
      await page.route(/\/welcome-[^/]*\.js$/, async (route) => {
        await made;
        await route.continue();
      });
      await Promise.all([
        page.waitForRequest(/\/welcome-[^/]*\.js$/),
        page.getByRole("button", { name: "Make the account" }).click(),
      ]);
      // While the next page is on its way no second account can be made.
      expect(await page.getByRole("button", { name: "Make the account" }).isEnabled()).toBe(false);
      release();

      const me = await page.evaluate<{ timezone: string }>(
        `fetch("/auth/me").then((answer) => answer.json())`,
      );
      expect(me.timezone).toBe("Europe/Berlin");
      const dnsStep = page.getByRole("region", { name: "Let mail find the server" });
      await dnsStep.getByText(/^0 of \d are seen/).waitFor();
      await dnsStep.getByText(HOST, { exact: true }).first().waitFor();
      await visit.look("first-run-dns");
      await at.api("POST", "/auth/login", OWNER);
      publish(dns, await at.api<DnsView>("GET", "/admin/dns"));
      await dnsStep.getByRole("button", { name: "Look again" }).click();
      await dnsStep.getByText(`All is there: mail for ${DOMAIN} finds this server.`).waitFor();
      await dnsStep.getByRole("button", { name: "Go on", exact: true }).click();

      const modelStep = page.getByRole("region", { name: "Connect a model" });
      model.fault = "unauthorized";
      await modelStep.getByRole("button", { name: "Other model server" }).click();
      await page.getByRole("dialog").getByLabel("Address").fill(model.base_url);
      await page.getByRole("dialog").getByLabel("Model").fill("small");
      const connect = page.getByRole("dialog").getByRole("button", { name: "Connect and test" });
      await connect.click();
      // Nothing is made of what does not work, and what was entered stays.
      await page.getByRole("dialog").getByRole("alert").waitFor();
      expect(await at.api<unknown[]>("GET", "/connections")).toEqual([]);
      await page.getByRole("button", { name: "Connect it all the same" }).click();
      const again = modelStep.getByRole("button", { name: "Test OpenAI-compatible server" });
      await modelStep.getByRole("alert").waitFor();
      await page.reload();
      await modelStep.getByRole("alert").waitFor();
      model.fault = "none";
      await again.click();

      await page
        .getByRole("region", { name: "Get an address" })
        .getByRole("button", { name: "Get an address" })
        .click();
      await page.getByLabel("The mail it works on").fill(BRIDGE);
      await page.getByRole("button", { name: "Send it" }).click();
      await page.getByText("It is closed until 3 May.").waitFor();
      expect(JSON.stringify(model.requests.at(-1)?.body)).toContain(BRIDGE);
      await visit.look("first-run-answer");

      // What was done is told by the server, so that it stays done.
      await page.reload();
      for (const name of [
        "Your account",
        "Let mail find the server",
        "Connect a model",
        "Get an address",
        "Send a first mail",
      ])
        await page.getByRole("heading", { name: `Done: ${name}` }).waitFor();
      await page.getByText(`@${DOMAIN}`).waitFor();
      await page.getByText("connected, and tested without asking it anything.").waitFor();
      await page.getByText("Your server answers.").waitFor();
      await page.goto(at.setup);
      await page.getByText("its first account has been made", { exact: false }).waitFor();
      expect(await page.getByRole("button").count()).toBe(0);
    },
    120_000,
  );
});

describe.skipIf(!hasChromium)("a page over plain http of a server that is set up for https", () => {
  test.each(TASK_LOOKS)(
    "says why nobody can sign in there, and uses up no setup link (%s)",
    async (_name, look) => {
      await using at = await dashboard({
        fresh: true,
        env: { MAILWRIGHT_SERVER__BASE_URL: "https://mx.acme.test" },
      });
      const plain = "http://mx.acme.test";
      await using visit = await at.visit({ look, signed_out: true, elsewhere: [plain], alone: true });
      const { page } = visit;
      // Chromium trusts the loopback: this one page comes from a name that it does not.
      await page.route(`${plain}/**`, async (route) => {
        const { pathname, search } = new URL(route.request().url());
        await route.fulfill({ response: await route.fetch({ url: `${at.url}${pathname}${search}` }) });
      });
      const { pathname, search } = new URL(at.setup);
      await page.goto(`${plain}${pathname}${search}`);
      await page.getByText("your browser drops the cookie that signs you in").waitFor();
      const there = page.getByRole("link", { name: "mx.acme.test over https" });
      expect(await there.getAttribute("href")).toBe(at.setup);
      expect(await page.getByRole("button", { name: "Make the account" }).count()).toBe(0);
      await visit.look("setup-plain-http");
      await page.goto(`${plain}/app/sign-in`);
      await page.getByText("set up for https").waitFor();
      expect(await page.getByRole("textbox").count()).toBe(0);
      // The loopback keeps the cookie, and the link works there.
      await page.goto(`${at.url}${pathname}${search}`);
      await page.getByRole("button", { name: "Make the account" }).waitFor();
    },
  );
});

describe.skipIf(!hasChromium)("who comes later", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;

  beforeAll(async () => {
    at = stack.use(await dashboard());
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(TASK_LOOKS)("gets from a code by mail to an answer (%s)", async (name, look) => {
    await using visit = await at.visit({ look, signed_out: true });
    const { page } = visit;
    const email = `joe-${name}@example.org`;
    await page.getByLabel("Your mail address").fill(email);
    await page.getByRole("button", { name: "Send me a code" }).click();
    await page.getByText("This server sends no mail yet", { exact: false }).waitFor();
    await visit.look("sign-in-code");
    await page
      .getByRole("textbox", { name: "Code" })
      .fill(await at.said(new RegExp(`${email}\\W[^\\n]*?code\\W+(\\d{6})`)));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Get started" }).waitFor();
    expect(await page.getByRole("heading", { name: "Let mail find the server" }).count()).toBe(0);
    await leaveAndComeBack(visit, "Connect a model");
    await page.getByRole("button", { name: "Begin with the demo model" }).click();
    await page.getByRole("region", { name: "Get an address" }).getByRole("button").click();
    await leaveAndComeBack(visit, "Send a first mail");
    await page.getByRole("button", { name: "Send it" }).click();
    await page.getByText("This is the built-in demo model.").waitFor();
    await visit.look("welcome-answer");
  });

  test("who runs the server stays past the DNS, and gets no address while a model is being made", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    const current = (name: string) => currentStep(page, name).waitFor();
    await page.goto(`${at.url}/app/welcome`);
    await page.getByRole("button", { name: "Go on without it" }).click();
    await current("Connect a model");
    await page.reload();
    await current("Connect a model");

    await page.getByRole("button", { name: "Begin with the demo model" }).click();
    await current("Get an address");
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/connections/*/test", async (route) => {
      await held;
      await route.continue();
    });
    await page.getByRole("button", { name: "Connect another" }).click();
    await page.getByRole("button", { name: "Ollama" }).click();
    await page.getByRole("button", { name: "Connect and test" }).click();
    await page.getByRole("button", { name: "Connect it all the same" }).click();
    await page.getByText("Asking Ollama…").waitFor();
    expect(await page.getByRole("button", { name: "Go on", exact: true }).isEnabled()).toBe(false);
    await page.getByRole("button", { name: "Show it" }).click();
    await page.getByRole("button", { name: "Go on without it" }).click();
    await current("Connect a model");
    expect(await page.getByRole("button", { name: "Get an address" }).count()).toBe(0);
    release();
    await current("Get an address");
    expect(await page.getByRole("button", { name: "Get an address" }).isEnabled()).toBe(true);
  });
});

/** Over the activity, where nothing has come yet. */
async function leaveAndComeBack({ open, page }: Visit, next: string): Promise<void> {
  await open("Activity");
  await page.getByRole("link", { name: "Go on with the first steps" }).click();
  await currentStep(page, next).waitFor();
}

function currentStep(page: Page, name: string): Locator {
  return page.getByRole("region", { name }).and(page.locator("[aria-current=step]"));
}

/** Does what the operator does at the registrar. */
function publish(dns: TestDnsServer, { records }: DnsView): void {
  for (const { type, name, value, priority } of records)
    if (type === "MX") dns.set(name, "MX", [[priority ?? 0, value ?? ""]]);
    else if (type === "TXT") dns.set(name, "TXT", [value ?? ""]);
    else dns.set(name, "A", ["192.0.2.7"]);
}
