import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFile, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { version } from "../package.json";
import { acceptedSignatures } from "../src/cli/demo-signatures.ts";
import { createResolver } from "../src/net/dns.ts";
import { createSender } from "../src/mail/sending/send.ts";
import { builtBinary } from "./support/binary.ts";
import { keysOf } from "./support/keys.ts";
import { type MailParts, rawMail } from "./support/mails.ts";
import { type SmtpSink, startSmtpSink } from "./support/smtp-sink.ts";

const ROOT = join(import.meta.dir, "..");
const BINARY = await builtBinary();
/** The checkpoint thread does not begin below this. */
const MIN_LOG_BYTES = 4 * 1_048_576;

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "mailwright-binary-"));
});

afterAll(() => rm(dir, { recursive: true, force: true }));

describe("the build", () => {
  test("refuses a platform it does not know, and names those it does", async () => {
    const built = runBuild(["--target", "amiga"]);
    expect(await built.exited).toBe(1);
    expect(await new Response(built.stderr).text()).toMatch(
      /"amiga" cannot be built; choose linux-x64, .*musl/,
    );
  });

  test("says what it lacks when the runtime of another platform cannot be downloaded", async () => {
    const nowhere = "http://127.0.0.1:9";
    const target = process.platform === "darwin" ? "linux-arm64" : "darwin-arm64";
    const built = runBuild(["--target", target, "--outfile", join(dir, "other")], {
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      BUN_INSTALL_CACHE_DIR: await emptyFolder(),
    });
    expect(await built.exited).toBe(1);
    expect(await new Response(built.stderr).text()).toContain(`The build for ${target} failed. For another`);
  }, 60_000);
});

