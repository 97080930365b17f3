import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Activity, Inbox, RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { startModelServer } from "../support/model-server.ts";
import { until } from "../support/until.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, NARROW_LOOKS } from "./house.ts";

describe.skipIf(!hasChromium)("what waits, and what is tried again", () => {
  const stack = new AsyncDisposableStack();
  const model = stack.use(startModelServer({ reply: () => "Answered at last.", retry_after: "120" }));
  let at: Dashboard;

  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "openai_compatible",
          MAILWRIGHT_LLM__BASE_URL: model.base_url,
          MAILWRIGHT_LLM__MODEL: "stand-in",
        },
      }),
    );
  }, 120_000);

  afterAll(() => stack.disposeAsync());

  const call = (inbox: Inbox, instruction: string) =>
    at.api<RoutingResult>("POST", "/v1/messages", { instruction, inbox_id: inbox.id, async: true });

  test.each(LOOKS)(
    "a message that a rule has wait says so once, and is done now (%s)",
    async (name, look) => {
      const inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Patient" });
      const night = { name: "Night", when: [], do: { wait: { until: "08:00", days: ["mon"], zone: "UTC" } } };
      await at.api("PATCH", `/inboxes/${inbox.id}`, { rules: [night] });
      await call(inbox, `Later ${name}`);
      await using visit = await at.visit({ look });
      const { page } = visit;
      const row = page.getByRole("link", { name: `Later ${name}` });
      await row.getByText(/^Waits until .*\d:00/).waitFor();
      await visit.look("waits-list");
      await row.click();
      await page.getByText(/The rule “Night” has it wait until Monday, .*08:00/).waitFor();
      expect(await page.getByText(/waits? for its turn|POST \/messages/).count()).toBe(0);
      expect(await page.getByText(/wait until/).count()).toBe(1);
      await visit.look("waits");
      await page.getByRole("button", { name: "Do it now" }).click();
      await page.getByText("Answered at last.").waitFor();
      await page.getByText(/^waited .*, then took /).waitFor();
      await visit.look("waited");
    },
  );

  test.each([...LOOKS, ...NARROW_LOOKS.slice(0, 1)])(
    "a message that was tried says that it waits for its next try, and is tried now (%s)",
    async (name, look) => {
      const inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Tried" });
      model.fault = "rate_limited";
      const { message_id } = await call(inbox, `Tried ${name}`);
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.goto(`${at.url}/app/messages/${message_id}`);
      await page.getByText(/^It was tried, and waits for its next try/).waitFor();
      await page.getByText(/\. It is asked again at/).waitFor();
      expect(await page.getByText(/It has not begun|waits for its turn/).count()).toBe(0);
      await visit.look("next-try");
      model.fault = "none";
      await page.getByRole("button", { name: "Try now" }).click();
      await page.getByText("Answered at last.").waitFor();
    },
  );

  test.each(LOOKS)("a message says that the administrator holds all work (%s)", async (name, look) => {
    const inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Held" });
    await at.api("POST", "/admin/queue/hold", {});
    const { message_id } = await call(inbox, `Held ${name}`);
    await using visit = await at.visit({ look });
    const { page } = visit;
    await page.goto(`${at.url}/app/messages/${message_id}`);
    await page.getByText("It waits: the administrator holds all work.").waitFor();
    await visit.look("held");
    await at.api("POST", "/admin/queue/release", {});
    await page.getByText("Answered at last.").waitFor();
  });

  test("what changes between the reading of a list and the opening of the stream shows in the list", async () => {
    const inbox = await at.api<Inbox>("POST", "/inboxes", { label: "Between" });
    model.fault = "unauthorized";
    const said: RoutingResult[] = [];
    for (const words of ["Between, older", "Between, newer"])
      said.push(
        await at.api<RoutingResult>("POST", "/v1/messages", { instruction: words, inbox_id: inbox.id }),
      );
    model.fault = "none";
    await using visit = await at.visit();
    const { page } = visit;
    const held = Promise.withResolvers<void>();
    await page.route("**/messages/stream", async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.goto(`${at.url}/app?status=failed`);
    const older = page.getByRole("listitem").filter({ hasText: "Between, older" });
    await older.waitFor();
    await at.api("POST", `/messages/${said[0]?.message_id}/retry`);
    await until(async () => {
      const story = await at.api<Activity>("GET", `/messages/${said[0]?.message_id}`);
      return story.tried_again === "done";
    });
    held.resolve();
    await older.getByText("Tried again, done").waitFor();
  });

  test.each(LOOKS)(
    "several that failed are tried again, and it is said of each what came of it (%s)",
    async (name, look) => {
      const [inbox, gone] = await Promise.all(
        ["Stays", "Goes"].map((label) => at.api<Inbox>("POST", "/inboxes", { label })),
      );
      if (!inbox || !gone) throw new Error("there are no inboxes");
      model.fault = "unauthorized";
      const said: RoutingResult[] = [];
      for (const [place, words] of [
        [inbox, "First"],
        [inbox, "Second"],
        [gone, "Third"],
        [gone, "Fourth"],
      ] as const)
        said.push(
          await at.api<RoutingResult>("POST", "/v1/messages", {
            instruction: `${words} ${name}`,
            inbox_id: place.id,
          }),
        );
      expect(said.map(({ status }) => status)).toEqual(["failed", "failed", "failed", "failed"]);
      model.fault = "none";
      await at.api("DELETE", `/inboxes/${gone.id}`);
      await using visit = await at.visit({ look, refusals: [409] });
      const { page } = visit;
      await page.goto(`${at.url}/app?status=failed`);
      await at.api("POST", `/messages/${said[0]?.message_id}/retry`);
      const first = page.getByRole("listitem").filter({ hasText: `First ${name}` });
      await first.getByText("Tried again, done").waitFor();
      await page.getByRole("button", { name: "Select" }).click();
      for (const words of ["First", "Second", "Third", "Fourth"])
        await page.getByRole("checkbox", { name: `${words} ${name}` }).check();
      await page.getByRole("button", { name: "Try again (4)" }).click();
      await page.getByText("1 message is tried again.").waitFor();
      await page.getByText("3 of 4 stayed as they were.").waitFor();
      await page.getByText("1 × This message has been tried again and is done.").waitFor();
      await page.getByText("2 × The inbox of this message has been deleted.").waitFor();
      await page.getByText("Tried again, done").nth(1).waitFor();
      await visit.look("tried-again");
    },
  );
});
