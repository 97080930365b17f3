import { randomInt } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createResolver } from "../../src/net/dns.ts";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

/** What the hosts of the net are numbered. */
const HOSTS = { us: 25, postfix: 2, exim: 3, resolver: 53 } as const;

const NAMED = "/usr/sbin/named";
const DNSMASQ = "/usr/sbin/dnsmasq";
const START_MS = 10_000;

export interface PrivateNet extends AsyncDisposable {
  address(host: keyof typeof HOSTS): string;
  /** For `dns.servers`. */
  name_server: string;
  /** Before the command of a program whose name server is to be that of the net. */
  prefix: string[];
}

/** Its programs listen on ports of the system and get an `/etc/resolv.conf` of their own. */
export const canMakeNet =
  process.getuid?.() === 0 &&
  Bun.which(NAMED) !== null &&
  Bun.which(DNSMASQ) !== null &&
  Bun.spawnSync(["unshare", "-m", "mount", "--bind", "/etc/hosts", "/etc/resolv.conf"], {
    stdout: "ignore",
    stderr: "ignore",
  }).exitCode === 0;

/**
 * Loopback addresses of our own with a DNS of their own: BIND as the authority of `test.`, which is signed, and as a
 * resolver that validates it. `zone` gives the lines of the zone file.
 */
export async function startNet(zone: (net: Pick<PrivateNet, "address">) => string[]): Promise<PrivateNet> {
  const base = `127.${randomInt(100, 250)}.${randomInt(1, 250)}`;
  const address = (host: keyof typeof HOSTS): string => `${base}.${HOSTS[host]}`;
  const dir = await mkdtemp(join(tmpdir(), "mailwright-net-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  await chmod(dir, 0o755);
  const key = await signZone(dir, zoneFile(zone({ address })));
  const [authority, resolver] = [await freePort(), await freePort()];
  const files = {
    "authority.conf": namedConf(dir, authority, answering(dir)),
    "resolver.conf": namedConf(dir, resolver, resolving(authority, key)),
    "dnsmasq.conf": doorConf(address("resolver"), resolver),
    "resolv.conf": `nameserver ${address("resolver")}\noptions edns0 trust-ad\n`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
  const logs: Promise<string>[] = [];
  const runs: Bun.Subprocess[] = [];
  stack.defer(async () => {
    for (const one of runs) one.kill();
    await Promise.all(runs.map((one) => one.exited));
  });
  for (const command of [
    [NAMED, "-g", "-c", join(dir, "authority.conf")],
    [NAMED, "-g", "-c", join(dir, "resolver.conf")],
    // BIND takes no address that its machine does not say to have.
    [DNSMASQ, "--keep-in-foreground", "--log-facility=-", `--conf-file=${join(dir, "dnsmasq.conf")}`],
  ]) {
    const started = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    logs.push(new Response(started.stderr).text());
    runs.push(started);
  }
  const name_server = `${address("resolver")}:53`;
  const resolve = createResolver({ servers: [name_server], timeout_ms: 300 });
  await until(
    () =>
      resolve("test", "NS", { validated: true }).then(
        () => true,
        () => false,
      ),
    START_MS,
    async () => {
      for (const one of runs) one.kill();
      return `the name servers do not start: ${(await Promise.all(logs)).join("\n")}`;
    },
  );
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  const built = stack.move();
  return {
    address,
    name_server,
    prefix: ["unshare", "-m", "sh", "-c", script, join(dir, "resolv.conf")],
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

/** Returns the public key of the zone, as trust anchors are written. */
async function signZone(dir: string, text: string): Promise<string> {
  await writeFile(join(dir, "zone"), text);
  run(dir, ["dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", "-f", "KSK", "test"]);
  run(dir, ["dnssec-signzone", "-S", "-z", "-o", "test", "-f", "zone.signed", "zone"]);
  const file = (await readdir(dir)).find((name) => name.endsWith(".key")) ?? "";
  const [, data = ""] = /DNSKEY\s+(.*)/.exec(await readFile(join(dir, file), "utf8")) ?? [];
  const [flags, protocol, algorithm, ...key] = data.split(/\s+/);
  return `${flags} ${protocol} ${algorithm} "${key.join("")}"`;
}

function run(cwd: string, command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stdout: "ignore" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}

function zoneFile(lines: string[]): string {
  return [
    "$TTL 60",
    "$ORIGIN test.",
    "@ SOA ns.test. root.test. 1 60 60 86400 1",
    "@ NS ns.test.",
    "ns A 127.0.0.1",
    ...lines,
    "",
  ].join("\n");
}

/** `role`: what it answers from. */
function namedConf(dir: string, port: number, role: { options: string; more: string }): string {
  return `
options {
  directory "${dir}";
  pid-file "${dir}/${port}.pid";
  session-keyfile "${dir}/${port}.key";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  allow-query { any; };
  empty-zones-enable no;
  ${role.options}
};
controls { };
${role.more}
`;
}

function answering(dir: string) {
  return { options: "recursion no;", more: `zone "test" { type primary; file "${dir}/zone.signed"; };` };
}

function resolving(authority: number, key: string) {
  const forwarders = `forwarders { 127.0.0.1 port ${authority}; };`;
  return {
    options: `recursion yes; dnssec-validation yes; forward only; ${forwarders}`,
    more: `trust-anchors { "test." static-key ${key}; };`,
  };
}

function doorConf(address: string, resolver: number): string {
  return [
    "port=53",
    `listen-address=${address}`,
    "bind-interfaces",
    "no-resolv",
    "no-hosts",
    "user=root",
    "pid-file",
    "cache-size=0",
    "proxy-dnssec",
    `server=127.0.0.1#${resolver}`,
    "",
  ].join("\n");
}
