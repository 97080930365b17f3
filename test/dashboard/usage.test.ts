import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import type { Page } from "playwright-core";
import { readForm } from "../support/stripe-forms.ts";
import { startStripe, type StripeEvent, type StripeStandIn } from "../support/stripe-stand-in.ts";
import { type Dashboard, dashboard, hasChromium, TASK_LOOKS } from "./house.ts";
import { until } from "../support/until.ts";
import { signUp } from "./sign-up.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";

/** How many runs there were, so many days ago. */
const RUNS = [2, 0, 1, 3];
const STRIPE_PAGES = "https://checkout.stripe.com";
const STRIPE_PORTAL = "https://billing.stripe.com";

describe.skipIf(!hasChromium)("usage and billing", () => {
  let at: Dashboard;
  let stripe: StripeStandIn;

  beforeAll(async () => {
    stripe = startStripe(() => Math.floor(Date.now() / 1_000));
    const settings = Object.entries(stripe.config.billing);
    const billing = settings.map(([name, value]) => [`MAILWRIGHT_BILLING__${name.toUpperCase()}`, value]);
    at = await dashboard({
      env: { ...Object.fromEntries(billing), MAILWRIGHT_EGRESS__ALLOW: stripe.config.egress.allow.join(",") },
    });
    const { id } = await at.api<{ id: string }>("POST", "/connections", { kind: "demo" });
    await at.api("POST", "/inboxes", { label: "Support", default_connection_id: id });
    await spreadRuns(at);
  }, 120_000);

  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await stripe[Symbol.asyncDispose]();
  });

  test("a plot is drawn anew when the theme of the machine changes", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Usage");
    const drawn = () =>
      page.evaluate<string>("document.querySelector('[role=img] canvas')?.toDataURL() ?? ''");
    await page.getByRole("img", { name: "Answered by day: 6 altogether" }).waitFor();
    await page.emulateMedia({ colorScheme: "light" });
    const light = await drawn();
    await page.emulateMedia({ colorScheme: "dark" });
    await until(async () => (await drawn()) !== light);
    await page.emulateMedia({ colorScheme: "light" });
    await until(async () => (await drawn()) === light);
  }, 60_000);

  test.each(TASK_LOOKS)(
    "%s: usage shows plots, a table of days, inboxes and what is left",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Usage");
      await page.getByRole("img", { name: "Answered by day: 6 altogether" }).waitFor();
      await page.getByRole("img", { name: "Credits by day: 6 altogether" }).waitFor();
      await page.getByRole("img", { name: /^Tokens by day: \d+ altogether/ }).waitFor();
      await page.getByText("94 left").waitFor();
      await page.getByText("MB stored").waitFor();
      await page.getByText(/^Of the [\d,]+ MB of your plan, with mails/).waitFor();
      await readsDays(page);
      await page.getByText("Day by day, as a table").click();
      const days = page.getByRole("group", { name: "Days" }).getByRole("row");
      const answered = await days.locator("td:first-of-type").allInnerTexts();
      expect(answered.slice(0, RUNS.length).map(Number)).toEqual(RUNS);
      expect(answered).toHaveLength(30);
      expect(await page.getByRole("row", { name: /Support/ }).innerText()).toMatch(/Support\s+6\s+\d+\s+6/);
      await visit.look("usage");
      await page.getByLabel("Time").selectOption("Last 7 days");
      await days.nth(8).waitFor({ state: "detached" });
      expect(await days.locator("td:first-of-type").count()).toBe(7);
    },
  );

  test.each(TASK_LOOKS)(
    "%s: billing leads to the payment page, and back with nothing bought",
    async (_name, look) => {
      await using visit = await at.visit({ look, elsewhere: [STRIPE_PAGES] });
      const { page } = visit;
      await standInPages(page, stripe);
      await visit.open("Billing");
      await page.getByText("You see the price on the next page").waitFor();
      await page.getByRole("button", { name: "Change to Team" }).click();
      await page.getByRole("link", { name: "Never mind" }).click();
      await page.getByText("Nothing was bought, and nothing is paid.").waitFor();
      await visit.look("billing");
    },
  );

  test("a plan is bought, credits are added to it, and the portal is reached", async () => {
    await using visit = await at.visit({
      signed_out: true,
      elsewhere: [STRIPE_PAGES, STRIPE_PORTAL],
      refusals: [401],
    });
    const { page } = visit;
    // Not the owner, on whose plan the other tests look.
    await page
      .context()
      .addCookies([await signUp(at, { email: "grace@example.org", password: "loud river 42" })]);
    await standInPages(page, stripe);
    await page.goto(`${at.url}/app/billing`);
    await page.getByLabel("Paid").selectOption("Paid by the year");
    await page.getByRole("button", { name: "Change to Pro" }).click();
    await page.getByRole("link", { name: "Pay" }).click();
    await page.getByText("The payment provider tells this server in a moment").waitFor();
    await tell(stripe.pay(stripe.sessions.at(-1)?.url ?? ""));
    await page.getByText("What you bought is yours now").waitFor();
    await page.getByText("2,000 credits a month").waitFor();
    expect(stripe.sessions.at(-1)?.price).toBe(stripe.config.billing.price_pro_year);
    await page.getByRole("button", { name: "Buy more credits" }).click();
    await page.getByRole("link", { name: "Pay" }).click();
    await tell(stripe.pay(stripe.sessions.at(-1)?.url ?? ""));
    await page.getByText("1,000 of them bought").waitFor();
    await page.getByRole("button", { name: "Invoices, card and cancelling" }).click();
    await page.getByRole("heading", { name: "The portal" }).waitFor();
  });

  async function tell(events: StripeEvent[]): Promise<void> {
    for (const event of events) {
      const { status } = await fetch(`${at.url}/billing/webhook`, stripe.signed(event));
      expect(status).toBe(200);
    }
  }
});

