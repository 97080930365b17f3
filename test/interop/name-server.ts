import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createResolver, dnsErrorCode } from "../../src/net/dns.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

const START_MS = 10_000;
/** RFC 1035 §3.3: the longest string inside of a TXT record. */
const MAX_STRING_OCTETS = 255;

export interface ZoneRecord {
  type: "TXT" | "MX";
  /** Without the dot at the end. */
  name: string;
  /** The value of a record; that of an MX record has its priority in front. */
  value: string;
}

export interface NameServer extends AsyncDisposable {
  /** `127.0.0.1:port`, for `dns.servers`. */
  address: string;
  /** Ends it, and starts it with other records on the same port. */
  serve(records: ZoneRecord[]): Promise<void>;
  end(): Promise<void>;
}

export const hasDnsmasq = Bun.which("/usr/sbin/dnsmasq") !== null;
export const hasNamed = Bun.which("/usr/sbin/named") !== null;

/** BIND with one zone, `acme.test`, of which it is the authority; `broken.test` is a zone that it cannot load. */
export async function startNamed(): Promise<NameServer> {
  return startServer({
    command: (dir) => ["/usr/sbin/named", "-g", "-c", join(dir, "named.conf")],
    files: (records, { dir, port }) => ({
      "named.conf": namedConf(dir, port),
      "acme.zone": zoneFile(records),
      "broken.zone": "this is no zone\n",
    }),
  });
}

/** dnsmasq with records of its own; it asks nobody else. */
export async function startDnsmasq(): Promise<NameServer> {
  return startServer({
    command: (dir) => [
      "/usr/sbin/dnsmasq",
      "--keep-in-foreground",
      `--conf-file=${join(dir, "dnsmasq.conf")}`,
    ],
    files: (records, { port }) => ({ "dnsmasq.conf": dnsmasqConf(records, port) }),
  });
}

interface Program {
  command: (dir: string) => string[];
  /** File names and what is in them. */
  files: (records: ZoneRecord[], place: { dir: string; port: number }) => Record<string, string>;
}

async function startServer(program: Program): Promise<NameServer> {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-dns-"));
  await chmod(dir, 0o755);
  const port = await freePort();
  const address = `127.0.0.1:${port}`;
  let end = async (): Promise<void> => {};
  const serve = async (records: ZoneRecord[]): Promise<void> => {
    await end();
    for (const [name, text] of Object.entries(program.files(records, { dir, port })))
      await writeFile(join(dir, name), text);
    const run = Bun.spawn(program.command(dir), { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    const log = new Response(run.stderr).text();
    end = async () => {
      run.kill();
      await run.exited;
    };
    await until(
      () => answers(address),
      START_MS,
      async () => {
        await end();
        return `the name server does not start: ${await log}`;
      },
    );
  };
  return {
    address,
    serve,
    end: () => end(),
    async [Symbol.asyncDispose]() {
      await end();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Any answer will do. */
async function answers(address: string): Promise<boolean> {
  const resolve = createResolver({ servers: [address], timeout_ms: 200 });
  const code = await resolve("acme.test", "NS").then(() => undefined, dnsErrorCode);
  return code !== "ETIMEOUT" && code !== "ESERVFAIL";
}

function namedConf(dir: string, port: number): string {
  return `
options {
  directory "${dir}";
  pid-file "${dir}/named.pid";
  session-keyfile "${dir}/session.key";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no;
  dnssec-validation no;
  allow-query { any; };
};
controls { };
zone "acme.test" { type primary; file "${dir}/acme.zone"; };
zone "broken.test" { type primary; file "${dir}/broken.zone"; };
`;
}

function zoneFile(records: ZoneRecord[]): string {
  const lines = records.map(
    ({ type, name, value }) => `${name}. ${type} ${type === "MX" ? `${value}.` : strings(value)}`,
  );
  return [
    "$TTL 60",
    "acme.test. SOA ns.acme.test. root.acme.test. 1 60 60 60 60",
    "acme.test. NS ns.acme.test.",
    "ns.acme.test. A 127.0.0.1",
    "empty.acme.test. A 192.0.2.1",
    ...lines,
    "",
  ].join("\n");
}

/** In its quotes, cut where a string may be no longer. */
function strings(text: string): string {
  const parts = text.match(new RegExp(`.{1,${MAX_STRING_OCTETS}}`, "g")) ?? [""];
  return parts.map((part) => `"${part.replaceAll(/["\\]/g, "\\$&")}"`).join(" ");
}

function dnsmasqConf(records: ZoneRecord[], port: number): string {
  const lines = records.map(({ type, name, value }) => {
    const [priority = "", host = ""] = value.split(" ");
    return type === "MX"
      ? `mx-host=${name},${host},${priority}`
      : `txt-record=${name},${strings(value).replaceAll('" "', '","')}`;
  });
  return [
    `port=${port}`,
    "listen-address=127.0.0.1",
    "bind-interfaces",
    "no-resolv",
    "no-hosts",
    "user=root",
    "pid-file",
    "local=/test/",
    "auth-ttl=60",
    "host-record=empty.acme.test,192.0.2.1",
    ...lines,
    "",
  ].join("\n");
}
