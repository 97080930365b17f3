import { type Browser, type BrowserContext, chromium, type ConsoleMessage } from "playwright-core";

/** Without a window of its own it needs less of a busy machine. */
const CHROMIUM = Bun.which("chromium-headless-shell") ?? Bun.which("chromium");
/** Nothing but the page asked for: Chromium's own errands would count as requests of the page. */
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const hasChromium = CHROMIUM !== null;
if (!hasChromium) console.log("Pages are not tried in a browser: apt-get install chromium-headless-shell");

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM ?? "", args: ARGUMENTS });
}

/** All that a user's browser should not have to say: faults on the console, broken pages, calls to elsewhere. */
export function watch(
  context: BrowserContext,
  places: string[],
  isFault: (line: ConsoleMessage) => boolean,
): string[] {
  const strange: string[] = [];
  const origins = new Set(places.map((place) => new URL(place).origin));
  context.on("console", (line) => {
    if (isFault(line)) strange.push(line.text());
  });
  context.on("weberror", (error) => strange.push(error.error().message));
  context.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (!origins.has(origin) && protocol !== "data:" && protocol !== "blob:") strange.push(request.url());
  });
  return strange;
}