/** Runs made now and set back in time, so that there are days to plot. */
async function spreadRuns(at: Dashboard): Promise<void> {
  using stack = new DisposableStack();
  // It waits where the server is writing.
  const database = stack.adopt(new Sqlite(join(at.dir, "data/mailwright.db")), (opened) => opened.close());
  const setBack = database.prepare("update messages set created = created - ? where id = ?");
  for (const [days, count] of RUNS.entries())
    for (let nth = 0; nth < count; nth += 1) {
      const content = `Eggs cost ${nth} francs.`;
      const call = { instruction: "Summarise this", content };
      const { message_id } = await at.api<{ message_id: string }>("POST", "/v1/messages", call);
      setBack.run(days * DAY_SECONDS, message_id);
    }
}

/** By the arrow keys from the newest day back, and under the pointer. */
async function readsDays(page: Page): Promise<void> {
  const answered = page.getByRole("slider", { name: "Answered by day, a day" });
  const seen = async (): Promise<string> => (await answered.innerText()).replace(/^.*: /, "");
  const figures = [await seen()];
  await answered.focus();
  for (const _day of RUNS.slice(1)) {
    await page.keyboard.press("ArrowLeft");
    figures.push(await seen());
  }
  expect(figures).toEqual(RUNS.map(String));
  const fourth = await answered.innerText();
  expect(await answered.getAttribute("aria-valuetext")).toBe(fourth);
  await page.keyboard.press("End");
  const newest = await answered.innerText();
  expect(newest).not.toBe(fourth);
  const plot = page.getByRole("img", { name: "Answered by day: 6 altogether" });
  const { width = 0, height = 0 } = (await plot.boundingBox()) ?? {};
  await plot.hover({ position: { x: width / 2, y: height / 2 } });
  await answered.filter({ hasText: /: 0$/ }).waitFor();
  await page.mouse.move(0, 0);
  await answered.filter({ hasText: newest }).waitFor();
}

/** What the payment provider's own pages do for who comes to them: lead back. */
async function standInPages(page: Page, stripe: StripeStandIn): Promise<void> {
  await page.route(`${STRIPE_PAGES}/**`, (route) => {
    const call = stripe.calls.findLast(({ path }) => path.endsWith("/checkout/sessions"));
    const form = call ? readForm(call) : {};
    const link = (name: string, words: string) => `<a href="${form[name]}">${words}</a>`;
    const body = `<h1>Pay here</h1>${link("success_url", "Pay")} ${link("cancel_url", "Never mind")}`;
    return route.fulfill({ contentType: "text/html", body });
  });
  await page.route(`${STRIPE_PORTAL}/**`, (route) =>
    route.fulfill({ contentType: "text/html", body: "<h1>The portal</h1>" }),
  );
}
