import type { Socket } from "node:net";
import type { SMTPServer } from "smtp-server";
import type { App } from "../app.ts";
import { inNetworks } from "../net/networks.ts";
import { type ProxyHeader, readProxyHeader } from "./proxy-header.ts";
import { waitLimit } from "../lib/wait-limit.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

/** Time for the header, which a proxy sends as soon as it is connected. */
const HEADER_MS = 10_000;
const WARNINGS = { limit: 5, window_seconds: HOUR_SECONDS };

/**
 * Reads PROXY headers from the peers in `smtp.proxy_protocol`. From these a header is required, because otherwise a
 * client behind such a proxy would count as the proxy. From anybody else the header is an unknown command.
 */
export function acceptProxies(app: App, server: SMTPServer): Disposable {
  const waiting = new Set<Socket>();
  const { proxy_protocol: proxies, max_connections } = app.config.smtp;
  const [accept] = server.server.listeners("connection") as ((socket: Socket) => void)[];
  const greet = async (socket: Socket): Promise<void> => {
    waiting.add(socket);
    const header = waiting.size > max_connections ? undefined : await headerOf(socket);
    waiting.delete(socket);
    if (header === undefined) return refuse(app, socket);
    const client = header.kind === "client" && { remoteAddress: header.address, remotePort: header.port };
    server.connect(socket, { ...client });
  };
  server.server.removeAllListeners("connection");
  server.server.on("connection", (socket) => {
    if (inNetworks(socket.remoteAddress ?? "", proxies)) void greet(socket);
    else accept?.(socket);
  });
  return {
    [Symbol.dispose]() {
      for (const socket of waiting) socket.destroy();
    },
  };
}

/** Takes the header from the beginning of a socket, and not a byte more; undefined when there is none in time. */
function headerOf(socket: Socket): Promise<ProxyHeader | undefined> {
  const { promise, resolve } = Promise.withResolvers<ProxyHeader | undefined>();
  let seen = Buffer.alloc(0);
  const end = (header?: ProxyHeader): void => {
    timer.clear();
    socket.off("readable", read).off("end", fail).off("close", fail);
    resolve(header);
  };
  const fail = (): void => end();
  const read = (): void => {
    for (let piece = socket.read() as Buffer | null; piece !== null; piece = socket.read() as Buffer | null)
      seen = Buffer.concat([seen, piece]);
    const reading = readProxyHeader(seen);
    if (reading.state === "partial") return;
    if (reading.state === "wrong") return end();
    end(reading.header);
    // Bytes of the client may have come with the header. They go back only now that this function has stopped reading.
    if (seen.length > reading.bytes) socket.unshift(seen.subarray(reading.bytes));
  };
  const timer = waitLimit(HEADER_MS, fail);
  // A socket without a listener for its errors ends the process.
  socket.on("error", fail);
  socket.on("readable", read).on("end", fail).on("close", fail);
  return promise;
}

/** Closes the socket without a reply: the other end does not speak SMTP, or not yet. */
function refuse(app: App, socket: Socket): void {
  const peer = socket.remoteAddress;
  socket.on("error", () => undefined).destroy();
  if (!app.limiter.take("proxy-header", WARNINGS).ok) return;
  app.log.warn(
    { peer },
    "a connection from smtp.proxy_protocol was closed: it began without a good PROXY header",
  );
}
