import { describe, expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { dashboard, hasChromium, OWNER, takePicture } from "./house.ts";

/** More than any page has between two things that one goes to. */
const MAX_STEPS = 60;

interface Focus {
  name: string;
  lost: boolean;
  visible: boolean;
}

describe.skipIf(!hasChromium)("without a mouse", () => {
  test("the setup link leads to the first answer, to its story, out and in again", async () => {
    await using at = await dashboard({ fresh: true });
    await using visit = await at.visit({ signed_out: true });
    const { page } = visit;
    const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true });
    const heading = (name: string) => page.getByRole("heading", { name });

    await page.goto(at.setup);
    await isFocused(page.getByLabel("Your mail address"));
    await page.keyboard.type(OWNER.email);
    await goTo(page, page.getByLabel("Password"));
    await page.keyboard.type(OWNER.password);
    await page.keyboard.press("Enter");

    await heading("Get started").waitFor();
    await goTo(page, button("Go on without it"));
    await page.keyboard.press("Enter");
    await isFocused(heading("Connect a model"));

    await goTo(page, button("OpenAI"));
    await page.keyboard.press("Enter");
    await isFocused(page.getByRole("dialog").getByLabel("Name"));
    for (let n = 0; n < 12; n += 1) {
      await page.keyboard.press("Tab");
      expect(await page.evaluate(OUTSIDE_OF_DIALOG)).toBe(false);
    }
    await page.keyboard.press("Escape");
    await isFocused(button("OpenAI"));
    await goTo(page, button("Begin with the demo model"), "Shift+Tab");
    await page.keyboard.press("Space");
    await isFocused(heading("Get an address"));
    await goTo(page, button("Get an address"));
    await page.keyboard.press("Enter");
    await isFocused(heading("Send a first mail"));

    await goTo(page, page.getByLabel("The mail it works on"));
    await page.keyboard.press("Control+A");
    await page.keyboard.type("The bridge opens on 3 May.");
    await goTo(page, button("Send it"));
    await page.keyboard.press("Enter");
    await page.getByText("This is the built-in demo model.").waitFor();
    await isFocused(button("Send it"));

    await goTo(page, page.getByRole("link", { name: "See how the answer came about" }));
    await page.keyboard.press("Enter");
    await heading("What was asked").waitFor();
    await isFocused(page.locator("h1"), page.locator("main"));
    const story = page.url();

    await goTo(page, button("Sign out"), "Shift+Tab");
    await page.keyboard.press("Enter");
    await isFocused(page.getByLabel("Your mail address"));
    await goTo(page, page.getByRole("tab", { name: "Password" }), "Shift+Tab");
    await page.keyboard.press("ArrowLeft");
    await isFocused(page.getByRole("tab", { name: "Code by mail" }));
    await page.keyboard.press("ArrowRight");
    await isFocused(page.getByRole("tab", { name: "Password" }));
    await goTo(page, page.getByLabel("Your mail address"));
    await page.keyboard.type(OWNER.email);
    await goTo(page, page.getByRole("textbox", { name: "Password" }));
    await page.keyboard.type(OWNER.password);
    await page.keyboard.press("Enter");
    await heading("Activity").waitFor();
    await isFocused(heading("Activity"), page.locator("main"));
    await goTo(page, page.locator(`a[href="${new URL(story).pathname}"]`));
  }, 60_000);

  test("on a phone the navigation opens, closes and leads to the heading of the next page", async () => {
    const phone = { viewport: { width: 390, height: 844 }, colorScheme: "light" as const };
    await using at = await dashboard();
    await using visit = await at.visit({ look: phone });
    const { page } = visit;
    const open = page.getByRole("button", { name: "Open the navigation" });
    await goTo(page, open);
    await page.keyboard.press("Enter");
    await goTo(page, page.getByRole("link", { name: "Usage" }));
    await page.keyboard.press("Escape");
    await isFocused(open);
    await page.keyboard.press("Enter");
    await goTo(page, page.getByRole("link", { name: "Domains" }));
    await page.keyboard.press("Enter");
    await isFocused(page.getByRole("heading", { name: "Domains" }), page.locator("main"));
    // A window gives the focus back to what opened it.
    const add = page.getByRole("button", { name: "Add a domain" });
    await goTo(page, add);
    await page.keyboard.press("Enter");
    await isFocused(page.getByLabel("Domain"));
    await goTo(page, page.getByRole("button", { name: "Cancel" }));
    await page.keyboard.press("Space");
    await isFocused(add);
  }, 60_000);

  test("on a phone the navigation stays open when work on the page comes to its end", async () => {
    await using at = await dashboard();
    await using visit = await at.visit({
      look: { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
    });
    const { page } = visit;
    await page.goto(`${at.url}/app/welcome`);
    await page.getByRole("button", { name: "Go on without it" }).click();
    await page.getByRole("button", { name: "Begin with the demo model" }).click();
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/inboxes", async (route) => {
      if (route.request().method() === "POST") await held;
      await route.continue();
    });
    await page.getByRole("region", { name: "Get an address" }).getByRole("button").click();
    await page.getByRole("button", { name: "Open the navigation" }).click();
    release();
    await page
      .getByRole("region", { name: "Send a first mail" })
      .and(page.locator("[aria-current=step]"))
      .waitFor();
    const close = page.getByRole("button", { name: "Close the navigation" });
    await isFocused(close);
    await goTo(page, page.getByRole("link", { name: "Activity" }));
  }, 60_000);

  test("on a phone the navigation opens where it is seen, however far the page is scrolled", async () => {
    await using at = await dashboard();
    for (const viewport of [
      { width: 390, height: 844 },
      { width: 640, height: 360 },
    ]) {
      await using visit = await at.visit({ look: { viewport, colorScheme: "dark" } });
      const { page } = visit;
      await visit.open("Settings");
      const navigation = page.getByRole("navigation", { name: "Pages" });
      const scroll = (): Promise<number> => page.evaluate("window.scrollY");
      await page.evaluate("window.scrollTo(0, 900)");
      expect(await scroll()).toBe(900);
      // By the mouse itself: a click of the test library would scroll first.
      const button = await boxOf(page.getByRole("button", { name: "Open the navigation" }));
      await page.mouse.click(button.x + 10, button.y + 10);
      const box = await boxOf(page.locator("#navigation"));
      expect(box.y).toBeGreaterThan(button.y + button.height);
      expect(box.y).toBeLessThan(100);
      expect(box.y + box.height).toBeLessThanOrEqual(viewport.height);
      for (const theme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: theme });
        await takePicture(page, `navigation-${viewport.width}-${theme}`);
      }
      // What does not fit is reached by scrolling the navigation, and not the page.
      await goTo(page, page.getByRole("button", { name: "Sign out" }));
      expect(await scroll()).toBe(900);
      // Beyond its end the focus is in the page, which must not lie below it.
      await page.keyboard.press("Tab");
      await navigation.waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Open the navigation" }).click();
      await page.keyboard.press("Escape");
      await navigation.waitFor({ state: "hidden" });
    }
  }, 60_000);
});

