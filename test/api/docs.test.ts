import { beforeAll, describe, expect, test } from "bun:test";
import type { Browser, Page } from "playwright-core";
import { ERROR_CODES } from "../../src/errors.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { CATALOGUE } from "../../src/http/error-catalogue.ts";
import { STATUS, TITLES } from "../../src/http/errors.ts";
import { until } from "../support/until.ts";
import { type TestApp, testApp } from "../support/app.ts";
import { hasChromium, sharedChromium, watch } from "../support/chromium.ts";
import { LISTEN, openDoor } from "./door.ts";

const PAGES = ["/docs", "/docs/errors", "/docs/webhooks"];
const ASSETS = ["swagger-ui-bundle.js", "swagger-ui.css", "init.js", "style.css"];

const BROWSER_MS = 60_000;
/** The reference itself, with /openapi.json, has twenty times as much, and comes once somebody opens it. */
const MAX_FIRST_BYTES = 32 * 1_024;
const TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth";

test.each(PAGES)("%s is HTML that may load nothing but what this server serves", async (path) => {
  await using t = await testApp();
  const { status, headers, body } = await t.request(path);
  expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const rules = (headers.get("content-security-policy") ?? "").split("; ").sort();
  expect(rules).toEqual([
    "base-uri 'none'",
    "connect-src 'self'",
    "default-src 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "img-src 'self' data:",
    "script-src 'self'",
    "style-src 'self'",
  ]);
  expect(body).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|(src|href)="(https?:)?\/\//);
  expect(body).toContain('name="viewport"');
});

test.each(PAGES)("%s leads to the dashboard", async (path) => {
  await using t = await testApp();
  expect(String((await t.request(path)).body)).toContain('<a href="/app">Dashboard</a>');
});

test("/docs begins with a call that can be pasted, at the address of this server", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const ada = await t.as("ada@example.com");
  await ada.post("/inboxes", {});
  const body = String((await t.request("/docs")).body);
  const example = /<pre>(.*?)<\/pre>/s.exec(body)?.[1] ?? "";
  expect(body.indexOf(example)).toBeLessThan(body.indexOf('id="operations"'));
  const text = example.replaceAll("&quot;", '"').replaceAll("&#x27;", "'").replaceAll("&amp;", "&");
  expect(text).toContain(`"${t.app.base_url}/v1/messages"`);
  const sent = /-d '(.*)'/.exec(text)?.[1] ?? "";
  const answer = await ada.post("/v1/messages", sent, { "mailwright-strict": "1" });
  expect([answer.status, answer.body.status]).toEqual([200, "done"]);
});

test("/docs/webhooks states the schedule that this server goes by", async () => {
  const said = async (webhooks: ConfigOverrides["webhooks"]) => {
    await using t = await testApp(webhooks ? { webhooks } : {});
    return String((await t.request("/docs/webhooks")).body).replaceAll(/<.*?>/g, "");
  };
  const usual = await said(undefined);
  expect(usual).toContain("within 15 seconds");
  expect(usual).toContain("after 1 minute, 5 minutes, 30 minutes, 2 hours and 8 hours, 6 attempts in all");
  expect(usual).toContain("After 5 deliveries in a row");
  const other = await said({ backoff: [0, 90], timeout_seconds: 60, disable_after: 0 });
  expect(other).toContain("within 1 minute");
  expect(other).toContain("after 90 seconds, 2 attempts in all");
  expect(other).toContain("However many deliveries fail");
  expect(await said({ backoff: [0] })).toContain("it is not tried again");
});

