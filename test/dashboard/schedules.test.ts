import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Dashboard, dashboard, hasChromium, LOOKS, TASK_LOOKS } from "./house.ts";

const stack = new AsyncDisposableStack();
let at: Dashboard;

describe.skipIf(!hasChromium)("schedules", () => {
  beforeAll(async () => {
    at = stack.use(await dashboard());
    await at.api("POST", "/connections", { kind: "demo" });
    await at.api("POST", "/inboxes", { label: "Desk" });
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(TASK_LOOKS)("one is made, run, paused, changed and deleted (%s)", async (_name, look) => {
    await using visit = await at.visit({ look, refusals: [422] });
    const { page } = visit;
    const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
    await visit.open("Schedules");
    await page.getByText("No schedule yet").waitFor();
    await visit.look("schedules-empty");
    await press("New schedule");
    await page.getByLabel("What is to be done").fill("Summarise what came in.");
    await page.getByRole("textbox", { name: "When" }).fill("now and then");
    await visit.look("schedule-new");
    await press("Make the schedule");
    await page.getByText("It is not clear when “now and then” is.", { exact: false }).first().waitFor();
    await page.getByRole("textbox", { name: "When" }).fill("weekday 8:00");
    await page.getByLabel("Mail to work on").selectOption("inbox");
    await press("Make the schedule");
    await page.getByRole("heading", { name: "Summarise what came in.", level: 1 }).waitFor();
    await page.getByText("Every weekday at 08:00", { exact: false }).waitFor();
    await visit.look("schedule");

    await press("Run now");
    await page
      .getByRole("region", { name: "Runs" })
      .getByText("Nothing came in since the last run")
      .waitFor();
    await press("Pause");
    await page.getByText("Paused", { exact: true }).waitFor();
    await press("Go on");
    await page.getByText("On", { exact: true }).waitFor();
    await press("Change");
    await page.getByLabel("How often").selectOption("at");
    await page.getByRole("textbox", { name: "When" }).fill("2099-12-24 18:00");
    await page.getByRole("textbox", { name: "Title" }).fill("Christmas");
    await press("Save");
    await page.getByRole("heading", { name: "Christmas", level: 1 }).waitFor();
    await page.getByText(/^Once: Thursday,? 24 December 2099/).waitFor();
    await visit.open("Schedules");
    await page.getByRole("link", { name: /Christmas/ }).click();
    await press("Delete");
    await press("Delete the schedule");
    await page.getByText("No schedule yet").waitFor();
  });

  test.each([360, 800, 1280])(
    "the fields of a new one stand in line, and show their text (%s)",
    async (width) => {
      await using visit = await at.visit({
        look: { viewport: { width, height: 900 }, colorScheme: "light" },
      });
      const { page } = visit;
      await visit.open("Schedules");
      await page.getByRole("button", { name: "New schedule" }).first().click();
      const often = page.getByLabel("How often");
      for (const field of [often, page.getByLabel("Time zone")])
        expect((await field.boundingBox())?.height).toBeLessThan(45);
      const cut =
        "(select) => { const is = select.offsetWidth; select.style.width = 'max-content'; return select.offsetWidth > is; }";
      const is_cut = await often.evaluate(`(${cut})(document.querySelector("dialog select"))`);
      expect(is_cut).toBe(false);
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "New schedule" }).first().click();
      await visit.look("schedule-fields");
    },
  );

  test.each(LOOKS)("one that failed says why, and what it works on (%s)", async (_name, look) => {
    await using visit = await at.visit({ look });
    const { page } = visit;
    const made = await at.api<{ id: string }>("POST", "/v1/schedules", {
      instruction: "@nobody say hello",
      every: "monthly",
      title: `Hello at ${look.viewport.width}`,
    });
    for (let run = 0; run < 3; run += 1) await at.api("POST", `/v1/schedules/${made.id}/run`);
    await visit.open("Schedules");
    await page.getByRole("link", { name: `Hello at ${look.viewport.width}` }).click();
    await page.getByText("3 runs in a row have failed", { exact: false }).waitFor();
    await visit.look("schedule-failed");
    await page.getByRole("link", { name: "What it works on" }).click();
    await page.getByText("@nobody say hello", { exact: false }).first().waitFor();
    expect(page.url()).toContain("/app/messages/");
    await at.api("DELETE", `/v1/schedules/${made.id}`);
  });
});
