import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { messageOf } from "../errors.ts";
import { handleLimit, handlesInUse } from "../lib/handles.ts";
import { inNetworks, inTurns, networksAround } from "../net/networks.ts";
import {
  openTakenConnections,
  type TakenConnection,
  type TakenConnections,
} from "../net/taken-connections.ts";
import { type HttpDoor, peerName } from "./listen.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

const LOOK_MS = 250;
/** The most handles that count, however many the process may have: no more are needed for anything. */
const MAX_HANDLES = 65_536;
const WARNINGS = { limit: 5, window_seconds: HOUR_SECONDS };

/**
 * Keeps a quarter of the file handles back from the HTTP doors, for mail, the database and what goes out. Bun's server
 * takes every connection, and lets each stay for as long as its client says something now and then.
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
 * The ports at which strangers connect. Where port 0 is configured, the real one is known of the first listener
 * alone.
 */
function portsOf({ config }: App, door: HttpDoor): number[] {
  const { acme, metrics, server } = config;
  const others = [server.tls === "acme" ? acme.listen : "", metrics.listen];
  const ports = others.map((listen) => splitListen(listen)?.port ?? 0).filter((port) => port > 0);
  return [door.port, ...ports];
}

/** Once three quarters of the handles are in use, ends connections until half of them are, or HTTP has a quarter. */
async function keepBack(app: App, { connections, door, ports }: Doors): Promise<void> {
  const open = handlesInUse();
  // The limit cannot be read without a handle; then all that there may be are open.
  const limit = Math.min(handleLimit() ?? open, MAX_HANDLES);
  if (open <= (3 / 4) * limit) return;
  // The system gives out the lowest free handle, and some have been closed since: so twice as many are looked at.
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

/** Returns the connections that have been idle for longest, in the networks that have the most. */
function leastEntitled(connections: TakenConnection[], count: number): TakenConnection[] {
  const known = connections.map((connection) => ({
    connection,
    networks: networksAround(connection.address),
  }));
  known.sort((a, b) => a.connection.idle_ms - b.connection.idle_ms);
  const stay = Math.max(0, known.length - count);
  return inTurns(known, ({ networks }) => networks)
    .slice(stay)
    .map(({ connection }) => connection);
}
