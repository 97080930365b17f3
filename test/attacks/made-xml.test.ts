import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { textFile } from "../../src/pipeline/made-files.ts";
import { hasChromium, sharedChromium } from "../support/chromium.ts";

/** A run that has read what others wrote. */
const TAINTED = { tainted: true, trusted_text: "", material: "" };
const made = (text: string) => textFile({ filename: "report.xml", text }, TAINTED);

const one = (digits: number): string => `&#${"49".padStart(digits, "0")};`;
const ACTIVE: [string, (eve: string) => string][] = [
  ["as it is", (eve) => page("http://www.w3.org/1999/xhtml", eve)],
  ["with a number of seven digits", (eve) => page(`http://www.w3.org/${one(7)}999/xhtml`, eve)],
  ["with a number of eight digits", (eve) => page(`http://www.w3.org/${one(8)}999/xhtml`, eve)],
  ["with a number of many digits", (eve) => page(`http://www.w3.org/${one(300)}999/xhtml`, eve)],
  ["with hexadecimal numbers", (eve) => page("http://www.w3.org/1999/&#x0000078;html", eve)],
  [
    "with blanks around its sign",
    (eve) =>
      page("http://www.w3.org/1999/xhtml", eve).replace(
        "xmlns:h=",
        `xmlns:h${" ".repeat(200)}=${"\n".repeat(200)}`,
      ),
  ],
  [
    "of a picture",
    (eve) =>
      `<report><svg xmlns='http://www.w3.org/2000/&#00000115;vg' width="9" height="9"><image href="${eve}/p.png?77-41-19" width="9" height="9"/></svg></report>`,
  ],
  [
    "behind a value with another mark",
    (eve) => `<report note='">='>${page("http://www.w3.org/1999/xht&#0000109;l", eve)}</report>`,
  ],
];

function page(namespace: string, eve: string): string {
  return `<report xmlns:h="${namespace}"><h:p>Summary</h:p><h:img src="${eve}/p.png?77-41-19"/><h:script>new Image().src="${eve}/run?77-41-19"</h:script></report>`;
}

describe.skipIf(!hasChromium)("XML of a run that acts in a browser", () => {
  let browser: Browser;
  const folder = mkdtempSync(join(tmpdir(), "made-xml-"));
  beforeAll(async () => {
    browser = await sharedChromium();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test.each(ACTIVE)("is not made: a namespace %s", async (_, form) => {
    const asked: string[] = [];
    using eve = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch({ url }) {
        asked.push(url);
        return new Response("");
      },
    });
    const text = form(`http://127.0.0.1:${eve.port}`);
    // The control: what it does once it is opened.
    await Bun.write(join(folder, "report.xml"), text);
    const opened = await browser.newPage();
    await opened.goto(`file://${folder}/report.xml`, { waitUntil: "networkidle" });
    await opened.close();
    expect(asked.join(" ")).toContain("77-41-19");
    expect(made(text)).toEqual({ refusal: expect.stringContaining("could act when it is opened") });
  });
});

describe("XML of a run", () => {
  test.each([
    [
      "whose formulas an office program works out",
      `<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"/>`,
    ],
    [
      "that takes in other files",
      `<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/passwd"/></a>`,
    ],
    ["in a namespace that nobody here knows", `<a xmlns="http://xml.eve.example/ns"/>`],
    [
      "in one that an entity is put into",
      `<!DOCTYPE a [<!ENTITY n "http://www.w3.org/1999/xhtml">]><!DOCTYPE b><a xmlns="&n;"/>`,
    ],
  ])("is not made: one %s", (_, text) => {
    expect(made(text)).toEqual({ refusal: expect.stringContaining("could act when it is opened") });
  });

  test.each([
    ["data of one's own", `<list><item id="1">Milk &amp; bread</item><!-- done --></list>`],
    [
      "data with a namespace of its own",
      `<list xmlns="http://www.example.com/list" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"/>`,
    ],
    ["a feed", `<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title></feed>`],
    ["a map of a site", `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>`],
    ["a track", `<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"/>`],
    [
      "an invoice",
      `<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2"/>`,
    ],
    ["a payment", `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"/>`],
  ])("is made: %s", (_, text) => {
    const file = made(text);
    expect("bytes" in file && Buffer.from(file.bytes).toString()).toContain(text);
  });
});
