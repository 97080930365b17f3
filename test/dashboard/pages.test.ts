import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page, Route } from "playwright-core";
import { type Dashboard, dashboard, hasChromium, LOOKS, OWNER, PAGES } from "./house.ts";
import { until } from "../support/until.ts";

/** Those that show what they have read, beyond who is signed in. */
const READ = PAGES.filter((name) => name !== "Playground" && name !== "Settings");
const FULL = {
  status: 503,
  contentType: "application/problem+json",
  body: JSON.stringify({ status: 503, code: "unavailable", detail: "The disk is full.", fix: "Make room." }),
};
const FIRST_LOAD_BYTES = 200 * 1024;
const EMAIL = "Your mail address";

describe.skipIf(!hasChromium)("the dashboard", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;

  beforeAll(async () => {
    at = stack.use(await dashboard());
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(LOOKS)(
    "says on every page of a new account what belongs there (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      for (const name of PAGES) {
        await visit.open(name);
        await visit.look(`new-${name.toLowerCase()}`);
      }
    },
    120_000,
  );

  test.each(LOOKS)(
    "takes a signed-out browser to the sign-in, says what was wrong, and goes on to where it wanted to be (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look, signed_out: true, refusals: [401] });
      const { page } = visit;
      await page.goto(`${at.url}/app/settings`);
      await page.getByRole("tab", { name: "Password" }).click();
      await page.getByLabel(EMAIL).fill(OWNER.email);
      await page.getByRole("textbox", { name: "Password" }).fill("not the password");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("alert").waitFor();
      await visit.look("sign-in-wrong");
      await page.getByRole("textbox", { name: "Password" }).fill(OWNER.password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
      expect(page.url()).toBe(`${at.url}/app/settings`);
      const navigation = page.getByRole("button", { name: "Open the navigation" });
      if (await navigation.isVisible()) await navigation.click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in to Mailwright" }).waitFor();
    },
  );

  test("says on every page what the server says when it cannot be read, and reads it when asked again", async () => {
    await using visit = await at.visit({ refusals: [503] });
    const { page } = visit;
    const refuse = (route: Route) =>
      route.request().resourceType() === "fetch" ? route.fulfill(FULL) : route.continue();
    for (const name of READ) {
      await page.goto(`${at.url}/app/welcome`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.route(/^(?!.*(\/app\/|\/auth\/))/, refuse);
      await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      const alert = page.getByRole("alert").filter({ hasText: "The disk is full." });
      await alert.first().getByText("Make room.").waitFor();
      await page.unrouteAll();
      // One of them may do for the others.
      for (let left = await alert.count(); left > 0; left = await alert.count()) {
        await alert.first().getByRole("button", { name: "Try again" }).click();
        await until(
          async () => (await alert.count()) < left,
          10_000,
          () => alert.allInnerTexts().then(String),
        );
      }
    }
  }, 60_000);

  test("leads from a sign-in to no other site", async () => {
    const elsewhere = `${at.url}/app/sign-in?to=https://elsewhere.example/`;
    await using known = await at.visit();
    await known.page.goto(elsewhere);
    await known.page.getByRole("heading", { name: "Activity", level: 1 }).waitFor();
    await using stranger = await at.visit({ signed_out: true });
    await stranger.page.goto(elsewhere);
    await stranger.page.getByRole("tab", { name: "Password" }).click();
    await stranger.page.getByLabel(EMAIL).fill(OWNER.email);
    await stranger.page.getByRole("textbox", { name: "Password" }).fill(OWNER.password);
    await stranger.page.getByRole("button", { name: "Sign in" }).click();
    await stranger.page.getByRole("heading", { name: "Get started" }).waitFor();
  });

  test("says where there is no page, and leaves the way to the others", async () => {
    await using visit = await at.visit({ refusals: [404, 422] });
    const { page } = visit;
    const unknown = Bun.randomUUIDv7();
    for (const path of [
      "nothing",
      "messages/12",
      `messages/${unknown}`,
      `conversations/${unknown}`,
      "contexts/12",
    ]) {
      await page.goto(`${at.url}/app/${path}`);
      await page.getByRole("heading", { name: "There is no such page", level: 1 }).waitFor();
      await visit.open("Activity");
    }
  });

  test("tells who writes while the session ends how it is kept, and whom nobody answers that he is still signed in", async () => {
    await using visit = await at.visit({ refusals: [401, 503] });
    const { page } = visit;
    await page.goto(`${at.url}/app/contexts/new`);
    await page.getByLabel("Title").fill("House style");
    await page.getByLabel("Text in Markdown").fill("Plain words.");
    const signOut = page.getByRole("button", { name: "Sign out" });
    await page.route("**/auth/logout", (route) => route.fulfill(FULL));
    await signOut.click();
    await page.getByRole("alert").getByText("The disk is full.").waitFor();
    const cookies = await page.context().cookies();
    await page.context().clearCookies();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("You are no longer signed in.").waitFor();
    await page.getByText("Sign in again in another tab.").waitFor();
    await page.context().addCookies(cookies);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
  });

  test("says that a page cannot be fetched, and fetches it when asked again", async () => {
    await using visit = await at.visit({ refusals: [503] });
    const { page } = visit;
    for (const path of ["**/app/assets/**", "**/server"])
      await page.route(path, (route) => route.fulfill(FULL));
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("alert").getByText("The disk is full.").waitFor();
    await page.getByRole("navigation").waitFor();
    await page.unrouteAll();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
  });

  test("mails a code again only after a while, and counts down to it", async () => {
    await using visit = await at.visit({ signed_out: true, refusals: [401, 422] });
    const { page } = visit;
    const email = "kim@example.org";
    await page.getByLabel(EMAIL).fill(email);
    await page.getByRole("button", { name: "Send me a code" }).click();
    const again = page.getByRole("button", { name: /^Send again in \d+ s$/ });
    await again.waitFor();
    const first = await again.innerText();
    await page.getByRole("textbox", { name: "Code" }).fill("000000");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("The code is wrong, has been used, or is too old.").waitFor();
    expect(await again.isEnabled()).toBe(false);
    await page.getByRole("button", { name: "Send again in" }).filter({ hasNotText: first }).waitFor();
    await page.getByRole("button", { name: "Other address" }).click();
    expect(await page.getByLabel(EMAIL).inputValue()).toBe(email);
    // The server's own patience: whoever asks too early is told how long it takes, and no second mail goes out.
    await page.getByRole("button", { name: "Send me a code" }).click();
    await again.waitFor();
    const { items } = await at.api<{ items: { to: string }[] }>("GET", "/admin/mail");
    expect(items.filter(({ to }) => to === email)).toHaveLength(1);
  });

  test("loads little at first", async () => {
    await using visit = await at.visit({ signed_out: true });
    await using first = await firstLoad(visit.page);
    const sizes: Promise<number>[] = [];
    first.page.on("requestfinished", (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
    });
    await first.page.goto(`${at.url}/app`);
    await first.page.waitForLoadState("networkidle");
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(FIRST_LOAD_BYTES);
  });

  test("can be typed into at once, without a click", async () => {
    await using visit = await at.visit({ signed_out: true });
    await using first = await firstLoad(visit.page);
    await first.page.goto(`${at.url}/app`);
    await first.page.locator("input:focus").waitFor();
    await first.page.keyboard.type("ada@example.org");
    expect(await first.page.getByLabel(EMAIL).inputValue()).toBe("ada@example.org");
  });
});

/** A page beside the visit's, in a browser that has kept nothing of an earlier load. */
async function firstLoad(beside: Page) {
  const context = await beside.context().browser()?.newContext();
  if (!context) throw new Error("The browser has gone.");
  return { page: await context.newPage(), [Symbol.asyncDispose]: () => context.close() };
}