test.each(PAGES)("every local link and file of %s is there", async (path) => {
  await using t = await testApp();
  const { body } = await t.request(path);
  const links = [...String(body).matchAll(/(?:src|href)="(\/[^"#]*)"/g)].map(([, link = ""]) => link);
  expect(links.length).toBeGreaterThan(2);
  // The dashboard is in the binary alone (see `test/binary.test.ts`).
  const others = links.filter((link) => !/^\/app(?:\/|$)/.test(link));
  for (const link of others) expect([link, (await t.request(link)).status]).toEqual([link, 200]);
});

test.each(ASSETS)(
  "/docs/%s may be kept for a year under its version, and is not sent twice",
  async (name) => {
    await using t = await testApp();
    const first = await t.request(`/docs/${name}`);
    expect(first.status).toBe(200);
    expect(first.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(first.headers.get("content-type")).toMatch(/^text\/(css|javascript); charset=utf-8$/);
    const etag = first.headers.get("etag") ?? "";
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const again = await t.request(`/docs/${name}`, { headers: { "if-none-match": known } });
      expect([again.status, again.body, again.headers.get("etag")]).toEqual([304, "", etag]);
    }
    const other = await t.request(`/docs/${name}`, { headers: { "if-none-match": '"other"' } });
    expect(other.status).toBe(200);
  },
);

test("what is large is sent packed to whoever can unpack it, and the same to everybody", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  for (const path of ["/openapi.json", "/docs/swagger-ui-bundle.js"]) {
    const [plain, packed] = await Promise.all(
      ["identity", "gzip, br"].map((encoding) =>
        fetch(door.url + path, { headers: { "accept-encoding": encoding }, decompress: false }),
      ),
    );
    if (!plain || !packed) throw new Error("Two answers were asked for.");
    expect([plain.headers.get("content-encoding"), packed.headers.get("content-encoding")]).toEqual([
      null,
      "gzip",
    ]);
    for (const { headers } of [plain, packed]) expect(headers.get("vary")).toContain("Accept-Encoding");
    const [text, bytes] = [Buffer.from(await plain.bytes()), Buffer.from(await packed.bytes())];
    expect(bytes.length).toBeLessThan(text.length / 3);
    expect(Buffer.from(Bun.gunzipSync(bytes)).equals(text)).toBe(true);
  }
});

test("/openapi.json is asked for again each time, and not sent twice", async () => {
  await using t = await testApp({ server: LISTEN });
  await using door = await openDoor(t);
  const first = await door.request("/openapi.json");
  expect(first.headers.get("content-type")).toBe("application/json");
  expect(first.headers.get("cache-control")).toBe("no-cache");
  const known = first.headers.get("etag") ?? "";
  const again = await door.request("/openapi.json", { headers: { "if-none-match": known } });
  expect([again.status, again.body]).toEqual([304, ""]);
});

describe("/docs/errors", () => {
  test("has a place for every error, with its status, its meaning and its mend", async () => {
    await using t = await testApp();
    const body = String((await t.request("/docs/errors")).body);
    expect(Object.keys(CATALOGUE).sort()).toEqual([...ERROR_CODES].sort());
    for (const code of ERROR_CODES) {
      const place = new RegExp(`<section id="${code}">(.*?)</section>`, "s").exec(body)?.[1] ?? "";
      expect(place).toContain(Bun.escapeHTML(TITLES[code]));
      expect(place).toContain(`status ${STATUS[code]}`);
      expect(wordsOf(place)).toContain(CATALOGUE[code].meaning.replaceAll("`", ""));
      expect(wordsOf(place)).toContain(CATALOGUE[code].mend.replaceAll("`", ""));
      expect(body).toContain(`<li><a href="#${code}">`);
    }
  });

  test("is where the type of an error leads", async () => {
    await using t = await testApp();
    const { type } = (await t.request("/inboxes")).body as { type: string };
    expect(type).toStartWith(t.app.base_url);
    const { pathname, hash } = new URL(type);
    expect((await t.request(pathname)).body).toContain(`id="${hash.slice(1)}"`);
  });

  test("speaks of an error in whole sentences and without leftovers", () => {
    for (const { meaning, mend } of Object.values(CATALOGUE)) {
      for (const words of [meaning, mend]) {
        expect(words).toMatch(/^[A-Z].*\.$/);
        expect(words.split("`").length % 2).toBe(1);
      }
    }
  });
});

describe.skipIf(!hasChromium)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await sharedChromium();
  }, BROWSER_MS);

  /** A page of a server, as on that screen. Its end fails if the browser had anything to complain of. */
  async function open(door: string, path: string, { width = 1_280, dark = false } = {}) {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      isMobile: width < 600,
      colorScheme: dark ? "dark" : "light",
    });
    // Drawing a hundred operations is much for a busy machine.
    context.setDefaultTimeout(BROWSER_MS);
    const { strange } = watch(context, [door], (line) => ["error", "warning"].includes(line.type()));
    const page = await context.newPage();
    await page.goto(`${door}${path}`);
    return {
      page,
      async [Symbol.asyncDispose]() {
        await context.close();
        expect(strange).toEqual([]);
      },
    };
  }

  test.each([
    { name: "a desk", width: 1_280, dark: false },
    { name: "a phone in the dark", width: 360, dark: true },
  ])(
    "/docs lists every operation in a small page on $name, and opens the one that is clicked",
    async ({ name, ...look }) => {
      await using t = await testApp({ server: LISTEN });
      await using door = await openDoor(t);
      await using visit = await open(door.url, "/docs", look);
      const { page } = visit;
      const sizes: Promise<number>[] = [];
      page.on("requestfinished", (request) => {
        sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
      });
      await page.reload({ waitUntil: "networkidle" });
      const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
      console.log(`The first load of /docs has ${bytes} bytes.`);
      expect(bytes).toBeLessThan(MAX_FIRST_BYTES);
      expect(await page.locator("#operations li").count()).toBe(await operationsOf(t));
      expect(await page.evaluate<number>(TOO_WIDE)).toBe(0);
      await picture(page, `list of operations on ${name}`);
      await page.getByRole("link", { name: "POST /inboxes", exact: true }).click();
      await page.locator("#operations-Inboxes-postInboxes.is-open").waitFor();
      expect(await page.locator(".opblock:not([id^=operations-Inboxes])").count()).toBe(0);
      expect(await page.locator("body").innerText()).not.toMatch(
        /errors? occurred|failed to|could not resolve/i,
      );
      await picture(page, `one operation on ${name}`);
      await page.getByRole("link", { name: "The list of all operations" }).click();
      await page.getByRole("link", { name: "POST /inboxes", exact: true }).waitFor();
    },
    BROWSER_MS,
  );

  test(
    "/docs draws every operation of the document, breaks no rule and asks nobody else",
    async () => {
      await using t = await testApp({ server: LISTEN });
      await using door = await openDoor(t);
      await using visit = await open(door.url, "/docs");
      const { page } = visit;
      const operations = await operationsOf(t);
      await page.getByRole("button", { name: "Open all" }).click();
      await page.locator(".opblock").first().waitFor();
      // The page draws no more of so many than are in sight.
      const drawn = new Set<string>();
      const draws = async () => {
        const ids = await page.locator(".opblock").evaluateAll((all) => all.map((one) => one.id));
        for (const id of ids) drawn.add(id);
        await page.mouse.wheel(0, 600);
        return drawn.size >= operations;
      };
      await until(draws);
      expect(drawn.size).toBe(operations);
      await page.evaluate("window.scrollTo(0, 0)");
      await page.locator(".opblock-tag").first().waitFor();
      expect(await page.locator("body").innerText()).not.toMatch(/errors? occurred|failed to/i);
      await picture(page, "docs");
      const colour = 'getComputedStyle(document.querySelector(".opblock-tag")).color';
      const by_day = await page.evaluate<string>(colour);
      await page.emulateMedia({ colorScheme: "dark" });
      await page.setViewportSize({ width: 360, height: 900 });
      await page.locator(".opblock-tag").first().waitFor();
      expect(await page.evaluate<string>(colour)).not.toBe(by_day);
      await picture(page, "docs on a phone in the dark");
    },
    BROWSER_MS,
  );

  test(
    "/docs sends a call with the key that was typed in, and shows the answer",
    async () => {
      await using t = await testApp({ server: LISTEN });
      await using door = await openDoor(t);
      const ada = await t.as("ada@example.com");
      await using visit = await open(door.url, "/docs#/Inboxes/postInboxes");
      const { page } = visit;
      await page.getByRole("button", { name: "Authorize", exact: true }).click();
      const by_key = page.locator(".auth-container").first();
      await by_key.locator("input").fill(ada.key);
      await by_key.getByRole("button", { name: "Apply credentials" }).click();
      await by_key.getByRole("button", { name: "Close", exact: true }).click();
      const operation = page.locator("#operations-Inboxes-postInboxes");
      await operation.getByRole("button", { name: "Try it out" }).click();
      await operation.locator("textarea").fill('{"label":"From the docs"}');
      const called = page.waitForRequest(`${door.url}/inboxes`);
      await operation.getByRole("button", { name: "Execute" }).click();
      expect(await (await called).headerValue("x-api-key")).toBe(ada.key);
      const shown = operation.locator(".live-responses-table");
      await shown.locator(".response").waitFor();
      expect(await shown.innerText()).toContain("201");
      expect((await ada.get("/inboxes")).body[0].label).toBe("From the docs");
      expect(await page.evaluate<number>("localStorage.length + sessionStorage.length")).toBe(0);
    },
    BROWSER_MS,
  );

  test.each([
    { name: "a desk", width: 1_280, dark: false },
    { name: "a phone in the dark", width: 360, dark: true },
  ])(
    "/docs/errors fits the screen of $name",
    async ({ name, ...look }) => {
      await using t = await testApp({ server: LISTEN });
      await using door = await openDoor(t);
      await using visit = await open(door.url, "/docs/errors#plan_limit_reached", look);
      const { page } = visit;
      expect(await page.evaluate<number>(TOO_WIDE)).toBe(0);
      const top = 'document.querySelector("#plan_limit_reached").getBoundingClientRect().top';
      expect(await page.evaluate<number>(top)).toBeLessThan(100);
      const back = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
      expect(back).toBe(look.dark ? "rgb(28, 32, 34)" : "rgb(255, 255, 255)");
      await picture(page, `errors on ${name}`);
    },
    BROWSER_MS,
  );
});

function wordsOf(html: string): string {
  const text = html.replaceAll(/<[^>]+>/g, "");
  return text.replaceAll("&#x27;", "'").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

async function operationsOf(t: TestApp): Promise<number> {
  const { paths } = (await t.request("/openapi.json")).body as { paths: Record<string, object> };
  return Object.values(paths).flatMap((operations) => Object.keys(operations)).length;
}

/** For eyes: SCREENSHOTS=folder keeps a picture of each page. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["SCREENSHOTS"];
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name.replaceAll(" ", "-")}.png` });
}
