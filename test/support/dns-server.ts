import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import {
  type Answer,
  AUTHENTIC_DATA,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Packet,
  TRUNCATED_RESPONSE,
} from "dns-packet";

/** The values of one name: MX as `[priority, host]`, TXT as one text or its list of strings. */
interface ZoneRecords {
  A?: string[];
  AAAA?: string[];
  CNAME?: string[];
  NS?: string[];
  PTR?: string[];
  MX?: [number, string][];
  TXT?: (string | string[])[];
  /** As in a zone file: `3 1 1 ab12…`. */
  TLSA?: string[];
}

export type DnsZone = Record<string, ZoneRecords>;

/** What a name does instead of answering; `truncate` answers over TCP only, `forge` sends a false reply first. */
type DnsFault = "servfail" | "refused" | "drop" | "truncate" | "forge" | "garbage";

export interface TestDnsServer extends AsyncDisposable {
  /** `127.0.0.1:port`, for `dns.servers`. */
  address: string;
  /** Every question seen, in order. */
  queries: { name: string; type: string; over: "udp" | "tcp"; from_port: number }[];
  set<T extends keyof ZoneRecords>(name: string, type: T, values: NonNullable<ZoneRecords[T]>): void;
  remove(name: string): void;
  /** `name` may be `*` for every name; undefined ends the fault. */
  fault(name: string, fault: DnsFault | undefined): void;
  /** Names under these are answered as validated by DNSSEC. */
  signed: string[];
  /** Seconds every answer may be kept, and the minimum of negative ones. */
  ttl: number;
}

/** An authoritative server for the given names on loopback, UDP and TCP on one free port. */
export async function startDnsServer(zone: DnsZone = {}): Promise<TestDnsServer> {
  const records = new Map(Object.entries(zone).map(([name, values]) => [name.toLowerCase(), { ...values }]));
  const faults = new Map<string, DnsFault>();
  const tcpSockets = new Set<Socket>();
  const tcp = createServer();
  const udp = await bindBoth(tcp);

  const server: TestDnsServer = {
    address: `127.0.0.1:${udp.address().port}`,
    queries: [],
    signed: [],
    ttl: 60,
    set: (name, type, values) => {
      records.set(name.toLowerCase(), { ...records.get(name.toLowerCase()), [type]: values });
    },
    remove: (name) => void records.delete(name.toLowerCase()),
    fault: (name, fault) => void (fault ? faults.set(name.toLowerCase(), fault) : faults.delete(name)),
    [Symbol.asyncDispose]: async () => {
      udp.close();
      for (const socket of tcpSockets) socket.destroy();
      tcp.close();
      await once(tcp, "close");
    },
  };

  const answer = (query: DecodedPacket, over: "udp" | "tcp", fromPort: number): (Packet | Buffer)[] => {
    const [question] = query.questions ?? [];
    if (!question) return [];
    const name = question.name.toLowerCase();
    server.queries.push({ name, type: question.type, over, from_port: fromPort });
    const fault = faults.get(name) ?? faults.get("*");
    const isSigned = server.signed.some((zone) => name === zone || name.endsWith(`.${zone}`));
    const found = lookUp(records, query, server.ttl);
    const honest = isSigned ? { ...found, flags: (found.flags ?? 0) | AUTHENTIC_DATA } : found;
    return over === "tcp" && (fault === "truncate" || fault === "forge")
      ? [honest]
      : withFault(honest, fault);
  };

  udp.on("message", (message: Buffer, from: RemoteInfo) => {
    for (const packet of answer(decode(message), "udp", from.port)) {
      udp.send(Buffer.isBuffer(packet) ? packet : encode(packet), from.port, from.address);
    }
  });
  tcp.on("connection", (socket) => {
    tcpSockets.add(socket.on("error", () => socket.destroy()));
    let received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return;
      for (const packet of answer(decode(received.subarray(2)), "tcp", socket.remotePort ?? 0)) {
        const body = Buffer.isBuffer(packet) ? packet : encode(packet);
        socket.write(Buffer.concat([Buffer.from([body.length >> 8, body.length & 0xff]), body]));
      }
      received = Buffer.alloc(0);
    });
  });
  return server;
}

