/**
 * Takes the pictures of the README from the real pages, in the light and in the dark: `bun scripts/screenshots.ts`.
 * Needs Chromium (apt-get install chromium-headless-shell).
 */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { builtBinary } from "../test/support/binary.ts";
import { hasChromium, launchChromium } from "../test/support/chromium.ts";
import { rawMail } from "../test/support/mails.ts";
import { type ModelRequestBody, startModelServer, toolCalls } from "../test/support/model-server.ts";
import { deliver } from "../test/support/smtp-client.ts";
import { startToolServer } from "../test/support/tool-server.ts";

const FOLDER = join(import.meta.dir, "../docs/pictures");
const OWNER = { email: "ada@example.org", password: "quiet river 42" };
const SIZE = { width: 1_120, height: 760 };
/** What a page of code hosts is fetched with. */
const MAX_BYTES = 200_000;

const ANSWER = `The workshop fits on **Thursday 12 March, 14:00 to 16:00**: it is the only slot that all four have left, and room Lovelace is free.

| Who | Thursday |
|---|---|
| Grace | free from 13:30 |
| Edsger | free all day |
| Barbara | free until 16:15 |

I have put it into the calendar as *Workshop: release plan*, with the three of them invited.`;

const MAILS: [subject: string, text: string][] = [
  ["Invoice 2026-118", "Which account does this belong to, and when is it due?"],
  ["Minutes of Monday", "Sum this up in three lines, with who does what."],
  [
    "Workshop next week",
    "Find two hours for Grace, Edsger, Barbara and me next week, and put it into the calendar.",
  ],
];

function reply({ messages, tools: offered = [] }: ModelRequestBody): Response | string {
  if (!messages.some(({ content }) => content.includes("Find two hours")))
    return "It belongs to the account *Office*, and is due on 27 March.";
  if (messages.at(-1)?.role === "tool") return ANSWER;
  const named = (end: string): string =>
    offered.find((tool) => tool.function.name.endsWith(end))?.function.name ?? end;
  const args = { title: "Workshop: release plan", start: "2026-03-12T14:00", end: "2026-03-12T16:00" };
  return toolCalls([
    { name: named("list_events"), args: { week: "2026-W11" } },
    { name: named("create_event"), args },
  ]);
}

if (!hasChromium) {
  console.error("bun scripts/screenshots.ts needs Chromium: apt-get install chromium-headless-shell");
  process.exit(1);
}
await using model = startModelServer({ reply });
await using tools = startToolServer([
  {
    name: "list_events",
    annotations: { readOnlyHint: true },
    run: () => "Grace: 9:00 to 13:30. Barbara: from 16:15.",
  },
  { name: "create_event", run: () => "created: Workshop: release plan" },
]);
const dir = await mkdtemp(join(tmpdir(), "mailwright-pictures-"));
const server = Bun.spawn([await builtBinary(), "serve", "--dev"], {
  cwd: dir,
  env: {
    ...process.env,
    MAILWRIGHT_SERVER__LISTEN: "127.0.0.1:0",
    MAILWRIGHT_SMTP__LISTEN: "127.0.0.1:0",
    MAILWRIGHT_SMTP__DOMAIN: "mail.example.org",
    MAILWRIGHT_LLM__KIND: "openai_compatible",
    MAILWRIGHT_LLM__BASE_URL: model.base_url,
    MAILWRIGHT_LLM__MODEL: "gpt-5-mini",
    MAILWRIGHT_EGRESS__ALLOW: "127.0.0.1",
  },
  stdout: "pipe",
});
try {
  await takePictures();
} finally {
  server.kill("SIGTERM");
  await server.exited;
  await rm(dir, { recursive: true, force: true });
}
process.exit(0);

async function takePictures(): Promise<void> {
  const log = await logUntil(["ready http=", "setup?token="]);
  const found = (pattern: RegExp) => pattern.exec(log)?.[1] ?? "";
  const url = found(/ready http=(\S+)/);
  const [host = "", port] = found(/smtp=(\S+)/).split(":");
  const token = found(/setup\?token=(\S+)/);
  let cookie = "";
  const api = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { cookie, origin: url, "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method, headers, body: body && JSON.stringify(body) });
    cookie ||= response.headers.get("set-cookie")?.split(";")[0] ?? "";
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  await api("POST", "/setup", { token, ...OWNER });
  const calendar = await api<{ id: string }>("POST", "/connections", {
    kind: "mcp",
    label: "Calendar",
    base_url: tools.url,
  });
  const inbox = await api<{ id: string; address: string }>("POST", "/inboxes", {
    label: "Desk",
    mcp_connection_ids: [calendar.id],
  });
  const peer = { host, port: Number(port) };
  for (const [subject, text] of MAILS) {
    const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.org>` };
    const raw = rawMail({ from: `Ada <${OWNER.email}>`, to: inbox.address, subject, text, headers });
    await deliver(peer, { from: OWNER.email, to: inbox.address, raw });
  }
  await settled(api);
  await using browser = await launchChromium();
  for (const colorScheme of ["light", "dark"] as const) {
    const context = await browser.newContext({ viewport: SIZE, colorScheme, reducedMotion: "reduce" });
    const [name = "", value = ""] = cookie.split("=");
    await context.addCookies([{ name, value, url }]);
    const page = await context.newPage();
    await page.goto(`${url}/app`);
    await page.getByRole("link", { name: "Workshop next week" }).click();
    await page.getByRole("heading", { name: "Workshop next week", level: 1 }).waitFor();
    await page.getByText("room Lovelace is free").first().waitFor();
    const path = join(FOLDER, `message-${colorScheme}.png`);
    await page.screenshot({ path });
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw new Error(`${path} has ${size} bytes; at most ${MAX_BYTES} are wanted.`);
    console.log(`${path}: ${size} bytes`);
    await context.close();
  }
}

async function settled(api: <T>(method: string, path: string) => Promise<T>): Promise<void> {
  for (;;) {
    const { items } = await api<{ items: { status: string }[] }>("GET", "/messages");
    if (items.length === MAILS.length && items.every(({ status }) => status !== "received")) return;
    await Bun.sleep(100);
  }
}

/** Up to the end of the lines that have all of these words. */
async function logUntil(words: string[]): Promise<string> {
  const reader = server.stdout.getReader();
  let log = "";
  while (!words.every((word) => log.includes(word)) || !log.endsWith("\n")) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The server ended: ${log}`);
    log += new TextDecoder().decode(value);
  }
  reader.releaseLock();
  return log;
}
