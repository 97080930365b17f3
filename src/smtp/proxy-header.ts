import ipaddr from "ipaddr.js";
import { plainAddress } from "../net/networks.ts";

/** The content of a PROXY protocol header: the client's address, or that the connection is the proxy's own. */
export type ProxyHeader = { kind: "client"; address: string; port: number } | { kind: "proxy" };

/** The result of parsing: a complete header of `bytes` bytes, an incomplete one, or none. */
export type ProxyReading =
  | { state: "whole"; header: ProxyHeader; bytes: number }
  | { state: "partial" }
  | { state: "wrong" };

/** The longest line of version 1 with its CRLF (HAProxy's PROXY protocol §2.1). */
const MAX_LINE_BYTES = 107;
/** The bytes that begin a header of version 2 (§2.2). */
const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const PREFIX_BYTES = 16;
/** Bytes for the addresses and other data about a connection; a client certificate is the largest. */
const MAX_REST_BYTES = 8_192;
/** Bytes of both addresses and both ports. */
const ADDRESS_BYTES = { ipv4: 12, ipv6: 36 };

/** Reads a header of version 1 (a line) or 2 (binary) from the first bytes of a connection. */
export function readProxyHeader(input: Buffer): ProxyReading {
  return input[0] === SIGNATURE[0] ? readBinary(input) : readLine(input);
}

const WRONG: ProxyReading = { state: "wrong" };
const PARTIAL: ProxyReading = { state: "partial" };

function readLine(input: Buffer): ProxyReading {
  const start = "PROXY ";
  const head = input.toString("latin1", 0, Math.min(input.length, MAX_LINE_BYTES));
  if (!start.startsWith(head.slice(0, start.length))) return WRONG;
  const end = head.indexOf("\r\n");
  if (end < 0) return head.length < MAX_LINE_BYTES ? PARTIAL : WRONG;
  const header = headerOfLine(head.slice(start.length, end));
  return header ? { state: "whole", header, bytes: end + 2 } : WRONG;
}

function headerOfLine(line: string): ProxyHeader | undefined {
  // What follows UNKNOWN is to be ignored (§2.1).
  if (/^UNKNOWN( |$)/.test(line)) return { kind: "proxy" };
  const [family, source = "", target = "", source_port = "", target_port = "", ...more] = line.split(" ");
  const valid = family === "TCP4" ? isIpv4 : isIpv6;
  if (family !== "TCP4" && family !== "TCP6") return undefined;
  if (more.length > 0 || ![source, target].every(valid) || ![source_port, target_port].every(isPort))
    return undefined;
  return { kind: "client", address: plainAddress(source), port: Number(source_port) };
}

function isIpv4(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text);
}

function isIpv6(text: string): boolean {
  // An address with a zone is refused: a zone means nothing on another machine.
  return !text.includes("%") && ipaddr.IPv6.isValid(text);
}

function isPort(text: string): boolean {
  return /^(?:0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

function readBinary(input: Buffer): ProxyReading {
  const known = Math.min(input.length, SIGNATURE.length);
  if (!input.subarray(0, known).equals(SIGNATURE.subarray(0, known))) return WRONG;
  if (input.length < PREFIX_BYTES) return PARTIAL;
  const [version, command] = halves(input[12]);
  const [family, transport] = halves(input[13]);
  const rest = input.readUInt16BE(14);
  if (version !== 2 || command > 1 || rest > MAX_REST_BYTES) return WRONG;
  if (input.length < PREFIX_BYTES + rest) return PARTIAL;
  const bytes = PREFIX_BYTES + rest;
  // With LOCAL, and with a family other than IP, the connection is the proxy's own (§2.2).
  if (command === 0 || family === 0 || family === 3)
    return { state: "whole", header: { kind: "proxy" }, bytes };
  const header = transport === 1 ? headerOfAddresses(family, input.subarray(PREFIX_BYTES, bytes)) : undefined;
  return header ? { state: "whole", header, bytes } : WRONG;
}

function headerOfAddresses(family: number, rest: Buffer): ProxyHeader | undefined {
  if (family === 1 && rest.length >= ADDRESS_BYTES.ipv4)
    return { kind: "client", address: rest.subarray(0, 4).join("."), port: rest.readUInt16BE(8) };
  if (family !== 2 || rest.length < ADDRESS_BYTES.ipv6) return undefined;
  const address = plainAddress(ipaddr.fromByteArray([...rest.subarray(0, 16)]).toString());
  return { kind: "client", address, port: rest.readUInt16BE(32) };
}

function halves(byte = 0): [number, number] {
  return [byte >> 4, byte & 0x0f];
}
