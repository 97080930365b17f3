import { describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { acceptedSignatures } from "../src/cli/demo-signatures.ts";
import { walkThrough } from "../src/cli/demo-steps.ts";
import { ollamaConfig } from "../src/cli/ollama.ts";
import { type ConfigOverrides, defaultConfig } from "../src/config/config.ts";
import { createLog } from "../src/lib/log.ts";
import { signMail } from "../src/mail/writing/dkim.ts";
import { serve } from "../src/serve.ts";
import { testKeys } from "./support/keys.ts";
import { rawMail } from "./support/mails.ts";

const MAIN = join(import.meta.dir, "../src/main.ts");

describe("mailwright demo", () => {
  test("--once tells every step, ends with 0 and leaves nothing behind", async () => {
    await using folder = await temporaryFolder();
    await using demo = startDemo(folder.path, ["--once"]);
    const output = await new Response(demo.process.stdout).text();
    expect(await demo.process.exited).toBe(0);
    for (const label of ["started", "inbox", "accepted", "authenticated", "routed", "replied", "signed"])
      expect(output).toMatch(new RegExp(`^  ${label} +\\S`, "m"));
    expect(output).toContain("rsa and ed25519");
    expect(output).toContain("> The numbers are in: 412 ships called at the harbour");
    // As a mail program shows it, and not as the model wrote it.
    expect(output).toContain("Instruction: ");
    expect(output).not.toContain("**Instruction:**");
    expect(output).toMatch(/^ {2}\| -- $|^ {2}\| --$/m);
    expect(output).not.toContain("\u001B");
    // By then there is no server to try it on.
    expect(output).not.toContain("curl");
    expect(await readdir(folder.path)).toEqual([]);
  }, 60_000);

  test("keeps running for the call and the mail that it proposes, until Ctrl-C", async () => {
    await using folder = await temporaryFolder();
    await using demo = startDemo(folder.path, []);
    const shown = await demo.until("Ctrl-C ends it");
    const called = Bun.spawn(["sh", "-c", lineOf(shown, "curl ")], { stderr: "ignore" });
    expect(await new Response(called.stdout).json()).toMatchObject({ status: "done", error: null });
    if (Bun.which("swaks") === null) console.log("skipped: apt-get install --no-install-recommends swaks");
    else {
      const sent = Bun.spawn(["sh", "-c", lineOf(shown, "swaks ")], { stdin: "ignore", stdout: "ignore" });
      expect(await sent.exited).toBe(0);
      await demo.until("Subject: Re: Hello");
      await demo.until("Instruction: What can you do?");
    }
    demo.process.kill("SIGINT");
    expect(await demo.process.exited).toBe(0);
    expect(await readdir(folder.path)).toEqual([]);
  }, 60_000);

  test("ends with 1 and a sentence when it cannot begin", async () => {
    await using demo = startDemo("/nonexistent/of/ours", ["--once"]);
    expect(await demo.process.exited).toBe(1);
    expect(await new Response(demo.process.stderr).text()).toContain("no such file or directory");
  });
});

describe("the steps", () => {
  test("fail at the mail when the server does not believe the sender", async () => {
    await using server = await demoServer({
      smtp: { trusted_networks: [] },
      dns: { servers: ["127.0.0.1:9"] },
    });
    expect(await failure(server)).toContain("The mail was not accepted");
  }, 30_000);

  test("fail at the reply when it stays in the queue", async () => {
    await using server = await demoServer({ outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:9" } });
    expect(await failure(server)).toMatch(/There is no reply; its state is "(queued|deferred)"/);
  });

  test("fail at the signatures when they are not of the demo's own domain", async () => {
    await using server = await demoServer({ smtp: { domain: "other.test" } });
    expect(await failure(server)).toContain("DKIM signature by rsa and ed25519");
  });
});

describe("acceptedSignatures", () => {
  test("names each key whose signature holds, and none for a mail that was changed", async () => {
    const keys = await testKeys();
    const mail = rawMail({ from: "box@mw.test", text: "The answer is 42.\r\n" });
    const raw = await signMail(mail, "mw.test", keys);
    expect(await acceptedSignatures(raw, "mw.test", keys)).toEqual(["rsa", "ed25519"]);
    const changed = Buffer.from(raw.toString().replace("answer is 42", "answer is 43"));
    expect(await acceptedSignatures(changed, "mw.test", keys)).toEqual([]);
    expect(await acceptedSignatures(mail, "mw.test", keys)).toEqual([]);
  });

  test("does not let one good signature stand for both", async () => {
    const keys = await testKeys();
    const mail = rawMail({ from: "box@mw.test", text: "The answer is 42.\r\n" });
    const raw = await signMail(mail, "mw.test", keys.slice(0, 1));
    expect(await acceptedSignatures(raw, "mw.test", keys)).toEqual(["rsa"]);
  });
});

describe("ollamaConfig", () => {
  test("proposes the first model that is installed", async () => {
    using ollama = Bun.serve({
      port: 0,
      fetch: () => Response.json({ models: [{ name: "qwen3:8b" }, { name: "llama3.2" }] }),
    });
    const lines = ["[llm]", 'kind = "ollama"', 'model = "qwen3:8b"'];
    expect(await ollamaConfig(`http://127.0.0.1:${ollama.port}`)).toEqual(lines);
  });

  test("says how to get a model where there is none", async () => {
    using ollama = Bun.serve({ port: 0, fetch: () => Response.json({ models: [] }) });
    const lines = await ollamaConfig(`http://127.0.0.1:${ollama.port}`);
    expect(lines?.[0]).toContain("ollama pull llama3.2");
  });

  test("proposes nothing where nothing, or something else, answers", async () => {
    using other = Bun.serve({ port: 0, fetch: () => new Response("hello") });
    expect(await ollamaConfig(`http://127.0.0.1:${other.port}`)).toBeUndefined();
    using silent = Bun.serve({ port: 0, fetch: () => new Promise<Response>(() => {}) });
    expect(await ollamaConfig(`http://127.0.0.1:${silent.port}`)).toBeUndefined();
  });
});

function startDemo(folder: string, args: string[]) {
  const process = Bun.spawn([Bun.argv[0] ?? "bun", MAIN, "demo", ...args], {
    env: { TMPDIR: folder, PATH: Bun.env["PATH"] ?? "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let shown = "";
  return {
    process,
    /** All that was printed, once `text` is in it. */
    async until(text: string): Promise<string> {
      const decoder = new TextDecoder();
      const reader = process.stdout.getReader();
      for (let end = false; !shown.includes(text) && !end;) {
        const piece = await reader.read();
        end = piece.done;
        shown += decoder.decode(piece.value);
      }
      reader.releaseLock();
      expect(shown).toContain(text);
      return shown;
    },
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await process.exited;
    },
  };
}

async function demoServer(overrides: ConfigOverrides) {
  const folder = await temporaryFolder();
  const config = defaultConfig({
    ...overrides,
    data: { dir: folder.path },
    server: { listen: "127.0.0.1:0" },
    smtp: {
      listen: "127.0.0.1:0",
      domain: "mailwright.test",
      hostname: "mailwright.test",
      trusted_networks: ["127.0.0.1/32"],
      early_talker_ms: 0,
      ...overrides.smtp,
    },
  });
  const server = await serve(config, { log: createLog({ level: "silent", format: "text" }) });
  return {
    ...server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

function failure(server: Parameters<typeof walkThrough>[0]): Promise<string> {
  return walkThrough(server, () => {}).then(
    () => "nothing failed",
    (error: Error) => error.message,
  );
}

function lineOf(text: string, start: string): string {
  const line = text.split("\n").find((row) => row.startsWith(start));
  return line ?? `echo "no line starts with ${start}" >&2; exit 1`;
}

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "mailwright-test-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
