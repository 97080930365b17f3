import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { BrowserContext, Page, Request } from "playwright-core";
import { fillArchive } from "../../bench/archive.ts";
import type { Inbox, Me, RoutingResult } from "../../src/dashboard/api/shapes.ts";
import { rawMail } from "../support/mails.ts";
import { type ModelRequestBody, startModelServer, toolCalls } from "../support/model-server.ts";
import { deliver } from "../support/smtp-client.ts";
import { startToolServer } from "../support/tool-server.ts";
import { startReceiver } from "../support/webhook-receiver.ts";
import { type Dashboard, dashboard, hasChromium, TASK_LOOKS, OWNER } from "./house.ts";
import { until } from "../support/until.ts";

const MANY = 100_000;
const SECONDS_MS = 1_000;
const STEP_MS = 250;
/** Rows that are in the page at most, whatever has been loaded. */
const MOST_ROWS = 120;
const LONGEST_TASK_MS = 200;
const FIRST_LOAD_BYTES = 200 * 1_024;
const STREAM = "/messages/stream";
const HARM =
  "<script>alert(1)</script> <img src=https://evil.example/a.png onerror=alert(2)> ![p](https://evil.example/b.png) [q](javascript:alert(3)) <iframe src=//evil.example></iframe>";

/** In the page: counts the streams it opens, with the page's own clock, and those that failed. */
const COUNT_STREAMS = `
  window.streams = { opened: 0, failed: 0 };
  window.EventSource = class extends EventSource {
    constructor(url) {
      super(url);
      streams.opened += 1;
      this.addEventListener("error", () => (streams.failed += 1));
    }
  };`;

