import {
  type Browser,
  type BrowserContext,
  chromium,
  type ConsoleMessage,
  type Request,
  type WebError,
} from "playwright-core";

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
  // Pages of one context share a process, which has then compiled the code of the page before.
  "--renderer-process-limit=1",
];

export const hasChromium = CHROMIUM !== null;
if (!hasChromium) console.log("Pages are not tried in a browser: apt-get install chromium-headless-shell");

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM ?? "", args: ARGUMENTS });
}

let launched: Promise<Browser> | undefined;

/** One for all tests of a process, with which it ends: each closes the contexts that it opens. */
export function sharedChromium(): Promise<Browser> {
  launched ??= launchChromium().then((browser) => {
    browser.on("disconnected", () => (launched = undefined));
    return browser;
  });
  return launched;
}

export interface Watch extends Disposable {
  /** What was seen until the watch ended. */
  strange: string[];
}

/** All that a user's browser should not have to say: faults on the console, broken pages, calls to elsewhere. */
export function watch(
  context: BrowserContext,
  places: string[],
  isFault: (line: ConsoleMessage) => boolean,
): Watch {
  const strange: string[] = [];
  const origins = new Set(places.map((place) => new URL(place).origin));
  const hear = (line: ConsoleMessage) => {
    if (isFault(line)) strange.push(line.text());
  };
  const breaks = (error: WebError) => strange.push(error.error().message);
  const ask = (request: Request) => {
    const { origin, protocol } = new URL(request.url());
    if (!origins.has(origin) && protocol !== "data:" && protocol !== "blob:") strange.push(request.url());
  };
  context.on("console", hear).on("weberror", breaks).on("request", ask);
  return {
    strange,
    [Symbol.dispose]: () => context.off("console", hear).off("weberror", breaks).off("request", ask),
  };
}
