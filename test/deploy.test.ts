import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { splitListen } from "../src/config/forms.ts";
import { cautionsOf } from "../src/operation/admin/warnings.ts";
import { loadConfig } from "../src/config/config.ts";
import { memoryDisk, whyNoMounts } from "./faults/disks.ts";
import { house } from "./faults/house.ts";

const DEPLOY = join(import.meta.dir, "../deploy");
/** What a stop may take: calls that wait, their answers, work in progress, what was told to stop and words about mails. */
const LONGEST_STOP_SECONDS = 5 + 2 + 20 + 5 + 40;
const ANALYZE = Bun.which("systemd-analyze");
const PYTHON = Bun.which("python3");
const no_tmpfs = await whyNoMounts("tmpfs");

if (!ANALYZE) console.log("The unit is not looked at by systemd itself: apt-get install systemd");
if (no_tmpfs !== undefined) console.log(`Nothing is told of a full disk: ${no_tmpfs}`);
if (!PYTHON) console.log("Signs of life are not listened to: apt-get install python3");

describe("the compose file", () => {
  test("builds our image, publishes the ports that its settings listen on, and keeps the data on a volume", async () => {
    const { services, volumes } = await compose();
    const { mailwright } = services;
    const config = loadConfig({ env: settled(mailwright.environment), cwd: tmpdir() });
    const inside = [config.smtp.listen, config.acme.listen, config.server.listen].map(
      (listen) => splitListen(listen)?.port,
    );
    expect(mailwright.ports.map((port) => Number(port.split(":")[1]))).toEqual(inside as number[]);
    expect(mailwright.ports.map((port) => Number(port.split(":")[0]))).toEqual([25, 80, 443]);
    expect([config.server.tls, config.auth.registration]).toEqual(["acme", "closed"]);
    expect(existsSync(join(DEPLOY, mailwright.build.context, "Dockerfile"))).toBe(true);
    expect(mailwright.volumes).toEqual(["data:/data", "programs:/programs"]);
    expect(Object.keys(volumes)).toEqual(["data", "programs"]);
  });

  test("takes the further settings that docs/operation.md shows, which reach a model on the host", async () => {
    const page = await Bun.file(join(DEPLOY, "../docs/operation.md")).text();
    const override = Bun.YAML.parse(/^```yaml\n(.*?)^```$/ms.exec(page)?.[1] ?? "") as Compose;
    const { environment, extra_hosts } = override.services.mailwright;
    const env = settled({ ...(await compose()).services.mailwright.environment, ...environment });
    const { llm, egress } = loadConfig({ env, cwd: tmpdir() });
    const host = URL.parse(llm.base_url)?.hostname;
    expect(egress.allow).toEqual([host ?? ""]);
    expect(extra_hosts).toEqual([`${host}:host-gateway`]);
  });

  test("behind a proxy of its own, as docs/tls.md shows it, listens for that alone", async () => {
    const page = await Bun.file(join(DEPLOY, "../docs/tls.md")).text();
    const [, block = ""] = /^```yaml\n(services:.*?)^```$/ms.exec(page) ?? [];
    const override = Bun.YAML.parse(block.replaceAll("!override", "")) as Compose;
    const { environment, ports, labels } = override.services
      .mailwright as Compose["services"]["mailwright"] & {
      labels: string[];
    };
    const env = settled({ ...(await compose()).services.mailwright.environment, ...environment });
    const { server } = loadConfig({ env, cwd: tmpdir() });
    expect([server.tls, ports]).toEqual(["off", ["25:2525"]]);
    expect(labels.at(-1)).toEndWith(`server.port=${splitListen(server.listen)?.port}`);
  });

  test("asks the healthcheck command, and lets work in progress end", async () => {
    const { mailwright } = (await compose()).services;
    expect(mailwright.healthcheck.test).toEqual(["CMD", "mailwright", "healthcheck"]);
    expect(Number.parseInt(mailwright.stop_grace_period, 10)).toBeGreaterThan(LONGEST_STOP_SECONDS);
  });
});

