import { isIP, isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

export type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Returns whether an address is in one of the networks: `192.0.2.0/24`, `::1/128` or a single address. */
export function inNetworks(address: string, networks: string[]): boolean {
  if (networks.length === 0 || isIP(address) === 0) return false;
  return inRanges(parsed(address), rangesOf(networks));
}

/** Returns whether an address is one of a machine's or a household's own network, which the internet does not route. */
export function isPrivateAddress(address: string): boolean {
  return isIP(address) !== 0 && PRIVATE.has(parsed(address).range());
}

const PRIVATE = new Set(["loopback", "private", "uniqueLocal", "linkLocal"]);

/** The last parsed address, because one connection asks several times. */
let latest: { address: string; client: ipaddr.IPv4 | ipaddr.IPv6 } | undefined;

function parsed(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  if (latest?.address === address) return latest.client;
  // `process` turns a v4-mapped v6 address into the v4 one; zones are removed, because it does not know all of them
  // (RFC 4007 §11).
  const client = ipaddr.process(address.split("%", 1)[0] ?? "");
  latest = { address, client };
  return client;
}

export function inRanges(address: ipaddr.IPv4 | ipaddr.IPv6, ranges: Range[]): boolean {
  return ranges.some((range) => range[0].kind() === address.kind() && address.match(range));
}

/** Cache of parsed lists, since a list of the configuration lasts as long as the server. */
const read = new WeakMap<string[], Range[]>();

function rangesOf(networks: string[]): Range[] {
  const known = read.get(networks) ?? networks.flatMap(rangeOf);
  read.set(networks, known);
  return known;
}

/** Returns the range of a network; empty for anything else. */
function rangeOf(network: string): Range[] {
  if (ipaddr.isValidCIDR(network)) return [ipaddr.parseCIDR(network)];
  if (!ipaddr.isValid(network)) return [];
  const address = ipaddr.process(network);
  return [[address, address.toByteArray().length * 8]];
}

/**
 * Returns what a client is counted by: the /64 of an IPv6 address, which usually is one line, or the IPv4 address.
 * Other texts are returned unchanged.
 */
export function clientNetwork(address: string): string {
  if (isIPv4(address) || !ipaddr.isValid(address)) return address;
  const client = ipaddr.process(address);
  return client.kind() === "ipv4" ? client.toString() : startOf(client, 64);
}

/** The most networks that `networksAround` returns. */
export const MOST_NETWORKS = 3;

/**
 * Returns the networks that a client is in, from a provider's to a single line's: /48, /56 and /64 of an IPv6 address,
 * /24 and the address itself for IPv4.
 */
export function networksAround(address: string): string[] {
  if (!ipaddr.isValid(address)) return [address];
  const client = ipaddr.process(address);
  if (client.kind() === "ipv4") return [startOf(client, 24), client.toString()];
  return [48, 56, 64].map((bits) => startOf(client, bits));
}

/** Returns the IPv4 address of a client that an IPv6 socket shows as v4-mapped; any other unchanged. */
export function plainAddress(address: string): string {
  return ipaddr.isValid(address) ? ipaddr.process(address).toString() : address;
}

/** Returns the first address of the network of so many bits, a multiple of eight. */
function startOf(client: ipaddr.IPv4 | ipaddr.IPv6, bits: number): string {
  const bytes = client.toByteArray().map((byte, index) => (index < bits / 8 ? byte : 0));
  return ipaddr.fromByteArray(bytes).toString();
}

/**
 * Orders what clients hold so that each network has its first item, then each its second, and so on, also within
 * networks. The last item is of the network that holds the most. Items of one client keep their order.
 */
export function spreadByNetwork<Item>(
  items: Item[],
  networksOf: (item: Item) => string[],
  depth = 0,
): Item[] {
  const [first] = items;
  if (first === undefined || networksOf(first)[depth] === undefined) return items;
  const rounds: Item[][] = [];
  for (const group of Map.groupBy(items, (item) => networksOf(item)[depth]).values())
    for (const [round, item] of spreadByNetwork(group, networksOf, depth + 1).entries())
      (rounds[round] ??= []).push(item);
  return rounds.flat();
}
