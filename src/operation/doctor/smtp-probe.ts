import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { waitLimit } from "../../lib/wait-limit.ts";

const MAX_REPLY_CHARS = 4_096;

/** An SMTP session with a mail server, one command at a time. */
export interface SmtpProbe extends Disposable {
  /** The server's greeting. */
  greeting: string;
  /** Sends a command and returns the whole reply. Rejects where the server had sent more than it was asked for. */
  ask(command: string): Promise<string>;
  /** Starts TLS, after STARTTLS was accepted. */
  secure(options: { servername: string; ca?: string }): Promise<TLSSocket>;
}

/** Connects to a mail server. Rejects without a connection, or without a greeting in time. */
export async function openSmtp(to: { host: string; port: number; timeout_ms: number }): Promise<SmtpProbe> {
  const socket = connect({ host: to.host, port: to.port });
  const words = { host: to.host, port: to.port };
  const { read, refuseMore } = readerOf(socket, to.timeout_ms, words);
  try {
    const greeting = await read();
    return {
      greeting,
      async ask(command) {
        refuseMore();
        socket.write(`${command}\r\n`);
        return read();
      },
      secure: ({ servername, ca }) => secured(socket, { servername, ca, timeout_ms: to.timeout_ms }),
      [Symbol.dispose]: () => void socket.destroy(),
    };
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

function readerOf(socket: Socket, timeout_ms: number, at: { host: string; port: number }) {
  let text = "";
  let ended: Error | undefined;
  let wake = (): void => {};
  const end = (error: Error): void => {
    ended ??= error;
    wake();
  };
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    text += chunk;
    if (text.length > MAX_REPLY_CHARS) end(new Error(`${at.host} says more than a mail server would.`));
    wake();
  });
  socket.on("error", end);
  socket.on("close", () => end(new Error(`${at.host} closed the connection.`)));
  const refuseMore = (): void => {
    if (text.trim() !== "") throw new Error(`${at.host} says more than it was asked.`);
  };
  const read = async (): Promise<string> => {
    const timer = waitLimit(timeout_ms, () =>
      end(new Error(`${at.host} did not answer on port ${at.port} in time.`)),
    );
    try {
      for (;;) {
        // RFC 5321 §4.2.1: the last line has a space behind its code.
        const reply = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/.exec(text)?.[0];
        if (reply !== undefined) {
          text = text.slice(reply.length);
          return reply.trim();
        }
        if (ended) throw ended;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      timer.clear();
    }
  };
  return { read, refuseMore };
}

function secured(
  socket: Socket,
  { servername, ca, timeout_ms }: { servername: string; ca: string | undefined; timeout_ms: number },
): Promise<TLSSocket> {
  socket.removeAllListeners("data");
  return handshake(
    connectTls({ socket, servername, rejectUnauthorized: false, ...(ca === undefined ? {} : { ca }) }),
    timeout_ms,
  );
}

/** Resolves once the TLS handshake is done, whatever the certificate is. */
export async function handshake(socket: TLSSocket, timeout_ms: number): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = waitLimit(timeout_ms, () => reject(new Error("TLS did not come about in time.")));
  socket.once("secureConnect", () => resolve());
  socket.on("error", reject);
  socket.once("close", () => reject(new Error("The connection was closed before TLS stood.")));
  try {
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    timer.clear();
  }
}
