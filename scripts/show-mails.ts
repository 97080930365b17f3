/**
 * Renders every kind of mail that the server writes, as a telephone, a window and a large window show it, in the light
 * and in the dark: `bun scripts/show-mails.ts FOLDER`. Needs Chromium (apt-get install chromium-headless-shell).
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { simpleParser } from "mailparser";

import { hasChromium, launchChromium } from "../test/support/chromium.ts";
import { everyMail } from "../test/support/every-mail.ts";

const WIDTHS = [320, 600, 1_000];
const SCHEMES = ["light", "dark"] as const;

const [folder] = process.argv.slice(2);
if (folder === undefined || !hasChromium) {
  console.error("bun scripts/show-mails.ts FOLDER (with Chromium installed)");
  process.exit(1);
}
await mkdir(folder, { recursive: true });
await using browser = await launchChromium();

for (const { name, raw } of await everyMail()) {
  const { html, text = "" } = await simpleParser(raw);
  const page = String(html);
  await writeFile(join(folder, `${name}.html`), page);
  await writeFile(join(folder, `${name}.txt`), text);
  for (const colorScheme of SCHEMES) {
    await using context = await browser.newContext({ colorScheme });
    const tab = await context.newPage();
    for (const width of WIDTHS) {
      await tab.setViewportSize({ width, height: 400 });
      await tab.goto(`file://${resolve(folder, `${name}.html`)}`);
      await tab.screenshot({ path: join(folder, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
  }
  console.log(`${name}: ${page.length} characters of HTML, ${text.length} of text`);
}
process.exit(0);
