import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const CHROMIUM = Bun.which("chromium");

/** Nothing but the page asked for: Chromium's own errands would count as requests of the page. */
const QUIET = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
  "--remote-debugging-port=0",
];
const PATIENCE_MS = 10_000;

interface Seen {
  /** Every address the page asked for, and with which headers. */
  requests: { url: string; headers: Record<string, string> }[];
  /** What the console holds as an error or a warning, broken rules of the content security policy among them. */
  complaints: string[];
}

export interface Page extends Seen {
  /** The value of an expression in the page, promises awaited. */
  evaluate<T>(expression: string): Promise<T>;
  /** Waits until an expression in the page is truthy. */
  until(expression: string): Promise<void>;
  screenshot(path: string): Promise<void>;
}

export interface Browser extends AsyncDisposable {
  open(url: string, look?: { width?: number; dark?: boolean }): Promise<Page>;
}

/** A real browser without a window, told what to do over its DevTools protocol. */
export async function startBrowser(): Promise<Browser> {
  if (CHROMIUM === null) throw new Error("There is no Chromium here: apt-get install chromium");
  const profile = await mkdtemp(join(tmpdir(), "mailwright-browser-"));
  const process = Bun.spawn([CHROMIUM, ...QUIET, `--user-data-dir=${profile}`, "about:blank"], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const wire = await openWire(await addressOf(process.stderr));
  return {
    async open(url, { width = 1_280, dark = false } = {}) {
      const { targetId } = await wire.send<{ targetId: string }>("Target.createTarget", {
        url: "about:blank",
      });
      const { sessionId } = await wire.send<{ sessionId: string }>("Target.attachToTarget", {
        targetId,
        flatten: true,
      });
      const send: Send = (method, params) => wire.send(method, params, sessionId);
      const seen = watch(wire, sessionId);
      for (const domain of ["Page", "Network", "Runtime", "Log"]) await send(`${domain}.enable`);
      await send("Emulation.setDeviceMetricsOverride", {
        width,
        height: 900,
        deviceScaleFactor: 1,
        mobile: width < 600,
      });
      const value = dark ? "dark" : "light";
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value }] });
      await send("Page.navigate", { url });
      const page = pageOf(send, seen);
      await page.until(`location.href !== "about:blank" && document.readyState === "complete"`);
      return page;
    },
    async [Symbol.asyncDispose]() {
      wire.close();
      process.kill();
      await process.exited;
      await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    },
  };
}

type Send = <T>(method: string, params?: object) => Promise<T>;

function pageOf(send: Send, seen: Seen): Page {
  const evaluate = async <T>(expression: string): Promise<T> => {
    const { result, exceptionDetails } = await send<{
      result: { value: T };
      exceptionDetails?: { exception?: { description?: string } };
    }>("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? expression);
    return result.value;
  };
  return {
    ...seen,
    evaluate,
    async until(expression) {
      const deadline = Date.now() + PATIENCE_MS;
      while (!(await evaluate(`Boolean(${expression})`))) {
        if (Date.now() > deadline)
          throw new Error(`The page never came to ${expression}. It says: ${seen.complaints.join("; ")}`);
        // Nothing in the page announces what its libraries have drawn.
        await Bun.sleep(20);
      }
    },
    async screenshot(path) {
      const { data } = await send<{ data: string }>("Page.captureScreenshot", { format: "png" });
      await Bun.write(path, Buffer.from(data, "base64"));
    },
  };
}

interface Heard {
  method: string;
  sessionId?: string;
  params: object;
}

/** What is complained of in an event of the DevTools protocol; undefined for one that is no complaint. */
const COMPLAINTS: Record<string, (params: never) => string | undefined> = {
  "Log.entryAdded": ({ entry }: { entry: { level: string; text: string } }) =>
    entry.level === "info" || entry.level === "verbose" ? undefined : entry.text,
  "Runtime.exceptionThrown": ({ exceptionDetails: { text, exception } }: Thrown) =>
    exception?.description ?? text,
  "Runtime.consoleAPICalled": ({ type, args }: { type: string; args: { value?: string }[] }) =>
    type === "error" || type === "warning" ? args.map(({ value }) => value).join(" ") : undefined,
};

interface Thrown {
  exceptionDetails: { text: string; exception?: { description?: string } };
}

function watch(wire: Wire, session: string): Seen {
  const seen: Seen = { requests: [], complaints: [] };
  wire.listen(({ method, sessionId, params }) => {
    if (sessionId !== session) return;
    if (method === "Network.requestWillBeSent")
      seen.requests.push((params as { request: Seen["requests"][number] }).request);
    const complaint = COMPLAINTS[method]?.(params as never);
    if (complaint !== undefined) seen.complaints.push(complaint);
  });
  return seen;
}

interface Wire {
  send<T>(method: string, params?: object, sessionId?: string): Promise<T>;
  listen(listener: (heard: Heard) => void): void;
  close(): void;
}

async function openWire(url: string): Promise<Wire> {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  const listeners: ((heard: Heard) => void)[] = [];
  let last = 0;
  socket.addEventListener("message", ({ data }) => {
    const heard = JSON.parse(String(data)) as Heard & {
      id?: number;
      result: never;
      error?: { message: string };
    };
    if (heard.id === undefined) {
      for (const listener of listeners) listener(heard);
      return;
    }
    const call = waiting.get(heard.id);
    waiting.delete(heard.id);
    if (heard.error) call?.reject(new Error(heard.error.message));
    else call?.resolve(heard.result);
  });
  return {
    send: (method, params = {}, sessionId) =>
      new Promise((resolve, reject) => {
        const id = ++last;
        waiting.set(id, { resolve, reject });
        socket.send(JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) }));
      }),
    listen: (listener) => void listeners.push(listener),
    close: () => socket.close(),
  };
}

/** Chromium says where it listens in the first lines of its log. */
async function addressOf(log: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of log) {
    text += decoder.decode(chunk, { stream: true });
    const address = /DevTools listening on (ws:\S+)/.exec(text)?.[1];
    if (address !== undefined) return address;
  }
  throw new Error(`Chromium ended: ${text}`);
}
