import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { complete, FLAGS } from "../../src/dashboard/pages/playground/completion.ts";
import { parseCommand } from "../../src/pipeline/command.ts";
import { readSettings } from "../../src/pipeline/settings.ts";
import {
  type ModelRequestBody,
  type ModelServer,
  startModelServer,
  toolCalls,
} from "../support/model-server.ts";
import { EVENTS } from "../support/tool-room.ts";
import { startToolServer, type ToolServer } from "../support/tool-server.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, takePicture, TASK_LOOKS } from "./house.ts";

describe("what an instruction may go on with", () => {
  const named = (...texts: string[]) => texts.map((text) => ({ text, words: "" }));
  const known = {
    targets: named("@mcp:calendar", "@notes", "@ai"),
    contexts: named("+brand", "+brand-new"),
    macros: named("$weekly"),
    tags: named("#q3"),
    connections: ["Desk model", "Ollama"],
    models: ["small"],
  };
  const offered = (before: string) => complete(before, known).fitting.map(({ text }) => text);

  test("a target at the start alone, by its short name too", () => {
    expect(offered("@")).toEqual(["@mcp:calendar", "@notes", "@ai"]);
    expect(offered("@cal")).toEqual(["@mcp:calendar"]);
    expect(offered("Ask @")).toEqual([]);
    expect(offered("ada@")).toEqual([]);
  });

  test("a macro at the start or behind a target", () => {
    expect(offered("$w")).toEqual(["$weekly"]);
    expect(offered("@notes $w")).toEqual(["$weekly"]);
    expect(offered("It costs $w")).toEqual([]);
  });

  test("contexts, tags and options anywhere, values of options too", () => {
    expect(offered("Write it +br")).toEqual(["+brand", "+brand-new"]);
    expect(offered("Write it\n#")).toEqual(["#q3"]);
    expect(offered("Write it --priv")).toEqual(["--private"]);
    expect(offered("Write it --format=m")).toEqual(["--format=markdown"]);
    expect(offered("Write it --connection=")).toEqual(['--connection="Desk model"', "--connection=Ollama"]);
    expect(offered('Write it --connection="Desk m')).toEqual(['--connection="Desk model"']);
  });

  test("nothing behind what is written out, nor below a signature or a quoted line", () => {
    expect(offered("Write it +brand")).toEqual([]);
    expect(offered("1+1")).toEqual([]);
    expect(offered("Write it\n-- \n+b")).toEqual([]);
    expect(offered("Write it\n> quoted\n+b")).toEqual([]);
  });

  test("every option that is offered is one that the server knows, with every value", () => {
    const values = (text: string) => (text.endsWith("=") ? offered(text) : [text]);
    for (const flag of FLAGS.flatMap(({ text }) => values(text))) {
      const parsed = parseCommand(`Write it ${flag}`);
      expect([flag, Object.keys(parsed.options).length]).toEqual([flag, 1]);
      expect([flag, readSettings(parsed, "owner").warnings]).toEqual([flag, []]);
    }
  });
});