test.each(["README.md", "docs/going-live.md", "docs/operation.md"])(
  "the configuration of a public server in %s answers at 25 and 443, with a certificate",
  async (page) => {
    const text = await Bun.file(join(DEPLOY, "..", page)).text();
    const blocks = Array.from(text.matchAll(/^( *)```toml\n(.*?)^\1```$/gms), ([, , block]) => block ?? "");
    const folder = await mkdtemp(join(tmpdir(), "mailwright-public-"));
    const file = join(folder, "config.toml");
    try {
      await Bun.write(
        file,
        blocks.find((block) => block.includes("[smtp]") && /^ *hostname/m.test(block)) ?? "",
      );
      const config = loadConfig({ file, env: {}, cwd: folder });
      expect([config.smtp.listen, config.server.listen]).toEqual(["0.0.0.0:25", "0.0.0.0:443"]);
      expect([config.server.tls, config.acme.listen]).toEqual(["acme", "0.0.0.0:80"]);
      expect([config.auth.registration, config.data.dir]).toEqual(["closed", "/var/lib/mailwright"]);
      expect(cautionsOf(config)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
);

describe("the systemd unit", () => {
  test("sets only settings that there are, waits long enough, and leaves the runtime its compiler", async () => {
    const unit = await Bun.file(join(DEPLOY, "mailwright.service")).text();
    const value = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];
    const env = Object.fromEntries(
      [...unit.matchAll(/^Environment=(MAILWRIGHT_\w+)=(.*)$/gm)].map(([, name = "", set = ""]) => [
        name,
        set,
      ]),
    );
    const { data, mcp } = loadConfig({ env, cwd: tmpdir() });
    expect(data.dir).toBe("/var/lib/mailwright");
    // Made by systemd, and the only other place that may be written.
    expect([mcp.dir, value("CacheDirectory"), value("CacheDirectoryMode")]).toEqual([
      "/var/cache/mailwright",
      "mailwright",
      "0700",
    ]);
    expect([value("Type"), value("StateDirectory"), value("NotifyAccess")]).toEqual([
      "notify",
      "mailwright",
      "main",
    ]);
    expect(Number(value("TimeoutStopSec"))).toBeGreaterThan(LONGEST_STOP_SECONDS);
    expect(value("MemoryDenyWriteExecute")).toBeUndefined();
    expect(value("CapabilityBoundingSet")).toBe("CAP_NET_BIND_SERVICE");
  });

  test.skipIf(!ANALYZE)("is one that systemd understands, and calls well protected", async () => {
    const folder = await mkdtemp(join(tmpdir(), "mailwright-unit-"));
    const path = join(folder, "mailwright.service");
    const unit = await Bun.file(join(DEPLOY, "mailwright.service")).text();
    // It wants the program to be there.
    await Bun.write(path, unit.replaceAll("/usr/local/bin/mailwright", "/bin/true"));
    try {
      expect(await analyze("verify", path)).toEqual({ code: 0, said: "" });
      // Of 100: without any protection it would be 96.
      const { code } = await analyze("security", "--offline=true", "--threshold=20", path);
      expect(code).toBe(0);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe.skipIf(!PYTHON)("who started the server", () => {
  test("hears when it is ready, that it is well, what is wrong, and that it stops", async () => {
    for (const at_name of [false, true]) {
      await using at = await house();
      const path = at_name ? `@mailwright-${process.pid}` : join(at.dir, "../notify");
      await using manager = await listenAs(path);
      await using server = await at.start({ NOTIFY_SOCKET: path, WATCHDOG_USEC: "200000" });
      expect(await manager.next()).toBe("READY=1 STATUS=Taking mail");
      expect(await manager.next()).toBe("WATCHDOG=1 STATUS=Taking mail");
      expect(await manager.next()).toBe("WATCHDOG=1 STATUS=Taking mail");
      server.kill("SIGTERM");
      while ((await manager.next()) !== "STOPPING=1 STATUS=Finishing the work in progress");
      expect(await server.exited).toBe(0);
    }
  });

  test("hears nothing from a server that stands still", async () => {
    await using at = await house();
    const path = join(at.dir, "../notify");
    await using manager = await listenAs(path);
    await using server = await at.start({ NOTIFY_SOCKET: path, WATCHDOG_USEC: "200000" });
    expect(await manager.next()).toStartWith("READY=1");
    server.kill("SIGSTOP");
    await manager.silence(600);
    server.kill("SIGCONT");
    expect(await manager.next()).toStartWith("WATCHDOG=1");
  });

  test.skipIf(no_tmpfs !== undefined)(
    "hears that the disk is nearly full, and goes on hearing of life",
    async () => {
      // Just enough: the server wants 64 MB to be free.
      await using disk = await memoryDisk(80);
      await using at = await house({}, join(disk.path, "data"));
      const path = join(disk.path, "notify");
      await using manager = await listenAs(path);
      await using server = await at.start({ NOTIFY_SOCKET: path, WATCHDOG_USEC: "200000" });
      expect(server.http).toStartWith("http");
      await writeFile(join(disk.path, "ballast"), Buffer.alloc(30 * 1_048_576));
      while (!/^WATCHDOG=1 STATUS=only \d+ MB are free in /.test(await manager.next()));
      await rm(join(disk.path, "ballast"));
      while ((await manager.next()) !== "WATCHDOG=1 STATUS=Taking mail");
    },
  );

  test("may say reload where there is nothing to read again, and the server goes on", async () => {
    await using at = await house();
    const path = join(at.dir, "../notify");
    await using manager = await listenAs(path);
    await using server = await at.start({ NOTIFY_SOCKET: path });
    expect(await manager.next()).toStartWith("READY=1");
    server.kill("SIGHUP");
    const ended = server.exited.then(() => true);
    const said = until(async () => server.log().includes("there is nothing to reload")).then(() => false);
    expect(await Promise.race([ended, said])).toBe(false);
    expect((await fetch(`${server.http}/livez`)).status).toBe(200);
  });

  test("may be somebody who has gone, or was never there", async () => {
    await using at = await house();
    await using server = await at.start({ NOTIFY_SOCKET: join(at.dir, "nobody"), WATCHDOG_USEC: "200000" });
    expect((await fetch(`${server.http}/livez`)).status).toBe(200);
    await using other = await house();
    await using named = await other.start({ NOTIFY_SOCKET: `/${"x".repeat(200)}` });
    await until(() => named.log().includes("systemd cannot be told that the server is up"));
    expect((await fetch(`${named.http}/livez`)).status).toBe(200);
  });
});

interface Compose {
  services: {
    mailwright: {
      build: { context: string };
      ports: string[];
      environment: Record<string, string>;
      volumes: string[];
      extra_hosts?: string[];
      healthcheck: { test: string[] };
      stop_grace_period: string;
    };
  };
  volumes: Record<string, unknown>;
}

async function compose(): Promise<Compose> {
  return Bun.YAML.parse(await Bun.file(join(DEPLOY, "compose.yaml")).text()) as Compose;
}

/** As the engine fills in the names of `.env`. */
function settled(environment: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [
      name,
      value
        .replaceAll(/\$\{MAIL_HOST[^}]*\}/g, "mx.example.org")
        .replaceAll(/\$\{MAIL_DOMAIN[^}]*\}/g, "mail.example.org"),
    ]),
  );
}

async function analyze(...words: string[]): Promise<{ code: number; said: string }> {
  const child = Bun.spawn([ANALYZE ?? "", ...words], { stdout: "pipe", stderr: "pipe" });
  const [, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, said };
}

/** One line for each datagram. */
const LISTENER = `
import socket, sys
path = sys.argv[1]
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
end.bind("\\0" + path[1:] if path.startswith("@") else path)
print("listening", flush=True)
while True:
    print(" ".join(end.recv(4096).decode().splitlines()), flush=True)
`;
import { until } from "./support/until.ts";

/** A datagram socket, which the runtime has none of. */
async function listenAs(path: string) {
  const child = Bun.spawn([PYTHON ?? "", "-c", LISTENER, path], { stdout: "pipe" });
  const lines = readLines(child.stdout);
  const next = async (): Promise<string> => (await lines.next()).value ?? "";
  expect(await next()).toBe("listening");
  let waiting: Promise<string> | undefined;
  return {
    next() {
      const line = waiting ?? next();
      waiting = undefined;
      return line;
    },
    /** What was on its way already may still come. */
    async silence(ms: number): Promise<void> {
      for (;;) {
        waiting ??= next();
        const heard = await Promise.race([waiting, Bun.sleep(ms).then(() => null)]);
        if (heard === null) return;
        waiting = undefined;
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
