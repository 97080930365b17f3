import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import {
  AUTHENTIC_DATA,
  type DecodedPacket,
  decode,
  encode,
  RECURSION_DESIRED,
  type RecordType,
} from "dns-packet";
import type { DnsErrorCode } from "./dns-reply.ts";
import { refuseOwnFault } from "../lib/own-faults.ts";
import { waitLimit } from "../lib/wait-limit.ts";

export interface DnsServer {
  host: string;
  port: number;
}

/** The result of a query. `UNREACHED`: the server does not exist, or there is no route to it. */
export type Reply = DecodedPacket | DnsErrorCode | "UNREACHED";

interface Question {
  name: string;
  rrtype: RecordType;
}

/** What a reply must share with its query to be accepted (RFC 5452). */
interface Sent extends Question {
  id: number;
}

/** The UDP size that every path carries unfragmented (DNS flag day 2020). */
const UDP_PAYLOAD_BYTES = 1_232;

/**
 * Sends one query to one server: over UDP from a new random port, then over TCP if the reply was truncated. Throws
 * NoHandlesError where there is no handle for a socket.
 */
export async function exchange(server: DnsServer, question: Question, timeout_ms: number): Promise<Reply> {
  const started = performance.now();
  const sent = { ...question, id: randomInt(65_536) };
  const packet = encode({
    type: "query",
    id: sent.id,
    // AD asks whether the answer was validated (RFC 6840 §5.7).
    flags: RECURSION_DESIRED | AUTHENTIC_DATA,
    questions: [{ type: question.rrtype, class: "IN", name: question.name }],
    additionals: [
      {
        type: "OPT",
        name: ".",
        udpPayloadSize: UDP_PAYLOAD_BYTES,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  });
  const reply = await overUdp(server, packet, sent, timeout_ms);
  if (typeof reply === "string" || !reply.flag_tc) return reply;
  return overTcp(server, packet, sent, Math.max(1, timeout_ms - (performance.now() - started)));
}

async function overUdp(server: DnsServer, packet: Buffer, sent: Sent, timeout_ms: number): Promise<Reply> {
  const socket = createSocket(isIPv6(server.host) ? "udp6" : "udp4");
  const { promise, resolve, fail } = replyTo();
  const timer = waitLimit(timeout_ms, () => resolve("ETIMEOUT"));
  socket.on("error", fail);
  socket.on("message", (message) => {
    // A wrong or malformed packet may be forged: the true reply can still come.
    const reply = readPacket(message, sent);
    if (reply) resolve(reply);
  });
  // A connected socket receives packets from that server alone, and learns when its port is closed.
  socket.connect(server.port, server.host, (...[error]: unknown[]) => {
    // On a machine without a network this callback gets the error, and no event follows; the declared type lacks it.
    if (error) fail(error);
    else socket.send(packet);
  });
  try {
    return await promise;
  } finally {
    timer.clear();
    socket.close();
  }
}

/** Sends a query over TCP: the same message behind a two-octet length (RFC 7766). */
async function overTcp(server: DnsServer, packet: Buffer, sent: Sent, timeout_ms: number): Promise<Reply> {
  const { promise, resolve, fail } = replyTo();
  const timer = waitLimit(timeout_ms, () => resolve("ETIMEOUT"));
  const socket = connect(server.port, server.host, () => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(packet.length);
    socket.write(Buffer.concat([length, packet]));
  });
  let received = Buffer.alloc(0);
  socket.on("error", fail);
  socket.on("close", () => resolve("ESERVFAIL"));
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return;
    resolve(readPacket(received.subarray(2, 2 + received.readUInt16BE()), sent) ?? "ESERVFAIL");
  });
  try {
    return await promise;
  } finally {
    timer.clear();
    socket.destroy();
  }
}

/** Returns a pending reply; `fail` takes what its socket reports. */
function replyTo() {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const fail = (error: unknown): void => {
    try {
      refuseOwnFault(error);
      resolve("UNREACHED");
    } catch (own) {
      reject(own);
    }
  };
  return { promise, resolve, fail };
}

/** Decodes a packet; undefined for anything but the reply to this query (RFC 5452 §9.1). */
function readPacket(message: Buffer, sent: Sent): DecodedPacket | undefined {
  let packet: DecodedPacket;
  try {
    packet = decode(message);
  } catch {
    return undefined;
  }
  const [question] = packet.questions ?? [];
  const ours =
    packet.type === "response" &&
    packet.id === sent.id &&
    packet.questions?.length === 1 &&
    question?.type === sent.rrtype &&
    question.name.toLowerCase() === sent.name;
  return ours ? packet : undefined;
}
