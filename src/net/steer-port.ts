import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../errors.ts";
import { openLibc } from "../lib/libc.ts";

const LISTENING = "0A";
/** From Linux's headers, the same on x86-64 and ARM. */
const SOL_SOCKET = 1;
const SO_ATTACH_REUSEPORT_CBPF = 51;
const BPF_RETURN = 0x06;

/**
 * Lets the newer of two listeners that share a port (SO_REUSEPORT) get all new connections. By default the kernel
 * distributes them, and those that the older one has not accepted when it closes are reset. Stays in force for later
 * pairs. Returns a reason where that is impossible; then a few connections are lost at a swap.
 */
export async function steerToNewest(port: number): Promise<string | undefined> {
  if (process.platform !== "linux") return `there is none on ${process.platform}`;
  try {
    const [socket] = await listeningSockets(port);
    if (socket === undefined) return "the listener was not found among the open files";
    return await attachProgram(socket);
  } catch (error) {
    return messageOf(error);
  }
}

/** Returns the file descriptors of this process that listen on a port (proc(5)). */
async function listeningSockets(port: number): Promise<number[]> {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readTable(`/proc/self/net/${name}`)));
  const listening = tables
    .flat()
    .filter(([, local = "", , state]) => state === LISTENING && local.endsWith(`:${hex}`));
  const sockets = new Set(listening.map((columns) => `socket:[${columns[9]}]`));
  const found: number[] = [];
  for (const name of await readdir("/proc/self/fd")) {
    // A descriptor closed since the listing has no target.
    const target = await readlink(join("/proc/self/fd", name)).catch(() => "");
    if (sockets.has(target)) found.push(Number(name));
  }
  return found;
}

async function readTable(path: string): Promise<string[][]> {
  // A machine without IPv6 has no such table.
  const text = await readFile(path, "latin1").catch(() => "");
  return text
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/));
}

/**
 * Attaches a BPF program of one instruction: always select the listener with index 1. If there is none, the kernel
 * distributes as usual.
 */
async function attachProgram(socket: number): Promise<string | undefined> {
  const { ptr } = await import("bun:ffi");
  const instruction = new DataView(new ArrayBuffer(8)); // struct sock_filter
  instruction.setUint16(0, BPF_RETURN, true);
  instruction.setUint32(4, 1, true);
  const program = new DataView(new ArrayBuffer(16)); // struct sock_fprog
  program.setUint16(0, 1, true);
  program.setBigUint64(8, BigInt(ptr(instruction)), true);
  const libc = await openLibc({
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  });
  const result = libc.symbols.setsockopt(
    socket,
    SOL_SOCKET,
    SO_ATTACH_REUSEPORT_CBPF,
    ptr(program),
    program.byteLength,
  );
  libc.close();
  return result === 0 ? undefined : "the kernel refused it";
}
