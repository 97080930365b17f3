import type { SMTPServer } from "smtp-server";
import type { App } from "../app.ts";
import { MOST_NETWORKS, networksAround } from "../net/networks.ts";
import type { Visits } from "../inbound/visits.ts";

type Connection = SMTPServer["connections"] extends Set<infer One> ? One : never;

interface Session {
  connection: Connection;
  networks: string[];
  moved_ms: number;
}

/** One session is ended at a time for each thousand connections that may be open. */
const SESSIONS_FOR_ONE = 1_000;
const CROWDED = "Too many connections are open, and yours is one of many; please try again later";

/**
 * Ends a session when the maximum is open, so that a new client gets in: of the network with the most sessions, the one
 * that has made no progress with a mail for longest. A session whose mail is being answered is never ended, nor one
 * from the operator's own networks. A new client from that largest network is refused instead.
 */
export function createRoom(app: App, visits: Visits) {
  const { max_connections } = app.config.smtp;
  // With a large limit several sessions end at once, because looking through all of them takes time.
  const at_once = Math.ceil(max_connections / SESSIONS_FOR_ONE);
  const known = new WeakMap<Connection, string[]>();
  const networksOf = (connection: Connection): string[] => {
    const networks = known.get(connection) ?? networksAround(connection.remoteAddress);
    known.set(connection, networks);
    return networks;
  };
  const sessionOf = (connection: Connection): Session[] => {
    const visit = visits.of(connection.id);
    if (visit?.known === true || visit?.awaits_answer === true) return [];
    // A session that waits for its greeting has no visit yet.
    return [{ connection, networks: networksOf(connection), moved_ms: visit?.moved_ms ?? Infinity }];
  };
  return (connections: Set<Connection>, newcomer: string): void => {
    if (connections.size < max_connections || !visits.mayCome(newcomer)) return;
    const crowd = crowdOf([...connections].flatMap(sessionOf)).sort((a, b) => a.moved_ms - b.moved_ms);
    const [own] = networksAround(newcomer).slice(-1);
    for (const { connection, networks } of crowd.slice(0, at_once)) {
      if (networks.at(-1) === own) return;
      app.metrics.count("mailwright_mails_refused_total", { reason: "too_many_connections" });
      connection.send(421, CROWDED, "4.7.0");
    }
  };
}

/**
 * Returns the sessions of the network with the most sessions, then of the network within it with the most, and so on;
 * where several networks have as many, those of all of them.
 */
function crowdOf(sessions: Session[]): Session[] {
  let crowd = sessions;
  for (let depth = 0; depth < MOST_NETWORKS; depth++) {
    const groups = [...Map.groupBy(crowd, ({ networks }) => networks[depth] ?? networks.at(-1)).values()];
    const most = groups.reduce((size, { length }) => Math.max(size, length), 0);
    crowd = groups.filter(({ length }) => length === most).flat();
  }
  return crowd;
}
