import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type ModelRequestBody, startModelServer, toolCalls } from "../support/model-server.ts";
import { CREATE, create, EVENTS } from "../support/tool-room.ts";
import { type ServedTool, startToolServer, type ToolServer } from "../support/tool-server.ts";
import { until } from "../support/until.ts";
import { type Dashboard, dashboard, hasChromium, LOOKS, NARROW_LOOKS, TASK_LOOKS } from "./house.ts";

const stack = new AsyncDisposableStack();
let at: Dashboard;
let tools: ToolServer;

const EVENT: ServedTool = {
  name: "read_event",
  annotations: { readOnlyHint: true },
  run: () => JSON.stringify({ id: 7, title: "Dinner", note: "Bring bread.\nBring <b>wine</b>." }),
};
const UPDATE: ServedTool = { name: "update_event", run: () => "changed" };
const CHANGE = { event_id: 7, title: "Lunch", note: "Bring bread.\nBring water." };

const ARGS = { title: "Lunch", note: `A long line ${"that goes on ".repeat(20)}\u202e and turns round` };

const reply = ({ messages }: ModelRequestBody) => {
  const answered = messages.filter(({ role }) => role === "tool").length;
  if (!JSON.stringify(messages).includes("Change the event."))
    return answered > 0 ? "It waits." : toolCalls([create(ARGS)]);
  if (answered === 0) return toolCalls([{ name: "calendar__read_event" }]);
  return answered > 1 ? "It waits." : toolCalls([{ name: "calendar__update_event", args: CHANGE }]);
};

describe.skipIf(!hasChromium)("approvals", () => {
  beforeAll(async () => {
    at = stack.use(await dashboard({ env: { MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1" } }));
    const model = stack.use(startModelServer({ reply }));
    tools = stack.use(startToolServer([EVENTS, CREATE, EVENT, UPDATE]));
    const made = (body: object) => at.api<{ id: string }>("POST", "/connections", body);
    const { id } = await made({ kind: "openai_compatible", base_url: model.base_url, model: "stand-in" });
    const calendar = await made({ kind: "mcp", label: "Calendar", base_url: tools.url });
    const mcp_connection_ids = [calendar.id];
    await at.api("POST", "/inboxes", { label: "Desk", default_connection_id: id, mcp_connection_ids });
    await using visit = await at.visit();
    await visit.open("Approvals");
    await visit.page.getByText("Nothing waits for you").waitFor();
    await visit.look("approvals-empty");
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  // Calls of other cases, also decided ones, stand on the same page.
  const waiting = (page: Page, tool: string) =>
    page
      .getByRole("link", { name: new RegExp(`${tool} of @calendar`) })
      .filter({ hasText: "Waits for you" })
      .first();

  const ask = (content = "Make an event.") =>
    at.api("POST", "/v1/messages", { instruction: "Do it", content });

  test.each([...LOOKS, ...NARROW_LOOKS.slice(0, 1)])(
    "a call is shown whole, and opening its page does nothing (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const before = tools.calls.length;
      await ask();
      await visit.open("Activity");
      await visit.open("Approvals");
      await visit.look("approvals");
      // Several calls of one tool differ by what they say.
      expect(await waiting(page, "create_event").innerText()).toContain("title: Lunch");
      await waiting(page, "create_event").click();
      await page.getByRole("heading", { name: /create_event/, level: 1 }).waitFor();
      await page.getByText("title: Lunch", { exact: false }).waitFor();
      await page.getByText("⟨U+202E⟩ and turns round", { exact: false }).waitFor();
      await page.getByText("Waits for you", { exact: true }).waitFor();
      await page.getByRole("link", { name: "The call that wanted it" }).waitFor();
      await visit.look("approval");
      expect(tools.calls).toHaveLength(before);
    },
  );

  test.each([...LOOKS, ...NARROW_LOOKS.slice(0, 1)])(
    "a change is shown with what it would change (%s)",
    async (_name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      await ask("Change the event.");
      await visit.open("Activity");
      await visit.open("Approvals");
      await waiting(page, "update_event").click();
      const changes = page.getByLabel("What would change");
      expect(await changes.innerText()).toBe(
        "title ⟨was⟩: Dinner → ⟨becomes⟩: Lunch\nnote ⟨what differs⟩:\n  - │ Bring <b>wine</b>.\n  + │ Bring water.",
      );
      await visit.look("approval-change");
    },
  );

  test.each(TASK_LOOKS)("one is allowed, one refused, and a tool is marked (%s)", async (_name, look) => {
    await using visit = await at.visit({ look });
    const { page } = visit;
    const before = tools.calls.length;
    const openFirst = async (): Promise<void> => {
      await ask();
      await visit.open("Activity");
      await visit.open("Approvals");
      await waiting(page, "create_event").click();
    };
    await openFirst();
    const link = page.getByRole("link", { name: "Approvals", exact: true, includeHidden: true });
    const counted = async () => Number.parseInt(await page.locator("#approvals-waiting").innerText(), 10);
    const { items } = await at.api<{ items: unknown[] }>("GET", "/v1/approvals?status=pending");
    const waited = items.length;
    // The newest is on the page of all before it is counted beside the link.
    await until(async () => (await counted()) === waited);
    expect(await link.getAttribute("aria-describedby")).toBe("approvals-waiting");
    await page.getByRole("button", { name: "Do not", exact: true }).click();
    await page.getByText("Refused", { exact: true }).waitFor();
    await page.getByText(/^You refused it/).waitFor();
    await until(
      async () => (await page.locator("#approvals-waiting").count()) === 0 || (await counted()) < waited,
    );
    await page.getByRole("link", { name: "Back to the approvals" }).click();
    await page.getByRole("heading", { name: "Approvals", level: 1 }).waitFor();
    expect(tools.calls).toHaveLength(before);
    await openFirst();
    await page.getByRole("button", { name: "Do exactly this, once" }).click();
    await page.getByText("created 7").waitFor();
    await page.getByText("Done", { exact: true }).waitFor();
    await page.getByText(/^You allowed it/).waitFor();
    await visit.look("approval-done");
    expect(tools.calls).toHaveLength(before + 1);

    await visit.open("Connections");
    await page.getByRole("link", { name: /Calendar/ }).click();
    const toggle = page.getByRole("switch", { name: /Before each change/ });
    await toggle.click();
    await page.locator('[role="switch"][aria-checked="true"]').waitFor();
    await visit.look("connection-asks");
    await toggle.click();
    await page.locator('[role="switch"][aria-checked="false"]').waitFor();
  });
});
