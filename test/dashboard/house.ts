import { expect } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import axe, { type AxeResults } from "axe-core";
import type { Browser, BrowserContext, ConsoleMessage, Page } from "playwright-core";
import { builtBinary } from "../support/binary.ts";
import { sharedChromium, watch } from "../support/chromium.ts";

export { hasChromium } from "../support/chromium.ts";

/** Every page of the navigation of a server that sells nothing. */
export const PAGES = [
  "Activity",
  "Conversations",
  "Approvals",
  "Playground",
  "Inboxes",
  "Contexts",
  "Connections",
  "Schedules",
  "Recipes",
  "Domains",
  "Webhooks",
  "Usage",
  "Settings",
  "Server",
];
/** The folder that a run leaves its pictures in, for people to look at; none are made without one. */
const SCREENSHOTS = process.env["SCREENSHOTS"];
const WAIT_MS = 30_000;
const DESK = { width: 1440, height: 900 };
const TABLET = { width: 768, height: 1024 };
const PHONE = { width: 390, height: 844 };
/** What is in order is not told of, which takes half of the time. */
const ONLY_FAULTS = `resultTypes: ["violations"]`;
const ALL_RULES = `axe.run({ ${ONLY_FAULTS} })`;
const ALL_BUT_CONTRAST = `axe.run({ rules: { "color-contrast": { enabled: false } }, ${ONLY_FAULTS} })`;
const CONTRAST = `axe.run({ runOnly: ["color-contrast"], ${ONLY_FAULTS} })`;
const THEMES = ["light", "dark"] as const;
/** Resolves once the page is drawn at its size and nothing moves or fades that will end: what fades in is pale for a moment. */
const STILL = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))).then(() =>
  Promise.allSettled(document.getAnimations()
    .filter(({ effect, playState }) => playState === "running" && Number.isFinite(effect?.getComputedTiming().endTime))
    .map(({ finished }) => finished)).then(() => undefined))`;

export const OWNER = { email: "ada@example.org", password: "quiet river 42" };

export interface Look {
  viewport: { width: number; height: number };
  colorScheme: (typeof THEMES)[number];
  /** Other widths in which each page is looked at besides: what is done takes longer than a look. */
  also?: number[];
}

export const atWidth = (width: number, colorScheme: Look["colorScheme"]): Look => ({
  viewport: { width, height: 900 },
  colorScheme,
});

/** What is done at the first width, each page looked at in all of them. */
export const atWidths = ([width = 0, ...also]: number[], colorScheme: Look["colorScheme"]): Look => ({
  ...atWidth(width, colorScheme),
  also,
});

type NamedLook = [name: string, look: Look];
const ON_TABLET: NamedLook = ["768-dark", { viewport: TABLET, colorScheme: "dark" }];
const ON_PHONE: NamedLook = ["390-dark", { viewport: PHONE, colorScheme: "dark" }];

/**
 * How each page is looked at, in the widths of a desk and a phone: what is done is done in one of them, by chance, as the
 * name of the test says. `LOOK=390` or `LOOK=1440` chooses. `Visit.look` looks at the first one in the other theme too.
 */
export const LOOKS: NamedLook[] = isAtDesk()
  ? [["1440-390-light", atWidths([DESK.width, PHONE.width], "light")]]
  : [["390-1440-dark", atWidths([PHONE.width, DESK.width], "dark")]];
/** Where there is least room: beside the navigation, and without it. */
export const NARROW_LOOKS = [ON_TABLET, ON_PHONE];
/** How tasks are done that have one way to be done: where it is hardest. */
export const TASK_LOOKS = [ON_PHONE];

function isAtDesk(): boolean {
  const { LOOK } = process.env;
  return LOOK === undefined ? Math.random() < 0.5 : LOOK === String(DESK.width);
}

export interface Visit extends AsyncDisposable {
  page: Page;
  /** Goes to a page by its name in the navigation, which is behind a button on a phone. */
  open(name: string): Promise<void>;
  /** Holds the page as it is against axe in each theme and the width of the screen, and takes its picture if asked to. */
  look(name: string): Promise<void>;
}

interface VisitOptions {
  look?: Look;
  /** Without a session, as on the first day. */
  signed_out?: boolean;
  /** Statuses that this visit provokes: a browser names each on the console. */
  refusals?: number[];
  /** Other origins that this visit leads to, such as a stand-in for a provider's sign-in. */
  elsewhere?: string[];
  /** In a browser of its own, for what would outlive the visit: a clock that was set, a permission. */
  alone?: boolean;
}

export interface Dashboard extends AsyncDisposable {
  url: string;
  dir: string;
  /** The link that makes the first account; used already unless `fresh` was asked for. */
  setup: string;
  /** A page at the start, in a browser that knows nothing. Its end fails if the console or the network had anything strange. */
  visit(options?: VisitOptions): Promise<Visit>;
  /** The public API in the name of the owner. Throws what the server said when it refuses. */
  api<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** What the server's log says first that fits. */
  said(words: RegExp): Promise<string>;
}

interface DashboardOptions {
  /** Nobody has an account yet. */
  fresh?: boolean;
  /** More of the environment, such as `MAILWRIGHT_OUTBOUND__MODE`. */
  env?: Record<string, string>;
}

/** The binary in an empty folder, with the demo model, and Debian's Chromium in front of it. */
export async function dashboard({ fresh = false, env = {} }: DashboardOptions = {}): Promise<Dashboard> {
  const stack = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "mailwright-dashboard-"));
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  const said = await startServer(stack, dir, env);
  const setup = await said(/(https?:\S+\/app\/setup\?token=\S+)/);
  const url = await said(/ready http=(\S+)/);
  const browser = await sharedChromium();
  const contexts: BrowserContext[] = [];
  stack.defer(async () => {
    await Promise.all(contexts.map((context) => context.close()));
  });
  const free: Tabs[] = [];
  let cookie = "";

  async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers = { cookie, origin: url, "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    cookie ||= response.headers.get("set-cookie")?.split(";")[0] ?? "";
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }
  if (!fresh) await api("POST", "/setup", { token: new URL(setup).searchParams.get("token"), ...OWNER });

  function sessionCookies() {
    const [name = "", value = ""] = cookie.split("=");
    return cookie === "" ? [] : [{ name, value, url }];
  }

  async function visit({
    look = { viewport: DESK, colorScheme: "light" },
    signed_out = false,
    refusals = [],
    elsewhere = [],
    alone = false,
  }: VisitOptions = {}): Promise<Visit> {
    const tabs = (alone ? undefined : free.pop()) ?? (await openTabs(browser, url));
    const { context } = tabs;
    if (!contexts.includes(context)) contexts.push(context);
    await context.addCookies(signed_out ? [] : sessionCookies());
    const watching = watch(context, [url, ...elsewhere], (line) => isFault(line, refusals));
    const page = await context.newPage();
    await page.setViewportSize(look.viewport);
    await page.emulateMedia({ colorScheme: look.colorScheme });
    await page.goto(`${url}/app`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    return {
      page,
      open: (place) => open(page, place),
      look: (shot) => holdAtAll(page, shot, look),
      async [Symbol.asyncDispose]() {
        await (alone ? context.close() : forget(tabs));
        watching[Symbol.dispose]();
        if (!alone) free.push(tabs);
        expect(watching.strange).toEqual([]);
      },
    };
  }
  return { url, dir, setup, said, api, visit, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** A browser that visits use one after the other. */
interface Tabs {
  context: BrowserContext;
  /** A page of the server without code: it keeps the process, which has compiled the dashboard, from ending. */
  keeper: Page;
}

async function openTabs(browser: Browser, url: string): Promise<Tabs> {
  const context = await browser.newContext({ reducedMotion: "reduce" });
  context.setDefaultTimeout(WAIT_MS);
  const keeper = await context.newPage();
  await keeper.goto(`${url}/app/icon.svg`);
  return { context, keeper };
}

async function forget({ context, keeper }: Tabs): Promise<void> {
  await Promise.all(context.pages().map((page) => (page === keeper ? undefined : page.close())));
  await context.clearCookies();
  await keeper.evaluate("localStorage.clear()");
}

async function startServer(stack: AsyncDisposableStack, dir: string, env: Record<string, string>) {
  const server = Bun.spawn([await builtBinary(), "serve", "--dev"], {
    cwd: dir,
    env: {
      ...process.env,
      MAILWRIGHT_SERVER__LISTEN: "127.0.0.1:0",
      MAILWRIGHT_SMTP__LISTEN: "127.0.0.1:0",
      ...env,
    },
    stdout: "pipe",
  });
  stack.defer(async () => {
    server.kill("SIGTERM");
    await server.exited;
  });
  const decoder = new TextDecoder();
  let log = "";
  let reading: Promise<void> = Promise.resolve();
  let ended = false;
  const reader = server.stdout.getReader();
  const readMore = async (): Promise<void> => {
    const { value, done } = await reader.read();
    ended = done;
    log += decoder.decode(value, { stream: true });
  };
  return async (words: RegExp): Promise<string> => {
    for (;;) {
      const found = words.exec(log);
      if (found) return found[1] ?? found[0];
      if (ended) throw new Error(`The server ended: ${log}`);
      reading = reading.then(readMore);
      await reading;
    }
  };
}

/** A browser names every refusal on the console. */
function isFault(line: ConsoleMessage, refusals: number[]): boolean {
  const isProvoked = refusals.some((status) => line.text().includes(`status of ${status}`));
  return line.type() === "error" && !isProvoked;
}

async function open(page: Page, name: string): Promise<void> {
  const button = page.getByRole("button", { name: "Open the navigation" });
  if (await button.isVisible()) await button.click();
  await page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { name, level: 1 }).waitFor();
  await settled(page);
}

/** Waits until the page has read what it shows. */
export async function settled(page: Page): Promise<void> {
  await page.getByText("Loading").first().waitFor({ state: "detached" });
  await page.locator("div[aria-busy]").first().waitFor({ state: "detached" });
}

async function holdAtAll(page: Page, shot: string, look: Look): Promise<void> {
  const { viewport, also = [] } = look;
  for (const width of [...also, viewport.width]) {
    if (also.length > 0) await page.setViewportSize({ ...viewport, width });
    // Colours are the same in all widths.
    const is_first = width === viewport.width;
    const themes = is_first ? THEMES : [look.colorScheme];
    const rules = is_first ? ALL_RULES : ALL_BUT_CONTRAST;
    await hold(page, shot, { look: { ...look, viewport: { ...viewport, width } }, themes, rules });
  }
}

async function hold(
  page: Page,
  shot: string,
  { look, themes, rules }: { look: Look; themes: readonly Look["colorScheme"][]; rules: string },
): Promise<void> {
  const { viewport, colorScheme } = look;
  await settled(page);
  await page.evaluate(STILL);
  const wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth");
  if (await page.evaluate(`!("axe" in window)`)) await page.evaluate(axe.source);
  const serious = seriousOf(await page.evaluate<AxeResults>(rules));
  for (const theme of themes) {
    await page.emulateMedia({ colorScheme: theme });
    await takePicture(page, `${shot}-${viewport.width}-${theme}`, { fullPage: true });
    // Nothing but the colours is another than in the theme of the visit.
    if (theme !== colorScheme) serious.push(...seriousOf(await page.evaluate<AxeResults>(CONTRAST)));
  }
  await page.emulateMedia({ colorScheme });
  expect({ shot, serious, wide }).toEqual({ shot, serious: [], wide: false });
}

/** Only where a run is asked for pictures: they take a seventh of its time. */
export async function takePicture(
  page: Page,
  name: string,
  options: { fullPage?: boolean } = {},
): Promise<void> {
  if (SCREENSHOTS === undefined) return;
  await mkdir(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), ...options });
}

function seriousOf({ violations }: AxeResults) {
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => [id, nodes[0]?.html]);
}
