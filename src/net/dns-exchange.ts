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

/** `UNREACHED`: nobody is there, or there is no way to them. */
export type Reply = DecodedPacket | DnsErrorCode | "UNREACHED";

interface Question {
  name: string;
  rrtype: RecordType;
}

/** What a reply must have in common with its query to be believed. */
interface Sent extends Question {
  id: number;
}

/** The size every path carries unfragmented (DNS flag day 2020). */
const UDP_PAYLOAD_BYTES = 1_232;

/**
 * One question to one server: UDP from a fresh random port, then TCP when the reply was cut short. Throws NoHandlesError
 * where there is no handle for a socket.
 */
export async function exchange(server: DnsServer, question: Question, timeoutMs: number): Promise<Reply> {
  const started = performance.now();
  const sent = { ...question, id: randomInt(65_536) };
  const packet = encode({
    type: "query",
    id: sent.id,
    // RFC 6840 section 5.7: asks to be told whether the answer was validated.
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
  const reply = await overUdp(server, packet, sent, timeoutMs);
  if (typeof reply === "string" || !reply.flag_tc) return reply;
  return overTcp(server, packet, sent, Math.max(1, timeoutMs - (performance.now() - started)));
}

async function overUdp(server: DnsServer, packet: Buffer, sent: Sent, timeoutMs: number): Promise<Reply> {
  const socket = createSocket(isIPv6(server.host) ? "udp6" : "udp4");
  const { promise, resolve, fail } = replyTo();
  const timer = waitLimit(timeoutMs, () => resolve("ETIMEOUT"));
  socket.on("error", fail);
  socket.on("message", (message) => {
    // A wrong or garbled packet may be a forger's: the true reply can still come.
    const reply = readPacket(message, sent);
    if (reply) resolve(reply);
  });
  // A connected socket takes packets from that server alone, and hears when its port is closed.
  socket.connect(server.port, server.host, (...[error]: unknown[]) => {
    // A machine without a network: the declared type does not say that the callback hears of it, and not the event.
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

/** RFC 7766: the same message behind a two-octet length. */
async function overTcp(server: DnsServer, packet: Buffer, sent: Sent, timeoutMs: number): Promise<Reply> {
  const { promise, resolve, fail } = replyTo();
  const timer = waitLimit(timeoutMs, () => resolve("ETIMEOUT"));
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

/** A reply that is waited for; `fail` takes what its socket reports. */
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

/** Undefined for anything but the reply to this very question (RFC 5452 §9.1). */
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