async function boxOf(target: Locator) {
  const box = await target.boundingBox();
  if (!box) throw new Error("It is not to be seen");
  return box;
}

/** By one key again and again, as somebody who looks where the focus is after each. */
async function goTo(page: Page, target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await target.waitFor();
  const way: string[] = [];
  for (let n = 0; n < MAX_STEPS; n += 1) {
    await page.keyboard.press(key);
    const focus = await page.evaluate<Focus>(FOCUS);
    way.push(focus.name);
    expect({ way, ...focus }).toMatchObject({ lost: false, visible: true });
    if ((await target.and(page.locator(":focus")).count()) > 0) return;
  }
  throw new Error(`It is not on the way: ${way.join(", ")}`);
}

/** Waits until the focus is where it should be, or on the other place that will do. */
async function isFocused(target: Locator, other = target): Promise<void> {
  await target.or(other).and(target.page().locator(":focus")).first().waitFor();
}

/** Told as text, since the compiler of the tests knows no page. */
const FOCUS = `(() => {
  const active = document.activeElement;
  const box = active.getBoundingClientRect();
  const style = getComputedStyle(active);
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  // The browser's own field for a date rings that part of it which has the focus.
  const rings = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || active.type === "date";
  return {
    name: active.tagName + " " + (active.getAttribute("aria-label") || active.textContent || "").slice(0, 40),
    lost: active === document.body,
    visible: inside && rings,
  };
})()`;
const OUTSIDE_OF_DIALOG = `!document.activeElement.closest("dialog") && document.activeElement !== document.body`;
