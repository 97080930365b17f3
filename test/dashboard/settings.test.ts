import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import { browserName } from "../../src/dashboard/pages/settings/browsers.ts";
import { unzip } from "../support/unzip.ts";
import { type Dashboard, dashboard, hasChromium, TASK_LOOKS, OWNER } from "./house.ts";
import { setBackSignIns, signUp } from "./sign-up.ts";

test("browsers are called by the names that people know", () => {
  const names = [
    [
      "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0",
      "Edge on Windows",
    ],
    ["Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0", "Firefox on Linux"],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
      "Safari on an iPhone",
    ],
    [
      "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36",
      "Chrome on Android",
    ],
    [
      "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15",
      "Safari on a Mac",
    ],
    ["curl/8.14.1", "curl/8.14.1"],
    ["", "A browser without a name"],
  ];
  expect(names.map(([user_agent = ""]) => [user_agent, browserName(user_agent)])).toEqual(names);
});

describe.skipIf(!hasChromium)("settings", () => {
  let at: Dashboard;

  beforeAll(async () => {
    at = await dashboard();
  }, 120_000);

  afterAll(() => at[Symbol.asyncDispose]());

  /** Signs in somewhere else, and gives the cookie of that. */
  async function signIn(path: string, body: object, agent: string): Promise<string> {
    const headers = { "content-type": "application/json", "user-agent": agent };
    const response = await fetch(`${at.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status).toBe(200);
    return response.headers.get("set-cookie")?.split(";")[0] ?? "";
  }

  test.each(TASK_LOOKS)(
    "%s: a profile is saved and taken back, a key is shown once, a browser is signed out",
    async (name, look) => {
      const agent = `Mozilla/5.0 (Windows NT 10.0; rv:143.0) Gecko/20100101 Firefox/143.0 ${name}`;
      const elsewhere = await signIn("/auth/login", OWNER, agent);
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Settings");
      await page.getByText("The address of an account cannot be changed.").waitFor();
      const ground = (input: string) =>
        page.evaluate(`getComputedStyle(document.querySelector("${input}")).backgroundColor`);
      expect(await ground("main input[readonly]:not([type=hidden])")).not.toBe(
        await ground("main input[autocomplete=name]"),
      );
      await page.getByLabel("Name", { exact: true }).fill(`Ada ${name}`);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.getByText("It is as it was.").waitFor();
      expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("");
      await page.getByRole("button", { name: "New key" }).click();
      await page.getByLabel("Name", { exact: true }).last().fill(`laptop ${name}`);
      await page.getByRole("button", { name: "Make the key" }).click();
      const key = await page
        .getByRole("dialog")
        .getByText(/^mw_live_/)
        .innerText();
      const by_key = { headers: { "x-api-key": key, "content-type": "application/json" } };
      const change = { method: "PATCH", body: JSON.stringify({ timezone: "UTC" }), ...by_key };
      expect((await fetch(`${at.url}/auth/profile`, change)).status).toBe(200);
      await page.getByRole("button", { name: "I have it" }).click();
      expect(await page.getByText(key).count()).toBe(0);
      await page.getByText(`laptop ${name}`).waitFor();
      await visit.look("settings");
      const reference = page.getByRole("link", { name: "the API reference" });
      expect(await reference.getAttribute("href")).toBe("/docs");
      await page.getByRole("button", { name: `Revoke laptop ${name}` }).click();
      await page.getByText("its schedules pause").waitFor();
      await page.getByRole("button", { name: "Revoke the key" }).click();
      await page.getByText(`laptop ${name}`).waitFor({ state: "detached" });
      expect((await fetch(`${at.url}/auth/me`, { headers: { "x-api-key": key } })).status).toBe(401);
      await page.getByRole("button", { name: "Sign it out: Firefox on Windows" }).click();
      await page.getByText("Firefox on Windows is signed out.").waitFor();
      expect((await fetch(`${at.url}/auth/me`, { headers: { cookie: elsewhere } })).status).toBe(401);
      await page.reload();
      const log = page.getByRole("group", { name: "What happened to your access" });
      const done = log.getByRole("listitem").filter({ hasText: `with the key "laptop ${name} (mw_live_` });
      expect(await done.innerText()).toContain("The profile was changed");
    },
  );

  test("everything of the account is downloaded, and a refusal is told in the server's words", async () => {
    await using visit = await at.visit({ refusals: [429] });
    const { page } = visit;
    await visit.open("Settings");
    const button = page.getByRole("button", { name: "Download everything" });
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    expect(download.suggestedFilename()).toMatch(/^mailwright-\d{4}-\d\d-\d\d\.zip$/);
    const files = await unzip(await readFile(await download.path()));
    expect(files.get("README.txt")?.toString()).toContain(OWNER.email);
    await page.getByText(/^Done: /).waitFor();
    await page.getByRole("group", { name: "What happened to your access" }).waitFor();
    const refused = page.getByRole("alert");
    while (!(await refused.isVisible())) {
      await button.click();
      await page
        .getByText(/^Done: /)
        .or(refused)
        .waitFor();
    }
    expect(await refused.innerText()).toMatch(/again/i);
  });

  test("colours are kept by the browser, and need nobody to ask the server", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Settings");
    await page.getByLabel("Colours").selectOption("Dark");
    await page.reload();
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  });

  test("a password is changed, and an account deleted by its address and that password alone", async () => {
    const grace = { email: "grace@example.org", password: "loud river 42" };
    const changed = { ...grace, password: "still river 43" };
    const cookie = await signUp(at, grace);
    await using visit = await at.visit({ signed_out: true, refusals: [401, 403, 422] });
    const { page } = visit;
    await page.context().addCookies([cookie]);
    await page.goto(`${at.url}/app/settings`);
    const change = async (): Promise<void> => {
      await page.getByLabel("Password you have now").fill(grace.password);
      await page.getByLabel("New password").fill(changed.password);
      await page.getByRole("button", { name: "Change the password" }).click();
    };
    // A browser that signed in long ago is led to do it again, and back.
    setBackSignIns(at);
    await change();
    await page.getByText("A new password needs a sign-in of the last ten minutes").waitFor();
    await page.getByRole("button", { name: "Sign out and in again" }).click();
    await page.getByRole("heading", { name: "Sign in to Mailwright" }).waitFor();
    await page.getByRole("tab", { name: "Password" }).click();
    await page.getByLabel("Mail address").fill(grace.email);
    await page.getByLabel("Password", { exact: true }).last().fill(grace.password);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    await change();
    await page.getByText("The password is set.").waitFor();
    await page.getByRole("button", { name: "Delete the account" }).click();
    const dialog = page.getByRole("dialog");
    const act = dialog.getByRole("button", { name: "Delete the account" });
    await dialog.getByLabel("Password").fill(grace.password);
    await dialog.getByLabel(`Type ${grace.email} to confirm`).fill(OWNER.email);
    expect(await act.isDisabled()).toBe(true);
    await dialog.getByLabel(`Type ${grace.email} to confirm`).fill(grace.email);
    await act.click();
    await dialog.getByRole("alert").nth(1).waitFor();
    await dialog.getByLabel("Password").fill(changed.password);
    await act.click();
    await page.getByRole("heading", { name: "Sign in to Mailwright" }).waitFor();
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify(changed);
    const again = await fetch(`${at.url}/auth/login`, { method: "POST", headers, body });
    expect(again.status).toBe(401);
  });

  test("without a payment provider nothing leads to the billing page, which says so and offers nothing", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Usage");
    expect(await page.getByRole("link", { name: "Billing" }).count()).toBe(0);
    // Nor does a page speak of plans, or of credits, which do not end here.
    for (const name of ["Usage", "Playground", "Inboxes", "Contexts", "Webhooks", "Recipes", "Settings"]) {
      await visit.open(name);
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      await page
        .getByText(/^Loading /)
        .first()
        .waitFor({ state: "detached" });
      const words = await page.locator("main").innerText();
      expect([name, /\bplans?\b|\bcredits?\b|From (Pro|Team)/i.exec(words)?.[0]]).toEqual([name, undefined]);
    }
    await page.goto(`${at.url}/app/billing`);
    await page.getByText("This server sells nothing").waitFor();
    expect(await page.locator("main").getByRole("button").count()).toBe(0);
    await visit.look("billing-without-payments");
  });
});