describe.skipIf(!hasChromium)("the activity", () => {
  const stack = new AsyncDisposableStack();
  /** What the model waits for before it answers, where a test has it wait. */
  let held: Promise<string> | undefined;
  const model = stack.use(
    startModelServer({
      reply: async (body) => {
        const said = body.messages.map(({ content }) => content).join("\n");
        if (said.includes("Plan the lunch")) return planLunch(body);
        if (said.includes("Say what harms")) return HARM;
        return said.includes("Hold the line") && held ? held : "Answered at last.";
      },
    }),
  );
  const tools = stack.use(
    startToolServer([
      { name: "list_events", annotations: { readOnlyHint: true }, run: () => "Lunch with Grace at noon" },
      { name: "create_event", run: () => "created" },
    ]),
  );
  const told = stack.use(startReceiver());
  const deaf = stack.use(startReceiver(outToLunch));
  let at: Dashboard;
  let inbox: Inbox;

  beforeAll(async () => {
    at = stack.use(
      await dashboard({
        env: {
          MAILWRIGHT_LLM__KIND: "openai_compatible",
          MAILWRIGHT_LLM__BASE_URL: model.base_url,
          MAILWRIGHT_LLM__MODEL: "stand-in",
          MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1",
          MAILWRIGHT_WEBHOOKS__ALLOW: "127.0.0.1",
          MAILWRIGHT_WEBHOOKS__BACKOFF: "0",
          MAILWRIGHT_WEBHOOKS__DISABLE_AFTER: "100",
        },
      }),
    );
    const me = await at.api<Me>("GET", "/auth/me");
    const first_ms = Date.now() - (MANY + 3_600) * SECONDS_MS;
    fillArchive(join(at.dir, "data/mailwright.db"), { user_id: me.id, messages: MANY, first_ms });
    const calendar = await at.api<{ id: string }>("POST", "/connections", {
      kind: "mcp",
      label: "Calendar",
      base_url: tools.url,
    });
    await at.api("POST", "/contexts", { title: "House style", body: "Be brief.", kind: "instruction" });
    inbox = await at.api<Inbox>("POST", "/inboxes", {
      label: "Desk",
      mcp_connection_ids: [calendar.id],
    });
    for (const { url } of [told, deaf])
      await at.api("POST", "/v1/webhooks", { url, event_types: ["message.completed"] });
    await send("Plan the lunch +house-style #q3", {
      subject: "Lunch",
      attachments: [{ filename: "agenda.txt", content_type: "text/plain", content: "Soup, then fish." }],
    });
    await told.reached(1);
    await deaf.reached(1);
  }, 120_000);

  /** A mail from the owner to the inbox. */
  async function send(text: string, parts: Parameters<typeof rawMail>[0]): Promise<void> {
    expect(await post(OWNER.email, { text, ...parts })).toStartWith("250");
  }

  /** A mail from anybody to the inbox; gives what the server said last. */
  async function post(from: string, parts: Parameters<typeof rawMail>[0]): Promise<string> {
    const [host = "", port] = (await at.said(/ready .*smtp=(\S+)/)).split(":");
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
    const raw = rawMail({ from: `Ada <${from}>`, to: inbox.address, headers, ...parts });
    return deliver({ host, port: Number(port) }, { from, to: inbox.address, raw });
  }

  /** A call through the inbox, which is done when this is. */
  const call = (instruction: string): Promise<RoutingResult> =>
    at.api<RoutingResult>("POST", "/v1/messages", { instruction, inbox_id: inbox.id });

  afterAll(() => stack.disposeAsync());

  test("loads little at first, and the list once", async () => {
    await using visit = await at.visit();
    const beside = visit.page.context();
    const context = await beside.browser()?.newContext();
    if (!context) throw new Error("The browser has gone.");
    await context.addCookies(await beside.cookies());
    const page = await context.newPage();
    const sizes: Promise<number>[] = [];
    const lists: URL[] = [];
    page.on("requestfinished", (request) => {
      sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
      const url = new URL(request.url());
      if (url.pathname === "/messages") lists.push(url);
    });
    await page.goto(`${at.url}/app`);
    await page.getByRole("link", { name: "Lunch" }).waitFor();
    // The stream has opened, after which something may have come.
    await until(() => lists.length > 1);
    await Bun.sleep(STEP_MS);
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    await context.close();
    expect(lists.map(({ search }) => search)).toEqual(["", "?limit=1"]);
    console.log(`The first load of the activity has ${bytes} bytes.`);
    expect(bytes).toBeLessThan(FIRST_LOAD_BYTES);
  });

  test.each(TASK_LOOKS)(
    "tells a mail from who sent it to who was told of its answer (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.getByRole("searchbox").fill("lunch");
      await page.locator('li[aria-setsize="1"] mark', { hasText: "Lunch" }).first().waitFor();
      await visit.look("activity");
      await page.getByRole("link", { name: "Lunch" }).click();
      await page.getByRole("heading", { name: "Lunch", level: 1 }).waitFor();
      for (const words of [
        "That is you: your words are instructions.",
        "It came from this machine or a network that the operator trusts, so no more proof",
        "Plan the lunch",
        "#q3",
        "Context house-style was given to the model.",
        "One attempt was blocked",
        "The lunch is planned.",
        "The answer is kept here",
        "tokens read",
        "It answered 204.",
        "It answered 503: out for lunch",
      ])
        await page.getByText(words).first().waitFor();
      const open = page.locator("nav [aria-current=true]", { hasText: "Activity" });
      await open.waitFor({ state: "attached" });
      await page.getByText("calendar · list_events").click();
      await page.getByText("Lunch with Grace at noon").waitFor();
      await page.getByText("Why it was blocked").waitFor();
      for (const name of [
        "House style",
        "agenda.txt",
        "plan.md",
        "The conversation",
        "The mail as it came (.eml)",
      ])
        await page.getByRole("link", { name }).waitFor();
      await visit.look("story");
      await page.getByRole("link", { name: "The conversation" }).click();
      await page.getByRole("link", { name: "How this came about" }).waitFor();
      await visit.look("conversation");
      await visit.open("Conversations");
      await page.getByRole("link", { name: /Lunch/ }).waitFor();
      await visit.look("conversations");
    },
    60_000,
  );

  test("does nothing of what a mail and its answer would have the page do", async () => {
    await send("Say what harms", { subject: HARM, html: `<p>Say what harms</p><p>${HARM}</p>` });
    await using visit = await at.visit();
    const { page } = visit;
    const dialogs: string[] = [];
    page.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    const row = page.getByRole("link", { name: "<script>" }).first();
    await row.getByText("Done").waitFor();
    await row.click();
    await page.getByRole("heading", { name: "<script>", level: 1 }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "The mail as it came (.eml)" }).click(),
    ]);
    expect(await Bun.file(await file.path()).text()).toContain("Say what harms");
    await page.getByRole("link", { name: "The conversation" }).click();
    await page.getByRole("link", { name: "How this came about" }).waitFor();
    // What is no text would be there as an element, or would have asked another host: the end of the visit sees that.
    expect(
      await page.locator("main :is(script, img, iframe, [href^=javascript], [href*=evil])").count(),
    ).toBe(0);
    expect(dialogs).toEqual([]);
  }, 60_000);

  test("keeps its filters in the address, through a reload and a look at a message", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    const rows = page.getByRole("list", { name: "Messages" }).getByRole("link");
    const today = new Date().toLocaleDateString("sv-SE");
    await page.getByLabel("Source").selectOption("Mails");
    await page.getByLabel("Status").selectOption("Done");
    await page.getByLabel("Inbox").selectOption("Desk");
    await page.getByLabel("Tag").fill("#Q3");
    await page.getByLabel("From").fill(today);
    await page.getByLabel("To", { exact: true }).fill(today);
    await page.getByRole("searchbox").fill("LUNCH IS PLANNED");
    await page.waitForURL(/q=LUNCH/);
    await page.locator('li[aria-setsize="1"]').waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      source: "email",
      status: "done",
      inbox_id: inbox.id,
      tag: "#Q3",
      from: today,
      to: today,
      q: "LUNCH IS PLANNED",
    });
    await page.reload();
    await page.locator("nav [aria-current=page]", { hasText: "Activity" }).waitFor();
    await rows.first().click();
    await page.getByRole("heading", { name: "Lunch", level: 1 }).waitFor();
    await page.goBack();
    expect(await page.getByRole("searchbox").inputValue()).toBe("LUNCH IS PLANNED");
    expect(await rows.count()).toBe(1);
    await page.getByLabel("Tag").fill("q4");
    await page.getByText("Nothing fits these filters").waitFor();
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await rows.nth(10).waitFor();
    expect(new URL(page.url()).search).toBe("");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("Nothing fits these filters").waitFor();
    expect(await page.getByLabel("Tag").inputValue()).toBe("q4");
  }, 60_000);

  test("shows a message as it comes and as it changes, and says so once", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    const answered = Promise.withResolvers<string>();
    held = answered.promise;
    await page.getByText("Live", { exact: true }).waitFor();
    // What the list has when it is read first is not new.
    await page.getByRole("listitem").first().waitFor();
    const calling = call("Hold the line");
    const row = page.getByRole("listitem").filter({ hasText: "Hold the line" });
    await row.getByText("In progress").waitFor();
    await page.getByRole("status").getByText("1 new message").waitFor({ state: "attached" });
    answered.resolve("Thank you for waiting.");
    await calling;
    await row.getByText("Done").waitFor();
    await row.getByText("Thank you for waiting.").waitFor();
  }, 60_000);

  test("says how long ago a message came, for as long as it shows", async () => {
    await using visit = await at.visit({ alone: true });
    const { page } = visit;
    await page.clock.install();
    await page.reload();
    const row = page.getByRole("link", { name: "Message 99999" });
    await row.getByText("1 hour ago").waitFor();
    expect(await row.locator("time").getAttribute("title")).toMatch(/\b20\d\d\b.* \d+:\d\d:\d\d/);
    await page.clock.fastForward("02:00:00");
    await row.getByText("3 hours ago").waitFor();
  }, 60_000);

  test("tries a failed message again, and leads from one to the other", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    model.fault = "unauthorized";
    await call("Try me twice");
    model.fault = "none";
    const row = page.getByRole("listitem").filter({ hasText: "Try me twice" });
    await row.getByText("Failed").waitFor();
    await row.getByRole("link").click();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("link", { name: "The first try" }).waitFor();
    await page.getByText("Answered at last.").waitFor();
    await page.getByRole("link", { name: "The first try" }).click();
    await page.getByRole("link", { name: "Tried again" }).waitFor();
    expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
  }, 60_000);

  test("says the truth of a mail that was not taken, and of one that came to nothing", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await at.api("PATCH", `/inboxes/${inbox.id}`, { allowlist_senders: ["grace@example.org"] });
    expect(await post("mallory@example.net", { subject: "Let me in", text: "Hello" })).toStartWith("550");
    await page.getByRole("link", { name: "Let me in" }).click();
    await page.getByText("It was not taken, so it is not kept.").waitFor();
    await page.getByText("No mail was sent.").waitFor();
    await page.goBack();
    model.fault = "unauthorized";
    await send("Do what cannot be done", { subject: "In vain" });
    const row = page.getByRole("listitem").filter({ hasText: "In vain" });
    await row.getByText("Failed").waitFor();
    model.fault = "none";
    await row.getByRole("link").click();
    await page.getByText("A mail that says so is kept here").waitFor();
    expect(await page.getByText("was mailed").count()).toBe(0);
  }, 60_000);

  test("sends a webhook again that was not heard", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    const before = deaf.received.length;
    await call("Tell everybody");
    await deaf.reached(before + 1);
    deaf.answer = () => new Response("back again");
    await page.getByRole("link", { name: "Tell everybody" }).click();
    const row = page.getByRole("listitem").filter({ hasText: deaf.url });
    await row.getByText("Failed", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Try again" }).click();
    await row.getByText("It answered 200: back again").waitFor();
    await row.getByText("Delivered").waitFor();
    deaf.answer = outToLunch;
  }, 60_000);

  test("says what is wrong when the list cannot be read, and reads it when asked again", async () => {
    await using visit = await at.visit({ refusals: [503] });
    const { page } = visit;
    const problem = { status: 503, code: "unavailable", detail: "The disk is full.", fix: "Make room." };
    await page.route("**/messages?*", (route) =>
      route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }),
    );
    await page.reload();
    await page.getByRole("alert").getByText("The disk is full.").waitFor();
    await page.getByRole("alert").getByText("Make room.").waitFor();
    await page.unroute("**/messages?*");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("link", { name: "Lunch" }).waitFor();
  }, 60_000);

  describe("the stream", () => {
    test("is one for all tabs of a browser, and goes on in another when its own is closed", async () => {
      await using visit = await at.visit();
      const context = visit.page.context();
      const streams = openStreams(context);
      const tabs = [visit.page];
      for (let tab = 1; tab <= 6; tab++) tabs.push(await context.newPage());
      await Promise.all(tabs.map((tab) => tab.goto(`${at.url}/app`)));
      for (const tab of tabs) await tab.getByText("Live", { exact: true }).waitFor();
      await call("Heard in every tab");
      for (const tab of tabs) await tab.getByRole("link", { name: "Heard in every tab" }).waitFor();
      const [first, ...others] = streams();
      expect(others).toEqual([]);
      await first?.close();
      const left = tabs.filter((tab) => !tab.isClosed());
      await call("Heard in those that are left");
      for (const tab of left) await tab.getByRole("link", { name: "Heard in those that are left" }).waitFor();
      expect(left.length).toBe(tabs.length - 1);
      expect(streams()).toHaveLength(1);
    }, 60_000);

    test("comes back by itself after refusals, with growing pauses, and until then says that it is not live", async () => {
      await using visit = await at.visit({ alone: true, refusals: [429] });
      const { page } = visit;
      await page.route(`**${STREAM}`, (route) => route.fulfill({ status: 429 }));
      await page.addInitScript(COUNT_STREAMS);
      await page.clock.install();
      await page.reload();
      await page.getByRole("link", { name: "Lunch" }).waitFor();
      await page.clock.pauseAt(Date.now() + SECONDS_MS);
      const pauses: number[] = [];
      for (let refusal = 1; refusal <= 4; refusal++) pauses.push(await pauseOf(page));
      expect(pauses).toEqual(pauses.toSorted((one, other) => one - other));
      expect(new Set(pauses).size).toBe(4);
      await page.getByText("Not live: looking every 30 seconds").waitFor();
      await call("Seen without a stream");
      await page.clock.runFor(35 * SECONDS_MS);
      await page.getByRole("link", { name: "Seen without a stream" }).waitFor();
      await page.unroute(`**${STREAM}`);
      await page.clock.runFor(60 * SECONDS_MS);
      await page.getByText("Live", { exact: true }).waitFor();
    }, 60_000);
  });

  describe("with 100,000 messages", () => {
    test("stays smooth, and keeps the page small", async () => {
      await using visit = await at.visit();
      const { page } = visit;
      await page.getByRole("link", { name: "Lunch" }).waitFor();
      const watch = await watchTasks(page);
      const row = page.getByRole("listitem").first();
      // On a slow machine several pages can come between two looks at it.
      const length = async () => Number(await row.getAttribute("aria-setsize"));
      // Who presses a key just before the list has grown, or before the last scroll has ended, is not there yet.
      const press = (key: "End" | "Home", isThere: () => Promise<boolean>) =>
        until(async () => {
          await page.keyboard.press(key);
          return isThere();
        }, 30_000);
      while ((await length()) < 21 * 50) {
        const before = await length();
        await press("End", async () => (await length()) > before);
        expect(await page.getByRole("listitem").count()).toBeLessThan(MOST_ROWS);
      }
      await press("Home", () => page.getByRole("link", { name: "Lunch" }).isVisible());
      // Far back, and the only one.
      await page.getByRole("searchbox").fill("message 60321");
      await page.getByRole("link", { name: "Message 60321" }).waitFor();
      await page.getByRole("searchbox").fill("");
      await page.getByRole("link", { name: "Lunch" }).waitFor();
      expect(await watch.longest()).toBeLessThan(LONGEST_TASK_MS);
    }, 180_000);

    test("moves nothing for who reads further down, who sees what is new when he asks for it", async () => {
      await using visit = await at.visit();
      const { page } = visit;
      await page.getByText("Live", { exact: true }).waitFor();
      const row = page.getByRole("link", { name: "Message 99985" });
      await row.scrollIntoViewIfNeeded();
      await page.mouse.wheel(0, 200);
      const place = await row.boundingBox();
      await call("News for a reader");
      const button = page.getByRole("button", { name: "1 new message" });
      await button.waitFor();
      expect(await row.boundingBox()).toEqual(place);
      expect(await page.getByRole("link", { name: "News for a reader" }).count()).toBe(0);
      await button.click();
      await page.getByRole("link", { name: "News for a reader" }).waitFor();
      expect(await page.evaluate<number>("scrollY")).toBe(0);
      expect(await button.count()).toBe(0);
    }, 60_000);

    test("comes back to where one was, from a message", async () => {
      await using visit = await at.visit();
      const { page } = visit;
      const row = page.getByRole("link", { name: "Message 99965" });
      await page.keyboard.press("End");
      await row.scrollIntoViewIfNeeded();
      const place = await row.boundingBox();
      await row.click();
      await page.getByRole("heading", { name: "Message 99965", level: 1 }).waitFor();
      await page.goBack();
      await row.waitFor();
      const where = async () =>
        `${JSON.stringify(await row.boundingBox())} in place of ${JSON.stringify(place)}`;
      await until(async () => Bun.deepEquals(await row.boundingBox(), place), 10_000, where);
    }, 60_000);
  });
});