/** TCP and UDP ports are given out apart, so the pair is retried until both are free. */
async function bindBoth(tcp: ReturnType<typeof createServer>): Promise<UdpSocket> {
  for (let attempt = 0; attempt < 10; attempt++) {
    tcp.listen(0, "127.0.0.1");
    await once(tcp, "listening");
    const udp = createSocket("udp4");
    const bound = new Promise<boolean>((resolve) => {
      udp.once("error", () => resolve(false)).once("listening", () => resolve(true));
    });
    udp.bind((tcp.address() as AddressInfo).port, "127.0.0.1");
    if (await bound) return udp;
    tcp.close();
    await once(tcp, "close");
  }
  throw new Error("no port is free for both UDP and TCP");
}

function lookUp(records: Map<string, ZoneRecords>, query: DecodedPacket, ttl: number): Packet {
  const question = query.questions?.[0] ?? { name: "", type: "A" as const };
  const answers: Answer[] = [];
  let name = question.name.toLowerCase();
  for (let hop = 0; hop < 20; hop++) {
    const own = records.get(name) ?? {};
    const found = recordsOf(name, question.type, own, ttl);
    answers.push(...found);
    const [alias] = own.CNAME ?? [];
    if (found.length > 0 || alias === undefined) break;
    answers.push({ type: "CNAME", name, ttl, data: alias });
    name = alias.toLowerCase();
  }
  const exists = [...records.keys()].some((owner) => owner === name || owner.endsWith(`.${name}`));
  return {
    type: "response",
    id: query.id ?? 0,
    flags: AUTHORITATIVE_ANSWER | (exists ? 0 : NXDOMAIN),
    questions: query.questions ?? [],
    answers,
    authorities: answers.some((record) => record.type === question.type) ? [] : [soa(ttl)],
  };
}

const NXDOMAIN = 3;
const SERVFAIL = 2;
const REFUSED = 5;

function recordsOf(name: string, type: string, own: ZoneRecords, ttl: number): Answer[] {
  if (isPlain(type)) return (own[type] ?? []).map((data) => ({ type, name, ttl, data }));
  switch (type) {
    case "MX":
      return (own.MX ?? []).map(([preference, exchange]) => ({
        type,
        name,
        ttl,
        data: { preference, exchange },
      }));
    case "TLSA":
      return (own.TLSA ?? []).map((text) => ({ type, name, ttl, data: tlsaOf(text) }));
    case "TXT":
      return (own.TXT ?? []).map((text) => ({ type, name, ttl, data: inStrings(text) }));
    default:
      return [];
  }
}

/** Whether the values of a type are written as they are. */
function isPlain(type: string): type is "A" | "AAAA" | "CNAME" | "NS" | "PTR" {
  return ["A", "AAAA", "CNAME", "NS", "PTR"].includes(type);
}

function tlsaOf(text: string) {
  const [usage = "", selector = "", matchingType = "", hex = ""] = text.split(" ");
  const numbers = { usage: Number(usage), selector: Number(selector), matchingType: Number(matchingType) };
  return { ...numbers, certificate: Buffer.from(hex, "hex") };
}

/** A text longer than one character-string is cut at 250 octets, as many zone editors do (RFC 1035 §3.3). */
function inStrings(text: string | string[]): string[] {
  return typeof text === "string" ? (text.match(/[^]{1,250}/g) ?? [""]) : text;
}

function soa(ttl: number): Answer {
  return {
    type: "SOA",
    name: ".",
    ttl,
    data: {
      mname: "ns.test",
      rname: "root.test",
      serial: 1,
      refresh: 60,
      retry: 60,
      expire: 60,
      minimum: ttl,
    },
  };
}

function withFault(honest: Packet, fault: DnsFault | undefined): (Packet | Buffer)[] {
  const empty = { ...honest, answers: [], authorities: [] };
  switch (fault) {
    case "drop":
      return [];
    case "servfail":
      return [{ ...empty, flags: SERVFAIL }];
    case "refused":
      return [{ ...empty, flags: REFUSED }];
    case "truncate":
      return [{ ...empty, flags: TRUNCATED_RESPONSE }];
    case "garbage":
      return [Buffer.from("not a DNS packet"), honest];
    case "forge":
      return [
        { ...empty, id: ((honest.id ?? 0) + 1) % 65_536, flags: NXDOMAIN },
        { ...empty, questions: [{ type: "A", class: "IN", name: "other.test" }], flags: NXDOMAIN },
        honest,
      ];
    default:
      return [honest];
  }
}
