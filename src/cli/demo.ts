import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { styleText } from "node:util";
import { Command } from "commander";
import type { App } from "../app.ts";
import { defaultConfig } from "../config/config.ts";
import { createLog } from "../lib/log.ts";
import { type Server, serve } from "../serve.ts";
import { VERSION } from "../lib/version.ts";
import { INSTRUCTION } from "./demo-mail.ts";
import { type Desk, DEMO_DOMAIN, repliesTo, walkThrough } from "./demo-steps.ts";
import { OLLAMA_URL, ollamaConfig } from "./ollama.ts";

const LABEL_WIDTH = 15;
const TEXT_WIDTH = 100;

export function demoCommand(): Command {
  return new Command("demo")
    .description("watch a mail come in, be answered and go out, in a temporary folder")
    .option("--once", "stop at the end instead of waiting for Ctrl-C")
    .action(async ({ once }: { once?: boolean }) => {
      const told = new AbortController();
      process.once("SIGINT", () => told.abort()).once("SIGTERM", () => told.abort());
      const stopped = new Promise<void>((resolve) => told.signal.addEventListener("abort", () => resolve()));
      await using folder = await temporaryFolder();
      await using server = await start(folder.path);
      const desk = await Promise.race([stopped, show(server)]);
      if (desk && !once) await Promise.race([stopped, invite(server, desk)]);
      if (!once) await follow(server.app, told.signal);
    });
}

async function show(server: Server): Promise<Desk> {
  say(`Mailwright ${VERSION}: a mail comes in, a model answers, a signed reply goes out.`, "");
  const desk = await walkThrough(server, (label, text) => say(line(label, text)));
  say("", "The reply:", "", ...quoted(desk.reply), "");
  return desk;
}

async function invite(server: Server, desk: Desk): Promise<void> {
  say(...invitation(server, desk), ...(await ollamaOffer()));
}

async function follow(app: App, told: AbortSignal): Promise<void> {
  say(
    "The server keeps running, and answers to your mails show up below. Ctrl-C ends it and removes its folder.",
  );
  for await (const reply of repliesTo(app, told)) say("", ...quoted(reply));
}

function start(dir: string): Promise<Server> {
  const config = defaultConfig({
    data: { dir },
    server: { listen: "127.0.0.1:0" },
    smtp: {
      listen: "127.0.0.1:0",
      domain: DEMO_DOMAIN,
      hostname: DEMO_DOMAIN,
      trusted_networks: ["127.0.0.1/32"],
      early_talker_ms: 0,
    },
    outbound: { mode: "capture" },
  });
  return serve(config, { log: createLog({ level: "error", format: "text" }) });
}

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "mailwright-demo-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function invitation({ http, smtp }: Server, { address, owner, key }: Desk): string[] {
  const [host, port] = (smtp ?? "").split(":");
  const body = JSON.stringify({ instruction: INSTRUCTION, content: "The bridge opens on 3 May at 10:30." });
  return [
    "Try it by hand:",
    "",
    line("address", address),
    line("API key", key),
    "",
    `curl -sS ${http}/v1/messages -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '${body}'`,
    "",
    `swaks --server ${host} --port ${port} --from ${owner} --to ${address} --header 'Subject: Hello' --body 'What can you do?'`,
    "",
  ];
}

async function ollamaOffer(): Promise<string[]> {
  const lines = await ollamaConfig(OLLAMA_URL);
  if (!lines) return [];
  return [
    "An Ollama is running on this machine. With these lines in config.toml `mailwright serve` answers with it:",
    "",
    ...lines.map((text) => `  ${text}`),
    "",
  ];
}

function say(...lines: string[]): void {
  console.log(lines.join("\n"));
}

/** Returns a line with a label, which is green on a terminal. */
function line(label: string, text: string): string {
  const wrapped = Bun.wrapAnsi(text, TEXT_WIDTH).replaceAll("\n", `\n${" ".repeat(LABEL_WIDTH + 2)}`);
  return `  ${styleText("green", label.padEnd(LABEL_WIDTH), { stream: process.stdout })}${wrapped}`;
}

function quoted(text: string): string[] {
  const bar = styleText("dim", "|", { stream: process.stdout });
  return Bun.wrapAnsi(text, TEXT_WIDTH)
    .split("\n")
    .map((row) => `  ${bar} ${row}`.trimEnd());
}