describe.skipIf(!hasChromium)("the playground", () => {
  let at: Dashboard;
  let model: ModelServer;
  let guarded: ModelServer;
  let tools: ToolServer;
  let answer = Promise.withResolvers<string>();

  /** Looks into the calendar where that was asked for, and answers when the test says so. */
  function reply({ messages, tools: offers }: ModelRequestBody) {
    const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
    if (messages.at(-1)?.role === "tool") return answer.promise;
    if (offers && asked.includes("What is on"))
      return toolCalls([{ name: "calendar__list_events", args: { day: "Monday" } }]);
    return `I read ${/eggs cost \d+ francs/i.exec(asked)?.[0] ?? "nothing"}.`;
  }

  beforeAll(async () => {
    model = startModelServer({ reply });
    guarded = startModelServer({ api_key: "sk-right", open_list: true });
    tools = startToolServer([EVENTS]);
    const env = { MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1", MAILWRIGHT_PLANS__TEAM__CREDITS: "10000" };
    at = await dashboard({ env });
    const make = (path: string, body: object) => at.api<{ id: string }>("POST", path, body);
    const { base_url } = model;
    const kind = "openai_compatible";
    const llm = await make("/connections", {
      kind,
      label: "Desk model",
      base_url,
      credential: "k",
      model: "m",
    });
    const calendar = await make("/connections", { kind: "mcp", label: "Calendar", base_url: tools.url });
    await make("/inboxes", { default_connection_id: llm.id, mcp_connection_ids: [calendar.id] });
    await make("/contexts", { title: "Brand voice", kind: "knowledge", body: "Be brief." });
    await make("/contexts", { title: "Weekly", kind: "command", body: "Report on {{input}}" });
    await make("/v1/messages", { instruction: "Hello #q3" });
  }, 120_000);

  beforeEach(() => {
    answer = Promise.withResolvers<string>();
  });

  afterAll(async () => {
    await at[Symbol.asyncDispose]();
    await tools[Symbol.asyncDispose]();
    await model[Symbol.asyncDispose]();
    await guarded[Symbol.asyncDispose]();
  });

  const instruction = (page: Page) => page.getByRole("textbox", { name: "Instruction" });

  test.each(TASK_LOOKS)(
    "%s: completes, takes a dropped file, and shows steps as they are taken",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await visit.open("Playground");
      await instruction(page).click();
      await page.keyboard.type("@cal");
      await page.getByRole("option", { name: "@calendar" }).waitFor();
      await page.keyboard.press("Enter");
      await page.keyboard.type("What is on Monday? --form");
      await page.keyboard.press("Tab");
      await page.getByRole("option", { name: "--format=json" }).waitFor();
      await page.keyboard.press("ArrowDown");
      await visit.look("playground-completion");
      await page.keyboard.press("Enter");
      await page.keyboard.type("+bra");
      await page.getByRole("option", { name: "+brand-voice Brand voice" }).click();
      await page.keyboard.type("#q");
      await page.getByRole("option", { name: "#q3" }).waitFor();
      await page.keyboard.press("Enter");
      expect(await instruction(page).inputValue()).toBe(
        "@calendar What is on Monday? --format=markdown +brand-voice #q3 ",
      );
      await page.getByLabel("Text to work on").fill("A talk about eggs.");
      await drop(page, "prices.txt", "Eggs cost 3 francs.");
      await page.getByRole("list", { name: "Files" }).getByText("prices.txt").waitFor();
      await page.getByRole("button", { name: "Run it" }).click();
      await page.getByRole("list", { name: "Steps" }).getByText("list_events").waitFor();
      await page.getByText("Working on it…").waitFor();
      answer.resolve("Lunch is on Monday.");
      await page.getByText("Lunch is on Monday.").waitFor();
      await page.getByText(/^1 credit, \d+ tokens/).waitFor();
      await page.getByText("Working on it…").waitFor({ state: "detached" });
      await visit.look("playground");
      expect(JSON.stringify(model.requests.at(-1)?.body?.messages)).toContain("Eggs cost 3 francs.");
      await page.getByRole("link", { name: "How this answer came about" }).click();
      await page.getByRole("heading", { name: "What was asked" }).waitFor();
    },
  );

  test.each(LOOKS)("a run shows its seconds and its steps, and is cancelled (%s)", async (name, look) => {
    await using visit = await at.visit({ look });
    const { page } = visit;
    await visit.open("Playground");
    await instruction(page).fill("@mcp:calendar What is on Monday?");
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByRole("list", { name: "Steps" }).getByText("list_events").waitFor();
    await page
      .getByRole("timer")
      .filter({ hasText: /^[1-9]\d* s so far/ })
      .waitFor();
    const [{ message_id } = { message_id: "" }] = (
      await at.api<{ items: { message_id: string }[] }>("GET", "/messages?limit=1")
    ).items;
    const story = await page.context().newPage();
    await story.goto(`${at.url}/app/messages/${message_id}`);
    await story.getByRole("list", { name: "Steps" }).getByText("list_events").waitFor();
    await story.close();
    await visit.look("playground-running");
    await page.getByRole("button", { name: "Cancel" }).click();
    // Nobody but the owner knows of a call, so nobody is told.
    expect(await page.getByRole("dialog").innerText()).not.toContain("by mail");
    await page.getByRole("button", { name: "Cancel it" }).click();
    await page.getByText("It was cancelled before it was done.").waitFor();
    await page.getByRole("timer").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Run it" }).and(page.locator(":enabled")).waitFor();
    await takePicture(page, `playground-cancelled-${name}`);
    answer.resolve("Too late.");
  });

  test("a wrong key is said in the test and in the message that fails, with the way to its field", async () => {
    const { id } = await at.api<{ id: string }>("POST", "/connections", {
      kind: "openai_compatible",
      label: "Guarded model",
      base_url: guarded.base_url,
      credential: "sk-mistyped",
      model: "stand-in",
    });
    const inbox = await at.api<{ id: string }>("POST", "/inboxes", {
      label: "Guarded",
      default_connection_id: id,
    });
    await at.api("POST", "/v1/messages", { instruction: "Who are you?", inbox_id: inbox.id });
    for (const [name, look] of LOOKS) {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await page.getByRole("link", { name: "Who are you?" }).click();
      const fault = page.getByRole("alert");
      await fault.getByText("did not accept the API key. Enter a valid one in this connection.").waitFor();
      await page.getByText("stand-in", { exact: true }).waitFor();
      await visit.look(`wrong-key-message-${name}`);
      await fault.getByRole("link", { name: "The connection “Guarded model”" }).click();
      await page.getByRole("heading", { name: "Guarded model", level: 1 }).waitFor();
      await page.getByRole("button", { name: "Test it" }).click();
      await page.getByText("did not accept the key. Enter another one in this connection.").first().waitFor();
      await visit.look(`wrong-key-connection-${name}`);
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByText("1 inbox uses it: Guarded. Its mail fails from then on").waitFor();
      await page.getByRole("button", { name: "Keep it" }).click();
    }
    await at.api("DELETE", `/inboxes/${inbox.id}`);
  }, 60_000);

  test("the completion can be heard and left, and what it wrote can be undone", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Playground");
    const field = instruction(page);
    await field.click();
    await page.keyboard.type("$");
    await page.getByText("1 suggestions. Arrow keys choose one").waitFor({ state: "attached" });
    const active = await field.getAttribute("aria-activedescendant");
    expect(await page.getByRole("option", { selected: true }).getAttribute("id")).toBe(active);
    await page.keyboard.press("Escape");
    expect(await page.getByRole("listbox").count()).toBe(0);
    expect(await field.inputValue()).toBe("$");
    await page.keyboard.type("w");
    await page.keyboard.press("Enter");
    expect(await field.inputValue()).toBe("$weekly ");
    await page.keyboard.press("ControlOrMeta+z");
    expect(await field.inputValue()).toBe("$w");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    await page.getByLabel("Text to work on").and(page.locator(":focus")).waitFor();
  });

  test("the answer of a private run is shown, though it is kept nowhere", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Playground");
    await instruction(page).fill("What does it say? --private");
    await page.getByLabel("Text to work on").fill("Eggs cost 5 francs.");
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByText("I read Eggs cost 5 francs.").waitFor();
  });

  test("what is too large is said before it is sent, and what is refused in the server's words", async () => {
    await using visit = await at.visit({ refusals: [422] });
    const { page } = visit;
    await visit.open("Playground");
    await drop(page, "film.bin", "x".repeat(10 * 1_024 * 1_024 + 1));
    await page.getByText("film.bin is larger than 10 MB.").waitFor();
    expect(await page.getByRole("button", { name: "Run it" }).isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Leave out film.bin" }).click();
    await instruction(page).fill("x".repeat(10_001));
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByText("at most 10000 characters").first().waitFor();
  });

  test("the command does in a shell what the page would do, whatever stands in it", async () => {
    await using visit = await at.visit();
    const { page } = visit;
    await visit.open("Playground");
    await page.getByText("The same from a terminal").click();
    const command = page.getByRole("group", { name: "The command" });
    await instruction(page).fill(`What's "in" it? $HOME \`id\` \\ --dry-run`);
    await page.getByLabel("Text to work on").fill("Ada's text:\nEggs $(cost) 3 francs!");
    const plain = await run(await command.innerText());
    expect(plain.result).toContain(`Instruction: What's "in" it? $HOME \`id\` \\`);
    await instruction(page).fill("What does it say?");
    await drop(page, "ada's list.txt", "Eggs cost 7 francs.");
    await page.getByText("Run it in the folder where the files are.").waitFor();
    const with_file = await run(await command.innerText(), { "ada's list.txt": "Eggs cost 7 francs." });
    expect(with_file.result).toBe("I read Eggs cost 7 francs.");
  });

  /** In a shell of its own, in a folder with these files. */
  async function run(command: string, files: Record<string, string> = {}): Promise<{ result: string }> {
    const dir = await mkdtemp(join(tmpdir(), "mailwright-curl-"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
    const { key } = await at.api<{ key: string }>("POST", "/auth/api-key");
    const shell = Bun.spawn(["sh", "-c", command], {
      cwd: dir,
      env: { PATH: process.env["PATH"], KEY: key },
      stderr: "ignore",
    });
    const said = await new Response(shell.stdout).text();
    await rm(dir, { recursive: true });
    return JSON.parse(said) as { result: string };
  }
});

/** A class that only the browser has. */
declare const DataTransfer: new () => { items: { add: (file: File) => void } };

/** A file dragged onto the page and let go there. */
async function drop(page: Page, name: string, text: string): Promise<void> {
  const dataTransfer = await page.evaluateHandle(
    ([file = "", content = ""]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], file, { type: "text/plain" }));
      return transfer;
    },
    [name, text],
  );
  const place = page.getByLabel("Text to work on");
  await place.dispatchEvent("dragover", { dataTransfer });
  await place.dispatchEvent("drop", { dataTransfer });
}
