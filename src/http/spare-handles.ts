import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { messageOf } from "../errors.ts";
import { handleLimit, handlesInUse } from "../lib/handles.ts";
import { inNetworks, networksAround, spreadByNetwork } from "../net/networks.ts";
import {
  openTakenConnections,
  type TakenConnection,
  type TakenConnections,
} from "../net/taken-connections.ts";
import { type HttpDoor, peerName } from "./listen.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

const LOOK_MS = 250;
/** Upper limit for the number of handles taken into account: no server needs more. */
const MAX_HANDLES = 65_536;
const WARNINGS = { limit: 5, window_seconds: HOUR_SECONDS };

/**
 * Keeps a quarter of the file handles free of HTTP connections, for mail, the database and outgoing connections. Bun
 * accepts every connection, and keeps it for as long as the client sends something now and then.
 */
export async function keepHandlesBack(app: App, door: HttpDoor): Promise<AsyncDisposable> {
  let connections: TakenConnections;
  try {
    connections = await openTakenConnections();
  } catch (error) {
    app.log.warn(
      { err: messageOf(error) },
      "HTTP connections that others keep open may use up the open files: they cannot be ended here",
    );
    return { [Symbol.asyncDispose]: () => Promise.resolve() };
  }
  const doors = { connections, door, ports: portsOf(app, door) };
  let going_on = true;
  let timer: Timer | undefined;
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    await keepBack(app, doors).catch((error: unknown) =>
      app.log.error({ err: error }, "HTTP connections could not be looked through"),
    );
    if (going_on) lookLater();
  };
  const lookLater = (): void => {
    timer = setTimeout(() => (looking = look()), LOOK_MS).unref();
  };
  lookLater();
  return {
    async [Symbol.asyncDispose]() {
      going_on = false;
      clearTimeout(timer);
      await looking;
      connections[Symbol.dispose]();
    },
  };
}

interface Doors {
  connections: TakenConnections;
  door: HttpDoor;
  ports: number[];
}

/**
 * Returns the ports that anybody can connect to. Where port 0 is configured, the real port is known for the main
 * listener only.
 */
function portsOf({ config }: App, door: HttpDoor): number[] {
  const { acme, metrics, server } = config;
  const others = [server.tls === "acme" ? acme.listen : "", metrics.listen];
  const ports = others.map((listen) => splitListen(listen)?.port ?? 0).filter((port) => port > 0);
  return [door.port, ...ports];
}

/**
 * Once three quarters of the handles are in use, closes connections until half are, or until HTTP has only a quarter.
 */
async function keepBack(app: App, { connections, door, ports }: Doors): Promise<void> {
  const open = handlesInUse();
  // Reading the limit needs a handle; if that fails, all handles are in use.
  const limit = Math.min(handleLimit() ?? open, MAX_HANDLES);
  if (open <= (3 / 4) * limit) return;
  // Looks at twice as many handle numbers as are open: the lowest free number is reused first, so after closes open
  // ones may lie higher.
  const all = await connections.list(ports, 2 * Math.min(open, limit));
  const too_many = Math.min(open - limit / 2, all.length - limit / 4);
  if (too_many <= 0) return;
  const waiting = door.callers();
  const { trusted_proxies } = app.config.server;
  const others = all.filter(
    ({ address, port }) => !waiting.has(peerName(address, port)) && !inNetworks(address, trusted_proxies),
  );
  const going = leastEntitled(others, Math.ceil(too_many));
  await connections.hangUp(going);
  if (going.length > 0 && app.limiter.take("spare-handles", WARNINGS).ok)
    app.log.warn(
      { ended: going.length, limit },
      "HTTP connections were ended, of the networks with the most of them: they had nearly used up the open files",
    );
}

/** Returns the connections that have been idle longest, from the networks with the most connections. */
function leastEntitled(connections: TakenConnection[], count: number): TakenConnection[] {
  const known = connections.map((connection) => ({
    connection,
    networks: networksAround(connection.address),
  }));
  known.sort((a, b) => a.connection.idle_ms - b.connection.idle_ms);
  const stay = Math.max(0, known.length - count);
  return spreadByNetwork(known, ({ networks }) => networks)
    .slice(stay)
    .map(({ connection }) => connection);
}
