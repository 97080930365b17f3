import { getServers } from "node:dns";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { invalid } from "../errors.ts";
import type { DnsServer } from "./dns-exchange.ts";

export const RESOLV_CONF = "/etc/resolv.conf";
/** The number of servers that resolv.conf(5) allows. */
const MAX_OF_SYSTEM = 3;

/**
 * Returns a function that returns the name servers: `given` (`1.1.1.1`, `127.0.0.1:5353` or `[::1]:53`), or else the
 * system's, read from its file at each call, because a machine that starts before its network, or changes it, has
 * others later. Throws `validation_error` for a given one that is no address.
 */
export function createNameServers(given: string[], file = RESOLV_CONF): () => DnsServer[] {
  if (given.length > 0) {
    const servers = given.map(readGiven);
    return () => servers;
  }
  let known: { version: string; servers: DnsServer[] } | undefined;
  return () => {
    const version = versionOf(file);
    if (known?.version !== version) known = { version, servers: systemServers(version === "" ? null : file) };
    return known.servers;
  };
}

/** Returns the servers as text: "127.0.0.1, [::1]:5353". */
export function nameServerNames(servers: DnsServer[]): string {
  return servers
    .map(({ host, port }) => {
      if (port === 53) return host;
      return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    })
    .join(", ");
}

/** Returns a string that changes with the file; empty without one. */
function versionOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

/**
 * Returns the system's servers. Without such a file the runtime knows them in another way, but reads them only once.
 */
function systemServers(file: string | null): DnsServer[] {
  const named = file === null ? getServers() : namedIn(readFileSync(file, "utf8"));
  const servers = named.flatMap((text) => readServer(text) ?? []).slice(0, MAX_OF_SYSTEM);
  // Without any nameserver line the one on the local machine is used (resolv.conf(5)).
  return servers.length > 0 ? servers : [{ host: "127.0.0.1", port: 53 }];
}

function namedIn(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const [keyword, server] = line.trim().split(/[ \t]+/);
    return keyword === "nameserver" && server !== undefined ? [server] : [];
  });
}

function readGiven(text: string): DnsServer {
  const server = readServer(text);
  if (server === undefined)
    throw invalid("dns.servers", "bad_address", `"${text}" is not an address such as 1.1.1.1 or [::1]:53.`);
  return server;
}

function readServer(text: string): DnsServer | undefined {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(text);
  const [, host = text, port = "53"] = bracketed ?? (isIP(text) ? [] : (/^([^:]+):(\d+)$/.exec(text) ?? []));
  if (isIP(host) === 0 || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { host, port: Number(port) };
}
