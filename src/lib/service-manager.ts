import { openLibc } from "./libc.ts";

/** From Linux's headers, the same on x86-64 and ARM. */
const AF_UNIX = 1;
const SOCK_DGRAM_CLOEXEC = 2 | 0o2000000;
const MSG_DONTWAIT_NOSIGNAL = 0x40 | 0x4000;
const FAMILY_BYTES = 2;
const MAX_PATH_BYTES = 107;

/** The service manager (systemd) that started this process, see sd_notify(3). */
export interface ServiceManager extends Disposable {
  /** Sends assignments such as `READY=1`, one a line. Returns false when nobody received them. */
  tell(state: string): boolean;
}

/**
 * Opens the datagram socket at `path`, where `@` in front means an abstract socket. Uses the C library, because Bun has
 * no Unix datagram sockets.
 */
export async function openServiceManager(path: string): Promise<ServiceManager> {
  const { ptr } = await import("bun:ffi");
  const libc = await openLibc({
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
  const { symbols } = libc;
  const address = addressOf(path);
  const socket = symbols.socket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0);
  return {
    tell(state) {
      const bytes = Buffer.from(state);
      const { byteLength } = bytes;
      const to = [ptr(address), address.byteLength] as const;
      return symbols.sendto(socket, ptr(bytes), byteLength, MSG_DONTWAIT_NOSIGNAL, ...to) > 0n;
    },
    [Symbol.dispose]() {
      symbols.close(socket);
      libc.close();
    },
  };
}

/** Returns a `struct sockaddr_un`, see unix(7). */
function addressOf(path: string): Buffer {
  const name = Buffer.from(path.startsWith("@") ? `\0${path.slice(1)}` : `${path}\0`);
  if (name.byteLength > MAX_PATH_BYTES + 1) throw new Error(`The socket path ${path} is too long`);
  const address = Buffer.alloc(FAMILY_BYTES + name.byteLength);
  address.writeUInt16LE(AF_UNIX, 0);
  name.copy(address, FAMILY_BYTES);
  return address;
}
