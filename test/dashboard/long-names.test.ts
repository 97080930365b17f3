import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Me } from "../../src/dashboard/api/shapes.ts";
import {
  type Dashboard,
  dashboard,
  hasChromium,
  NARROW_LOOKS,
  PAGES,
  settled,
  takePicture,
} from "./house.ts";

interface Made {
  id: string;
}

/** Nothing in it lets a line break. */
const word = (chars: number): string => "M".repeat(chars);

/** What reaches beyond the screen, innermost last, if the page can be moved sideways. */
const BEYOND = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("main *")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 200))`;

describe.skipIf(!hasChromium)("of the longest names", () => {
  const stack = new AsyncDisposableStack();
  let at: Dashboard;
  let pages: string[];

  beforeAll(async () => {
    at = stack.use(await dashboard());
    const make = <T = Made>(path: string, body: unknown): Promise<T> => at.api<T>("POST", path, body);
    const connection = await make("/connections", { kind: "demo", label: word(100) });
    const settings = { label: word(100), default_connection_id: connection.id };
    const inbox = await make("/inboxes", settings);
    await make("/inboxes", { ...settings, label: word(90) });
    const instruction = `${word(2_000)} #${word(60)} +${word(60)}`;
    const context = await make("/contexts", { title: word(200), body: word(2_000), kind: "instruction" });
    const endpoint = await make("/v1/webhooks", {
      url: `https://example.com/${word(2_000)}`,
      description: word(500),
      event_types: ["message.completed"],
    });
    await make("/auth/api-key", { name: word(100) });
    await make("/custom-domains", { domain: `${word(63)}.${word(63)}.example` });
    const { message_id } = await make<{ message_id: string }>("/v1/messages", {
      instruction,
      content: word(2_000),
      inbox_id: inbox.id,
    });
    const { items } = await at.api<{ items: Made[] }>("GET", "/conversations");
    const me = await at.api<Me>("PATCH", "/auth/profile", { name: word(100) });
    expect(me.email).toBe("ada@example.org");
    pages = [
      `messages/${message_id}`,
      `conversations/${items[0]?.id}`,
      `inboxes/${inbox.id}`,
      `contexts/${context.id}`,
      `connections/${connection.id}`,
      `webhooks/${endpoint.id}`,
    ];
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  test.each(NARROW_LOOKS)(
    "no page becomes wider than the screen (%s)",
    async (name, look) => {
      await using visit = await at.visit({ look });
      const { page } = visit;
      const too_wide: unknown[] = [];
      const measure = async (place: string): Promise<void> => {
        await settled(page);
        await takePicture(page, `long-${place.split("/")[0]}-${name}`);
        const beyond = await page.evaluate<string[]>(BEYOND);
        if (beyond.length > 0) too_wide.push([place, ...beyond]);
      };
      for (const place of PAGES) {
        await visit.open(place);
        await measure(place);
      }
      for (const place of pages) {
        await page.goto(`${at.url}/app/${place}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await measure(place);
      }
      expect(too_wide).toEqual([]);
    },
    60_000,
  );
});
