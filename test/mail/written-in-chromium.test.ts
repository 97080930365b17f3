import { beforeAll, describe, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { simpleParser } from "mailparser";

import { hasChromium, sharedChromium } from "../support/chromium.ts";
import { everyMail } from "../support/every-mail.ts";

const MAILS = await everyMail();
const WIDTHS = [320, 600, 1_000];

/** What reaches beyond the window, if the page can be moved sideways. */
const BEYOND = `document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")]
    .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
    .map((element) => element.outerHTML.slice(0, 200))`;

/** Words with less than 4.5:1 between them and what is behind them (WCAG 2.2, 1.4.3); `canvas` is behind all. */
const PALE = (canvas: number[]): string => `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (color) => color.slice(0, 3).map((channel) => channel / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = channels(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return ${JSON.stringify(canvas)};
  };
  return [...document.querySelectorAll("body *")]
    .filter((element) => [...element.childNodes].some(({ nodeType, data }) => nodeType === 3 && data.trim() !== ""))
    .filter((element) => {
      const [one, other] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
      return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
    })
    .map((element) => element.outerHTML.slice(0, 200));
})()`;

describe.skipIf(!hasChromium)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedChromium();
  });

  test.each([
    ["light", [255, 255, 255]],
    ["dark", [18, 18, 18]],
  ] as const)("every mail of ours fits its window and can be read: %s", async (colorScheme, canvas) => {
    const context = await browser.newContext({ colorScheme });
    const page = await context.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    for (const { name, raw } of MAILS) {
      await page.setContent(String((await simpleParser(raw)).html));
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 400 });
        expect([name, width, await page.evaluate(BEYOND)]).toEqual([name, width, []]);
      }
      expect([name, await page.evaluate(PALE([...canvas]))]).toEqual([name, []]);
    }
    expect(asked.filter((url) => !url.startsWith("data:"))).toEqual([]);
    await context.close();
  });

  test("without its style sheet a mail can be read as well", async () => {
    const context = await browser.newContext({ colorScheme: "dark" });
    const page = await context.newPage();
    for (const { name, raw } of MAILS) {
      const html = String((await simpleParser(raw)).html).replace(/<style>[^]*?<\/style>/, "");
      await page.setContent(html.replaceAll(/<meta name="(?:supported-)?color-scheme[^>]*>/g, ""));
      expect([name, await page.evaluate(PALE([255, 255, 255]))]).toEqual([name, []]);
    }
    await context.close();
  });
});