describe("the binary, in an empty folder with an empty environment", () => {
  test("knows its version", async () => {
    expect(await run(await emptyFolder(), ["version"])).toEqual({ code: 0, out: `${version}\n`, err: "" });
  });

  test("has the example configuration inside, and finds it valid", async () => {
    const folder = await emptyFolder();
    const { code, out } = await run(folder, ["config", "example"]);
    expect(code).toBe(0);
    await writeFile(join(folder, "config.toml"), out);
    expect((await run(folder, ["config", "check"])).out).toContain(
      "Configuration is valid. File: config.toml",
    );
  });

  test("runs the whole demo and writes nothing into the folder", async () => {
    const folder = await emptyFolder();
    const { code, out, err } = await run(folder, ["demo", "--once"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain("checked as a receiver would: both pass");
    expect(await readdir(folder)).toEqual([]);
  }, 20_000);

  test("reads neither .env nor bunfig.toml of the folder it is started in", async () => {
    const folder = await emptyFolder();
    await writeFile(join(folder, ".env"), "MAILWRIGHT_SMTP__DOMAIN=env.example\nMAILWRIGHT_NO_SUCH__KEY=1\n");
    await writeFile(join(folder, "bunfig.toml"), 'preload = ["./evil.ts"]\n');
    await writeFile(join(folder, "evil.ts"), 'console.log("evil"); process.exit(7);\n');
    const { code, out } = await run(folder, ["config", "dump", "--json"]);
    expect(code).toBe(0);
    expect((JSON.parse(out) as { smtp: { domain: string } }).smtp.domain).not.toBe("env.example");
  });

  test("takes a mail with a file, answers it signed, and stops at SIGTERM", async () => {
    await using sink = await startSmtpSink();
    const folder = await configuredFolder(sink);
    const key = await makeAccount(folder);
    await using server = await startServer(folder);
    const address = await makeInbox(server, key);
    const content = `Eggs cost 3 francs. ${"They come from a farm nearby. ".repeat(1_000)}`;
    const attachments = [{ filename: "list.txt", content_type: "text/plain", content }];
    expect(await mail(server, address, { text: "How much are eggs?", attachments })).toBe("sent");
    const reply = (await sink.next()).raw;
    // The parser runs in a process of its own, and so does what reads files: without them no file would be seen.
    expect(reply.toString()).toContain("list.txt");
    const keys = await keysOf(join(folder, "data"));
    expect(await acceptedSignatures(reply, "mw.test", keys)).toEqual(["rsa", "ed25519"]);
    expect((await run(folder, ["healthcheck", "--url", server.http])).out).toBe("ready\n");
    server.process.kill("SIGTERM");
    expect(await server.process.exited).toBe(0);
  }, 20_000);

  test("goes on reading mail with what it was started with while another binary is put in its place", async () => {
    await using sink = await startSmtpSink();
    const folder = await configuredFolder(sink);
    const key = await makeAccount(folder);
    const own = join(folder, "mailwright");
    await copyFile(BINARY, own);
    await using server = await startServer(folder, own);
    const address = await makeInbox(server, key);
    await rm(own);
    await copyFile("/bin/false", own);
    const attachments = [
      { filename: "list.txt", content_type: "text/plain", content: "Eggs cost 3 francs." },
    ];
    expect(await mail(server, address, { text: "How much are eggs?", attachments })).toBe("sent");
    expect((await sink.next()).raw.toString()).toContain("list.txt");
  }, 20_000);

  test("has the pages of the API reference inside, with all that they load", async () => {
    await using sink = await startSmtpSink();
    await using server = await startServer(await configuredFolder(sink));
    for (const path of ["/docs", "/docs/errors"]) {
      const page = await (await fetch(server.http + path)).text();
      const links = [...page.matchAll(/(?:src|href)="(\/[^"#]+)"/g)].map(([, link = ""]) => link);
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) {
        const answer = await fetch(server.http + link);
        expect([link, answer.status, (await answer.bytes()).length > 300]).toEqual([link, 200, true]);
      }
    }
    const script = await fetch(`${server.http}/docs/swagger-ui-bundle.js`);
    expect(await script.text()).toContain("SwaggerUIBundle");
  }, 20_000);

  test("has the dashboard inside, packed, and sends nobody what he has", async () => {
    await using sink = await startSmtpSink();
    await using server = await startServer(await configuredFolder(sink));
    const ask = (path: string, headers: Record<string, string> = {}) =>
      fetch(server.http + path, { headers });
    const page = await ask("/app/some/page/of/it");
    const html = await page.text();
    expect(html).toContain("<title>Mailwright</title>");
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const script = /src="(\/app\/assets\/[^"]+\.js)"/.exec(html)?.[1] ?? "";
    const plain = await ask(script, { "accept-encoding": "identity" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    const text = await plain.text();
    for (const packing of ["br", "gzip"]) {
      const packed = await ask(script, { "accept-encoding": packing });
      expect(packed.headers.get("content-encoding")).toBe(packing);
      expect(packed.headers.get("cache-control")).toContain("immutable");
      expect(await packed.text()).toBe(text);
    }
    for (const { headers } of [page, plain]) expect(headers.get("vary")).toContain("Accept-Encoding");
    const known = await ask(script, { "if-none-match": plain.headers.get("etag") ?? "" });
    expect([known.status, await known.text()]).toEqual([304, ""]);
  }, 20_000);

  test("moves the log into the database on the checkpoint thread while it runs", async () => {
    await using sink = await startSmtpSink();
    const folder = await configuredFolder(sink);
    const key = await makeAccount(folder);
    await using server = await startServer(folder);
    await makeInbox(server, key);
    const database = join(folder, "data", "mailwright.db");
    const before = (await stat(database)).size;
    const content = "The bridge opens on 3 May. ".repeat(18_000);
    const written = 12 * content.length;
    for (let calls = 0; calls < 12; calls++)
      await post(server, key, { path: "/v1/messages", body: { instruction: "When?", content, async: true } });
    // Nothing announces a checkpoint; the file grows when one has been made.
    const deadline = Date.now() + 10_000;
    let size = before;
    while (size < before + MIN_LOG_BYTES && Date.now() < deadline) {
      await Bun.sleep(50);
      size = (await stat(database)).size;
    }
    expect(written).toBeGreaterThan(MIN_LOG_BYTES);
    expect(size).toBeGreaterThanOrEqual(before + MIN_LOG_BYTES);
  }, 20_000);
});

function runBuild(args: string[], env: Record<string, string> = {}) {
  return Bun.spawn([process.execPath, join(ROOT, "scripts/build.ts"), ...args], {
    env: { ...process.env, ...env },
    stdout: "ignore",
    stderr: "pipe",
  });
}

async function emptyFolder(): Promise<string> {
  return mkdtemp(join(dir, "run-"));
}

async function run(cwd: string, args: string[]) {
  const process = Bun.spawn([BINARY, ...args], {
    cwd,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([
    new Response(process.stdout).text(),
    new Response(process.stderr).text(),
  ]);
  return { code: await process.exited, out, err };
}

/** Everything on free ports, replies to the sink, mail from this machine believed. */
async function configuredFolder(sink: SmtpSink): Promise<string> {
  const folder = await emptyFolder();
  await mkdir(join(folder, "data"));
  const config = `
[server]
listen = "127.0.0.1:0"
[smtp]
listen = "127.0.0.1:0"
domain = "mw.test"
hostname = "mx.mw.test"
trusted_networks = ["127.0.0.1/32"]
[outbound]
mode = "relay"
relay_url = "smtp://${sink.host}:${sink.port}"
[llm]
kind = "demo"
[log]
format = "json"
`;
  await writeFile(join(folder, "config.toml"), config);
  return folder;
}

async function makeAccount(folder: string): Promise<string> {
  const { out } = await run(folder, ["user", "create", "ann@example.com", "--api-key", "--json"]);
  return (JSON.parse(out) as { api_key: string }).api_key;
}

interface Running extends AsyncDisposable {
  process: Bun.Subprocess;
  http: string;
  smtp: string;
}

async function startServer(folder: string, binary = BINARY): Promise<Running> {
  const process = Bun.spawn([binary, "serve"], {
    cwd: folder,
    env: {},
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = process.stdout.getReader();
  const decoder = new TextDecoder();
  let log = "";
  while (!log.includes('"msg":"ready"')) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The server ended before it was ready: ${log}`);
    log += decoder.decode(value);
  }
  const line = log.split("\n").find((row) => row.includes('"msg":"ready"')) ?? "";
  const { http, smtp } = JSON.parse(line) as { http: string; smtp: string };
  return {
    process,
    http,
    smtp,
    async [Symbol.asyncDispose]() {
      process.kill("SIGKILL");
      await process.exited;
    },
  };
}

async function makeInbox(server: Running, key: string): Promise<string> {
  return (await post<{ address: string }>(server, key, { path: "/inboxes", body: {} })).address;
}

async function post<T>({ http }: Running, key: string, call: { path: string; body: object }): Promise<T> {
  const answer = await fetch(http + call.path, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(call.body),
  });
  expect([201, 202]).toContain(answer.status);
  return (await answer.json()) as T;
}

async function mail({ smtp }: Running, to: string, parts: MailParts): Promise<string> {
  await using sender = createSender({
    mode: "relay",
    relay_url: `smtp://${smtp}`,
    hostname: "laptop.example.com",
    resolver: createResolver({ servers: ["127.0.0.1:9"] }),
    egress_allow: [],
  });
  const raw = rawMail({ from: "ann@example.com", to, ...parts });
  const outcome = await sender.send({ raw, envelope_from: "ann@example.com", envelope_to: to });
  return outcome.status === "sent" ? "sent" : outcome.response;
}
