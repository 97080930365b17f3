import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";

const PATIENCE_MS = 5_000;

/** What a door shows to somebody who came for a name. */
export interface Shown {
  /** Whether its chain goes back to the root and it is for the name. */
  valid: boolean;
  fingerprint: string;
}

export interface Visit {
  port: number;
  name: string;
  /** PEM. */
  root: string;
}

/** What the HTTPS listener on a port shows. */
export async function shownByHttps(visit: Visit): Promise<Shown> {
  return shakeHands(connectTcp(visit.port, "127.0.0.1"), visit);
}

/** What the SMTP listener on a port shows after STARTTLS. */
export async function shownBySmtp(visit: Visit): Promise<Shown> {
  const socket = connectTcp(visit.port, "127.0.0.1");
  await line(socket, /^220 /m);
  socket.write("EHLO client.example\r\n");
  await line(socket, /^250 /m);
  socket.write("STARTTLS\r\n");
  await line(socket, /^220 /m);
  return shakeHands(socket, visit);
}

async function shakeHands(socket: Socket, { name, root }: Visit): Promise<Shown> {
  const secure = connect({ socket, ca: root, servername: name, rejectUnauthorized: false });
  await once(secure, "secureConnect", { signal: AbortSignal.timeout(PATIENCE_MS) });
  const shown = { valid: secure.authorized, fingerprint: fingerprintOf(secure) };
  secure.destroy();
  return shown;
}

export function fingerprintOf(secure: TLSSocket): string {
  return secure.getPeerCertificate().fingerprint256;
}

/** Reads until a line fits. */
export async function line(socket: Socket | TLSSocket, form: RegExp): Promise<string> {
  let text = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const read = (chunk: Buffer): void => {
    text += chunk.toString("latin1");
    if (form.test(text)) resolve(text);
  };
  const end = (): void => reject(new Error(`The connection ended after "${text}"`));
  // A socket that is reset beneath its TLS does not always say so.
  const timer = setTimeout(end, PATIENCE_MS);
  socket.on("data", read).on("error", reject).on("close", end);
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off("data", read).off("error", reject).off("close", end);
  });
}
