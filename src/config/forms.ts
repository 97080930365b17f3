import { urlOf } from "../lib/web-address.ts";
import ipaddr from "ipaddr.js";

const MAX_PORT = 65_535;
const MAX_HOST_CHARS = 253;
const MASTER_KEY_BYTES = 32;

/** Splits `host:port` or `[v6]:port`; undefined when it is neither. The host may be a name or an IP address. */
export function splitListen(value: string): { host: string; port: number } | undefined {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value);
  const [, v6, host, digits] = match ?? [];
  const port = Number(digits);
  if (digits === undefined || port > MAX_PORT) return undefined;
  if (v6 !== undefined) return ipaddr.IPv6.isValid(v6) ? { host: v6, port } : undefined;
  return host !== undefined && (isIpv4(host) || isHostName(host)) ? { host, port } : undefined;
}

export function isListen(value: string): boolean {
  return splitListen(value) !== undefined;
}

/** Returns whether two listeners cannot be open at the same time. Port 0 is a different port each time. */
export function clash(one: string, other: string): boolean {
  const [a, b] = [splitListen(one), splitListen(other)];
  if (a === undefined || b === undefined || a.port === 0 || a.port !== b.port) return false;
  return a.host === b.host || isEverywhere(a.host, b.host) || isEverywhere(b.host, a.host);
}

/** Returns whether a listener at `host` also covers `other`. */
function isEverywhere(host: string, other: string): boolean {
  return host === "::" || (host === "0.0.0.0" && !other.includes(":"));
}

/**
 * Returns whether a text is a host name: letters, digits and hyphens; the last label is not all digits, or it would
 * look like an IP address (RFC 1123 §2.1).
 */
export function isHostName(value: string): boolean {
  const labels = value.split(".");
  return (
    value.length <= MAX_HOST_CHARS &&
    labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? "")
  );
}

export function isAddress(value: string): boolean {
  const at = value.lastIndexOf("@");
  return (
    /^[^\s@<>"(),:;\\[\]]{1,64}$/.test(value.slice(0, Math.max(at, 0))) && isHostName(value.slice(at + 1))
  );
}

/**
 * Returns whether a host has a dot: for a bare name no authority issues a certificate, and other servers cannot find
 * it.
 */
export function isPublicHost(value: string): boolean {
  return isHostName(value) && value.includes(".");
}

export function isNetwork(value: string): boolean {
  return isIp(value) || ipaddr.IPv4.isValidCIDRFourPartDecimal(value) || ipaddr.IPv6.isValidCIDR(value);
}

/** Returns whether a text is `network=authserv-id`, where the id is a host name or another word (RFC 8601 §2.5). */
export function isRelay(value: string): boolean {
  const [network = "", name = "", ...more] = value.split("=");
  return isNetwork(network) && /^[\w.-]{1,253}$/.test(name) && more.length === 0;
}

/** Returns whether a text is the address of a name server: an IP address, because nobody could look up a name. */
export function isNameServer(value: string): boolean {
  if (isIp(value)) return true;
  const listen = splitListen(value);
  return listen !== undefined && listen.port > 0 && isIp(listen.host);
}

export function isOrigin(value: string): boolean {
  return isWebUrl(value) && urlOf(value)?.pathname === "/" && !/[?#]/.test(value);
}

/**
 * Returns whether a text is a web URL. `URL.parse` also accepts spaces around a URL and single or backward slashes;
 * these are mistakes here.
 */
export function isWebUrl(value: string): boolean {
  const url = urlOf(value);
  return /^https?:\/\/[^\s\\/][^\s\\]*$/i.test(value) && url !== null && url.username + url.password === "";
}

export function isRelayUrl(value: string): boolean {
  const url = urlOf(value);
  if (url === null || url.hostname === "" || !/^\/?$/.test(url.pathname)) return false;
  // A lone % in the password could not be decoded.
  return /^smtps?:\/\/[^\s?#]+$/i.test(value) && isEncoded(`${url.username}:${url.password}`);
}

function isEncoded(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

export function isKeyOf32Bytes(value: string): boolean {
  return /^[A-Za-z0-9+/]{43}=$/.test(value) && Buffer.from(value, "base64").length === MASTER_KEY_BYTES;
}

/**
 * Returns whether a text is an IPv4 address of four decimal parts: `10.1` and `0x7f000001` are addresses to some
 * programs and names to others.
 */
function isIpv4(value: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(value);
}

function isIp(value: string): boolean {
  return isIpv4(value) || ipaddr.IPv6.isValid(value);
}
