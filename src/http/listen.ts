import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { plainAddress } from "../net/networks.ts";
import { listenFault } from "../lib/start-faults.ts";
import { steerToNewest } from "../net/steer-port.ts";
import type { Certificate } from "../tls/pem.ts";
import { callersWaiting } from "./callers.ts";
import type { Elysia } from "elysia";

/** Bun closes a connection that sends more, before our own cap can explain itself. */
const MAX_REQUEST_BYTES = 64 * 1_048_576;
const IDLE_SECONDS = 240;
const OPTIONS = { idleTimeout: IDLE_SECONDS, maxRequestBodySize: MAX_REQUEST_BYTES, development: false };

interface Http extends Pick<Elysia, "server"> {
  fetch: (request: Request) => Response | Promise<Response>;
  listen: (options: Partial<Bun.Serve.HostnamePortServeOptions<unknown>>) => unknown;
}
type Listener = NonNullable<Http["server"]>;

export interface HttpDoor extends AsyncDisposable {
  /** `http://host:port` it listens on. */
  url: string;
  port: number;
  /** The connections on which somebody with a credential waits for an answer, by `peerName`. */
  callers: () => Set<string>;
}

/** Tells a connection of a door from its others; the address is a `plainAddress`. */
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
    // Elysia's own default lets a second server share the port without a word.
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
 * With TLS. Bun reads the certificate when it begins to listen, so a new one needs a second listener on the port. The
 * kernel gives that one all new connections; the first goes on for those it has, and bids them good-bye one by one.
 */
async function listenSecurely(
  app: App,
  http: Http,
  { host, name, port }: { host: string; name: string; port: number },
): Promise<HttpDoor> {
  const open = (tls: Certificate, at: number): Listener => {
    const options = { hostname: host, port: at, reusePort: true, ...OPTIONS };
    // It tells the address of a client, whichever of the listeners the client came to.
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
    // At most two share the port, or it would be another than the newest that gets the new connections.
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

/** A port that may be shared is shared without a word, so somebody else on it is looked for before. */
function refuseTaken(hostname: string, port: number): void {
  if (port === 0) return;
  const socket = { data: () => undefined, open: (one: { end: () => void }) => one.end() };
  Bun.listen({ hostname, port, socket }).stop(true);
}

/** RFC 9112 §9.6: from now on each connection ends with its next answer, and the client makes a new one. */
function sayGoodBye(listener: Listener, http: Http): void {
  listener.reload({
    async fetch(request) {
      const response = await http.fetch(request);
      response.headers.set("connection", "close");
      return response;
    },
  });
}
