import { dashboard } from "../test/dashboard/house.ts";
import { noteFigure, printResults, printSettings, roundsOf } from "./support.ts";

/** From the begin of the navigation until the first field of the sign-in has the focus, in a browser that kept nothing. */
const LOADS = roundsOf(9);
/** As text, since no program here knows of a page. */
const NOTE_FOCUS = `(() => {
  const look = () => {
    if (document.activeElement?.matches("input")) globalThis.typeable_after = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})()`;

printSettings({ loads: LOADS, browser: "Chromium without a window, on loopback" });
const times: number[] = [];
const kilobytes: number[] = [];
await using at = await dashboard();
await using visit = await at.visit({ signed_out: true });
for (let n = 0; n < LOADS; n += 1) {
  const context = await visit.page.context().browser()?.newContext();
  if (!context) throw new Error("The browser has gone.");
  const page = await context.newPage();
  const sizes: Promise<number>[] = [];
  page.on("requestfinished", (request) => {
    sizes.push(request.sizes().then(({ responseBodySize }) => responseBodySize));
  });
  await page.addInitScript(NOTE_FOCUS);
  await page.goto(`${at.url}/app`);
  await page.locator("input:focus").waitFor();
  times.push(Number(await page.evaluate("globalThis.typeable_after")));
  await page.waitForLoadState("networkidle");
  kilobytes.push((await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) / 1_024);
  await context.close();
}
noteFigure("first load of the sign-in, typed into after", times, "ms");
noteFigure("first load of the sign-in, size", kilobytes, "KB");
printResults();
