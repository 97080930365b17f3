import { isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Whether an address is in one of the networks: `192.0.2.0/24`, `::1/128` or a single address. */
export function inNetworks(address: string, networks: string[]): boolean {
  if (networks.length === 0 || isIP(address) === 0) return false;
  // `process` turns a v4-mapped v6 address into the v4 one it stands for, and does not know every zone (RFC 4007 §11).
  const client = ipaddr.process(address.split("%", 1)[0] ?? "");
  return inRanges(client, rangesOf(networks));
}

export function inRanges(address: ipaddr.IPv4 | ipaddr.IPv6, ranges: Range[]): boolean {
  return ranges.some((range) => range[0].kind() === address.kind() && address.match(range));
}

/** Read once: a list of the configuration lasts as long as the server does. */
const read = new WeakMap<string[], Range[]>();

function rangesOf(networks: string[]): Range[] {
  const known = read.get(networks) ?? networks.flatMap(rangeOf);
  read.set(networks, known);
  return known;
}

/** None of what is no network. */
function rangeOf(network: string): Range[] {
  if (ipaddr.isValidCIDR(network)) return [ipaddr.parseCIDR(network)];
  if (!ipaddr.isValid(network)) return [];
  const address = ipaddr.process(network);
  return [[address, address.toByteArray().length * 8]];
}

/** What a client is counted by: of an IPv6 address the /64, all of which one line usually has. Other texts are given back. */
export function clientNetwork(address: string): string {
  if (isIPv4(address) || !ipaddr.isValid(address)) return address;
  const client = ipaddr.process(address);
  if (client.kind() === "ipv4") return client.toString();
  const [a, b, c, d] = (client as ipaddr.IPv6).parts;
  return new ipaddr.IPv6([a ?? 0, b ?? 0, c ?? 0, d ?? 0, 0, 0, 0, 0]).toString();
}
