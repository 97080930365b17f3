import { once } from "node:events";
import { connect, type Socket } from "node:net";

const REPLY_MS = 20_000;

/** A client that says exactly the bytes it is told to, well-behaved or not. */
export interface RawClient extends Disposable {
  socket: Socket;
  /** Every complete reply so far, the lines of one joined by line feeds. */
  replies: string[];
  /** The next reply that no earlier call has given out; "" once the server has closed the connection. */
  reply(): Promise<string>;
  /** Writes a command line and waits for its reply. */
  say(line: string): Promise<string>;
  write(bytes: string | Uint8Array): void;
  /** Each piece in a TCP write of its own, with a turn of the event loop behind it so that the server reads it alone. */
  writePieces(pieces: Iterable<Uint8Array>): Promise<void>;
  /** Goes away without a word (a reset). */
  abort(): void;
}

export interface SmtpAddress {
  host: string;
  port: number;
}

/** Connects and, unless told otherwise, waits for the greeting. */
export async function rawClient(address: SmtpAddress, greeting = true): Promise<RawClient> {
  const socket = connect(address.port, address.host);
  socket.setNoDelay(true);
  socket.on("error", () => undefined);
  const client = talk(socket);
  await once(socket, "connect");
  if (greeting) await client.reply();
  return client;
}

/** Connects as whom a header of the PROXY protocol names, and waits for the greeting. */
export async function connectAs(
  door: SmtpAddress,
  address: string,
): Promise<{ client: RawClient; greeting: string }> {
  const client = await rawClient(door, false);
  const family = address.includes(":") ? "TCP6" : "TCP4";
  client.write(`PROXY ${family} ${address} ${family === "TCP6" ? "::1" : "127.0.0.1"} 1 25\r\n`);
  return { client, greeting: await client.reply() };
}

/** Greets and names sender and recipients, up to the 354 that asks for the mail. */
export async function upToData(client: RawClient, from: string, to: string[]): Promise<void> {
  await expectReply(client, "EHLO client.test", "250");
  await expectReply(client, `MAIL FROM:<${from}>`, "250");
  for (const address of to) await expectReply(client, `RCPT TO:<${address}>`, "250");
  await expectReply(client, "DATA", "354");
}

/** RFC 5321 §4.5.2, for lines as §2.3.8 has them: a dot at the start of a line is doubled. Latin-1 strings. */
export function dotStuffed(content: string): string {
  return content.replaceAll(/(^|\r\n)\./g, "$1..");
}

async function expectReply(client: RawClient, line: string, code: string): Promise<void> {
  const reply = await client.say(line);
  if (!reply.startsWith(code)) throw new Error(`"${line}" was answered with "${reply}"`);
}

function talk(socket: Socket): RawClient {
  const replies: string[] = [];
  let given = 0;
  const ended = new AbortController();
  let wake = Promise.withResolvers<void>();
  const news = (): void => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  readReplies(socket, (reply) => {
    replies.push(reply);
    news();
  });
  socket.on("close", () => {
    ended.abort();
    news();
  });
  const client: RawClient = {
    socket,
    replies,
    async reply() {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => late.reject(new Error("the server gave no reply")), REPLY_MS);
      try {
        while (given >= replies.length && !ended.signal.aborted)
          await Promise.race([wake.promise, late.promise]);
      } finally {
        clearTimeout(timer);
      }
      return replies[given++] ?? "";
    },
    say(line) {
      socket.write(`${line}\r\n`);
      return client.reply();
    },
    write: (bytes) => void socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes),
    async writePieces(pieces) {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    },
    abort: () => socket.resetAndDestroy(),
    [Symbol.dispose]: () => socket.destroy(),
  };
  return client;
}

function readReplies(socket: Socket, take: (reply: string) => void): void {
  let rest = "";
  let lines: string[] = [];
  socket.on("data", (chunk) => {
    const parts = (rest + chunk.toString("utf8")).split("\r\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      lines.push(line);
      if (line[3] === "-") continue;
      take(lines.join("\n"));
      lines = [];
    }
  });
}
