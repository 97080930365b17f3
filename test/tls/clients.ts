/**
 * Clients of both doors in a process of their own: `bun test/tls/clients.ts PLAN`. They go on until their standard
 * input ends. A Report is printed for each certificate that a door has not shown before, for each line of the input
 * once all connections that were being made have sent something, and at the end.
 */
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fingerprintOf, line } from "./doors.ts";

export interface Plan {
  https_port: number;
  smtp_port: number;
  name: string;
  root: string;
}

export interface Report {
  /** Requests that were answered, and certificates that were seen. */
  http: { answered: number; certificates: number };
  /** Sessions that took a command over STARTTLS. */
  smtp: { answered: number; certificates: number };
  /** Lines of the input that have been done. */
  turns: number;
  failures: string[];
}

const CLIENTS_OF_A_KIND = 4;
/** How long a slow client stops in the middle of its request. */
const PAUSE_MS = 300;
const PATIENCE_MS = 3_000;
const FIRST_HALF = "GET /livez HTTP/1.1\r\nHost: www.mw.test\r\n";

async function main(plan: Plan): Promise<void> {
  const seen = { http: new Set<string>(), smtp: new Set<string>() };
  const answered = { http: 0, smtp: 0 };
  const failures: string[] = [];
  const ending = new AbortController();
  const opening = new Set<Promise<TLSSocket>>();
  let turns = 0;

  const print = (): void => {
    const report: Report = {
      http: { answered: answered.http, certificates: seen.http.size },
      smtp: { answered: answered.smtp, certificates: seen.smtp.size },
      turns,
      failures,
    };
    console.log(JSON.stringify(report));
  };
  const secure = async (socket: ReturnType<typeof connectTcp>, door: "http" | "smtp"): Promise<TLSSocket> => {
    const made = connect({ socket, ca: plan.root, servername: plan.name });
    // See `line`.
    await once(made, "secureConnect", { signal: AbortSignal.timeout(PATIENCE_MS) });
    const known = seen[door].size;
    if (seen[door].add(fingerprintOf(made)).size > known) print();
    return made;
  };
  const https = async (): Promise<TLSSocket> => {
    const made = secure(connectTcp(plan.https_port, "127.0.0.1"), "http");
    opening.add(made);
    return made.finally(() => opening.delete(made));
  };
  process.stdin.once("end", () => ending.abort());
  process.stdin.on("data", async () => {
    await Promise.allSettled(opening);
    // What was waiting for them has begun to ask.
    await nextTurn();
    turns += 1;
    print();
  });
  /** True when the server keeps the connection. */
  const ask = async (socket: TLSSocket, pause_ms = 0): Promise<boolean> => {
    socket.write(FIRST_HALF);
    if (pause_ms > 0) await Bun.sleep(pause_ms);
    socket.write("\r\n");
    const answer = await line(socket, /"ok"\}/);
    if (!answer.startsWith("HTTP/1.1 200")) throw new Error(answer);
    answered.http += 1;
    return !/^connection: close/im.test(answer);
  };

  const kinds: Record<string, () => Promise<void>> = {
    async "a new connection for each request"() {
      const socket = await https();
      await ask(socket);
      socket.destroy();
    },
    async "one connection for as long as the server keeps it"() {
      const socket = await https();
      let kept = await ask(socket);
      while (!ending.signal.aborted && kept) {
        await Bun.sleep(1);
        kept = await ask(socket).catch(unlessClosed);
      }
      socket.destroy();
    },
    async "a request with a pause in it"() {
      const socket = await https();
      await ask(socket, PAUSE_MS);
      socket.destroy();
    },
    async "a session with STARTTLS"() {
      const plain = connectTcp(plan.smtp_port, "127.0.0.1");
      await line(plain, /^220 /m);
      plain.write("EHLO client.example\r\n");
      await line(plain, /^250 /m);
      plain.write("STARTTLS\r\n");
      await line(plain, /^220 /m);
      const socket = await secure(plain, "smtp");
      socket.write("EHLO client.example\r\n");
      await line(socket, /^250 /m);
      await Bun.sleep(PAUSE_MS / 10);
      socket.write("NOOP\r\n");
      await line(socket, /^250 /m);
      answered.smtp += 1;
      socket.destroy();
    },
  };
  const client = async (name: string, once: () => Promise<void>): Promise<void> => {
    while (!ending.signal.aborted)
      await once().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  };
  await Promise.all(
    Object.entries(kinds).flatMap(([name, once]) =>
      Array.from({ length: CLIENTS_OF_A_KIND }, () => client(name, once)),
    ),
  );
  print();
}

/** A kept connection may be closed before a further request; clients then make another (RFC 9112 §9.3.1). */
function unlessClosed(error: unknown): false {
  if (!/ECONNRESET|ended after ""/.test(String(error))) throw error;
  return false;
}

await main(JSON.parse(process.argv[2] ?? "") as Plan);
process.exit(0);
