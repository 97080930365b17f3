import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { plainAddress } from "../net/networks.ts";
import { listenFault } from "../lib/start-faults.ts";
import { steerToNewest } from "../net/steer-port.ts";
import type { Certificate } from "../tls/pem.ts";
import { callersWaiting } from "./callers.ts";
import type { Elysia } from "elysia";
import { MB } from "../lib/sizes.ts";

/** Size beyond which Bun closes the connection without a word; our own limits are below it and answer with an error. */
const MAX_REQUEST_BYTES = 64 * MB;
const IDLE_SECONDS = 240;
const OPTIONS = { idleTimeout: IDLE_SECONDS, maxRequestBodySize: MAX_REQUEST_BYTES, development: false };

interface Http extends Pick<Elysia, "server"> {
  fetch: (request: Request) => Response | Promise<Response>;
  listen: (options: Partial<Bun.Serve.HostnamePortServeOptions<unknown>>) => unknown;
}
type Listener = NonNullable<Http["server"]>;

export interface HttpDoor extends AsyncDisposable {
  /** The address it listens on, as `http://host:port`. */
  url: string;
  port: number;
  /** Returns the connections, by `peerName`, on which a caller with a valid credential waits for an answer. */
  callers: () => Set<string>;
}

/** Returns a name for a connection that is unique on its listener; the address is a `plainAddress`. */
export function peerName(address: string, port: number): string {
  return `${address} ${port}`;
}

/** Opens `server.listen`. */
export async function listen(app: App, http: Http): Promise<HttpDoor> {
  const { listen: value, tls } = app.config.server;
  const { host, port } = splitListen(value) ?? { host: "0.0.0.0", port: 0 };
  const name = host.includes(":") ? `[${host}]` : host;
  try {
    if (tls !== "off") return await listenSecurely(app, http, { host, name, port });
    // Elysia's default, reusePort, lets a second server silently share the port.
    http.listen({ hostname: host, port, reusePort: false, ...OPTIONS });
  } catch (error) {
    throw listenFault(error, { setting: "server.listen", value });
  }
  return {
    url: `http://${name}:${http.server?.port}`,
    port: Number(http.server?.port),
    callers: () => callersOf(http),
    async [Symbol.asyncDispose]() {
      await http.server?.stop(false);
    },
  };
}

/**
 * Listens with TLS. Bun reads the certificate when it begins to listen, so a new certificate needs a second listener on
 * the port. The kernel gives all new connections to the newest; the old one serves those it has and closes each after
 * its next answer.
 */
async function listenSecurely(
  app: App,
  http: Http,
  { host, name, port }: { host: string; name: string; port: number },
): Promise<HttpDoor> {
  const open = (tls: Certificate, at: number): Listener => {
    const options = { hostname: host, port: at, reusePort: true, ...OPTIONS };
    // Elysia asks this server for client addresses, and it answers for connections of all listeners.
    http.server = Bun.serve({ ...options, tls: { cert: tls.cert, key: tls.key }, fetch: http.fetch });
    return http.server;
  };
  refuseTaken(host, port);
  let newest = open(await app.certificates.current(), port);
  const own_port = Number(newest.port);
  const unsteered = await steerToNewest(own_port);
  if (unsteered !== undefined)
    app.log.warn(`a new certificate may cost a few connections at the moment it is taken: ${unsteered}`);
  let retired: { listener: Listener; timer: Timer } | undefined;
  const stopRetired = async (): Promise<void> => {
    clearTimeout(retired?.timer);
    const listener = retired?.listener;
    retired = undefined;
    await listener?.stop(false);
  };
  const forget = app.certificates.onSwap((certificate) => {
    // At most two listeners may share the port: with more, the kernel may give new connections to another than the
    // newest.
    void stopRetired();
    const listener = newest;
    newest = open(certificate, own_port);
    sayGoodBye(listener, http);
    const timer = setTimeout(stopRetired, unsteered === undefined ? IDLE_SECONDS * 1_000 : 0);
    retired = { listener, timer };
  });
  return {
    url: `https://${name}:${own_port}`,
    port: own_port,
    callers: () => callersOf(http),
    async [Symbol.asyncDispose]() {
      forget();
      await Promise.all([stopRetired(), newest.stop(false)]);
    },
  };
}

function callersOf(http: Http): Set<string> {
  const peers = callersWaiting().map((request) => http.server?.requestIP(request));
  return new Set(peers.flatMap((peer) => (peer ? peerName(plainAddress(peer.address), peer.port) : [])));
}

/**
 * Throws if another program listens on the port. Bun's listeners share it (reusePort), so the system would not report
 * that.
 */
function refuseTaken(hostname: string, port: number): void {
  if (port === 0) return;
  const socket = { data: () => undefined, open: (one: { end: () => void }) => one.end() };
  Bun.listen({ hostname, port, socket }).stop(true);
}

/** Has every connection close after its next answer, so that the client opens a new one (RFC 9112 §9.6). */
function sayGoodBye(listener: Listener, http: Http): void {
  listener.reload({
    async fetch(request) {
      const response = await http.fetch(request);
      response.headers.set("connection", "close");
      return response;
    },
  });
}