/** Calls the tools that plan a lunch, and then says so. */
function planLunch({ messages, tools: offered = [] }: ModelRequestBody): string | Response {
  if (messages.at(-1)?.role === "tool") return "The lunch is planned.";
  const named = (end: string): string =>
    offered.find((tool) => tool.function.name.endsWith(end))?.function.name ?? end;
  return toolCalls([
    { name: named("list_events"), args: { day: "Friday" } },
    { name: named("create_event"), args: { title: "Lunch with Grace" } },
    { name: named("create_file"), args: { filename: "plan.md", content: "# Lunch at noon" } },
  ]);
}

function outToLunch(): Response {
  return new Response("out for lunch", { status: 503 });
}

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds of its thread's own time, which a machine that is busy with other things does not stretch. */
  tdur?: number;
  args: { name?: string };
}

/** Measures the tasks of a page, each of which keeps it from answering while it lasts. */
async function watchTasks(page: Page): Promise<{ longest(): Promise<number> }> {
  const browser = page.context().browser();
  await browser?.startTracing(page, { categories: ["toplevel"] });
  return {
    async longest() {
      const trace = String(await browser?.stopTracing());
      const { traceEvents: events } = JSON.parse(trace) as { traceEvents: TraceEvent[] };
      const threads = events.filter(
        ({ args, name }) => name === "thread_name" && args.name === "CrRendererMain",
      );
      const mine = new Set(threads.map(({ pid, tid }) => `${pid} ${tid}`));
      const tasks = events.filter(
        ({ name, ph, pid, tid }) => ph === "X" && name.endsWith("RunTask") && mine.has(`${pid} ${tid}`),
      );
      expect(tasks.length).toBeGreaterThan(100);
      return Math.max(...tasks.map(({ tdur = 0 }) => tdur)) / 1_000;
    },
  };
}

/** How long the page's clock has to go on until a stream that failed is opened again. */
async function pauseOf(page: Page): Promise<number> {
  const opened = (): Promise<number> => page.evaluate<number>("streams.opened");
  const before = await opened();
  await until(async () => (await page.evaluate<number>("streams.failed")) >= before);
  for (let ms = 0; ; ms += STEP_MS) {
    if ((await opened()) > before) return ms;
    await page.clock.runFor(STEP_MS);
  }
}

/** The streams of a browser that are open. */
function openStreams(context: BrowserContext): () => Page[] {
  const open = new Set<Request>();
  context.on("request", (request) => request.url().endsWith(STREAM) && open.add(request));
  context.on("requestfailed", (request) => open.delete(request));
  context.on("requestfinished", (request) => open.delete(request));
  return () => [...open].map((request) => request.frame().page()).filter((page) => !page.isClosed());
}
