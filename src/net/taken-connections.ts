import ipaddr from "ipaddr.js";
import { openLibc } from "../lib/libc.ts";
import { plainAddress } from "./networks.ts";

/** From Linux's headers, the same on x86-64 and ARM. */
const AF_INET = 2;
const AF_INET6 = 10;
const IPPROTO_TCP = 6;
const TCP_INFO = 11;
/** Where `struct tcp_info` has the milliseconds since something was sent, and since something came. */
const LAST_SENT = 44;
const LAST_RECEIVED = 52;
const SHUT_RDWR = 2;
/** How many handles are checked in one turn of the event loop, which takes a few milliseconds. */
const HANDLES_A_TURN = 500;

/** A connection that one of our ports has accepted. */
export interface TakenConnection {
  handle: number;
  /** The address of the other end. */
  address: string;
  port: number;
  /** Milliseconds since data last went in either direction. */
  idle_ms: number;
}

export interface TakenConnections extends Disposable {
  /** Lists the connections at these ports of ours among the handles below `end`. */
  list(ports: number[], end: number): Promise<TakenConnection[]>;
  /**
   * Shuts connections down as if the other side had; whoever serves them notices. One that has ended meanwhile is left
   * alone.
   */
  hangUp(connections: TakenConnection[]): Promise<void>;
}

/**
 * Lists the connections of this process as the kernel knows them, for servers that do not list theirs. Throws on other
 * systems than Linux.
 */
export async function openTakenConnections(): Promise<TakenConnections> {
  if (process.platform !== "linux") throw new Error(`there is none on ${process.platform}`);
  const { ptr } = await import("bun:ffi");
  const libc = await openLibc({
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    getpeername: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
    shutdown: { args: ["i32", "i32"], returns: "i32" },
  });
  const { symbols } = libc;
  const name = new DataView(new ArrayBuffer(128)); // struct sockaddr_storage
  const info = new DataView(new ArrayBuffer(256));
  const size = new Uint32Array(1);
  const peerOf = (handle: number): Pick<TakenConnection, "address" | "port"> | undefined => {
    size[0] = name.byteLength;
    return symbols.getpeername(handle, ptr(name), ptr(size)) === 0 ? endOf(name) : undefined;
  };
  const portOf = (handle: number): number | undefined => {
    size[0] = name.byteLength;
    const found = symbols.getsockname(handle, ptr(name), ptr(size)) === 0 && isInternet(name);
    return found ? name.getUint16(2) : undefined;
  };
  const idleOf = (handle: number): number => {
    size[0] = info.byteLength;
    if (symbols.getsockopt(handle, IPPROTO_TCP, TCP_INFO, ptr(info), ptr(size)) !== 0) return 0;
    return Math.min(info.getUint32(LAST_SENT, true), info.getUint32(LAST_RECEIVED, true));
  };
  return {
    async list(ports, end) {
      const found: TakenConnection[] = [];
      for (let handle = 0; handle < end; handle++) {
        if (handle % HANDLES_A_TURN === 0) await turn();
        if (!ports.includes(portOf(handle) ?? 0)) continue;
        // A listening socket has no other end.
        const peer = peerOf(handle);
        if (peer) found.push({ handle, ...peer, idle_ms: idleOf(handle) });
      }
      return found;
    },
    async hangUp(connections) {
      for (const [count, { handle, address, port }] of connections.entries()) {
        if (count % HANDLES_A_TURN === 0) await turn();
        // The handle may belong to another connection by now. Nothing else happens on this thread between the look
        // and the end.
        const peer = peerOf(handle);
        if (peer?.address === address && peer.port === port) symbols.shutdown(handle, SHUT_RDWR);
      }
    },
    [Symbol.dispose]: () => libc.close(),
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isInternet(name: DataView): boolean {
  return [AF_INET, AF_INET6].includes(name.getUint16(0, true));
}

/** Reads a `struct sockaddr_in` or `sockaddr_in6`; undefined for any other. */
function endOf(name: DataView): Pick<TakenConnection, "address" | "port"> | undefined {
  if (!isInternet(name)) return undefined;
  const [from, bytes] = name.getUint16(0, true) === AF_INET ? [4, 4] : [8, 16];
  const address = ipaddr.fromByteArray([...new Uint8Array(name.buffer, from, bytes)]);
  return { address: plainAddress(address.toString()), port: name.getUint16(2) };
}
