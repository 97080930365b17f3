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

/** For each thousand that may be open one session is ended at a time. */
const SESSIONS_FOR_ONE = 1_000;
const CROWDED = "Too many connections are open, and yours is one of many; please try again later";

/**
 * Ends a session when all that may be open at once are, so that a newcomer is not the one to go: of the network that has
 * the most of them, the one that has not gone on with a mail for longest. None whose whole mail is being answered, none of the
 * operator's, and none for a newcomer from that network itself, who is refused.
 */
export function createRoom(app: App, visits: Visits) {
  const { max_connections } = app.config.smtp;
  // A large door ends some at once, so that newcomers share the time that it takes to look through all.
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
    // One that waits for its greeting is no visit yet.
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

/** Those of the largest network with the most, of the networks in it with the most, and so on; of all that have as many. */
function crowdOf(sessions: Session[]): Session[] {
  let crowd = sessions;
  for (let depth = 0; depth < MOST_NETWORKS; depth++) {
    const groups = [...Map.groupBy(crowd, ({ networks }) => networks[depth] ?? networks.at(-1)).values()];
    const most = groups.reduce((size, { length }) => Math.max(size, length), 0);
    crowd = groups.filter(({ length }) => length === most).flat();
  }
  return crowd;
}
