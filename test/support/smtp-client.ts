import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

export interface SmtpClient extends AsyncDisposable {
  /** What the server greeted with. */
  greeting: string;
  /** Sends one line and gives the whole reply, its lines joined by `\n`. */
  say(line: string): Promise<string>;
  /** Sends and expects, pair by pair: a text is how the reply begins, a list its lines one by one. */
  script(pairs: [line: string, reply: string | string[]][]): Promise<void>;
  /** The next reply, to something written before. */
  reply(): Promise<string>;
  /** Sends bytes as they are. */
  write(bytes: string | Uint8Array): void;
  /** STARTTLS and the handshake; the session goes on encrypted. Gives the certificate's common name. */
  startTls(): Promise<string>;
  /** One whole mail; the last reply, which is the first refusal where the server will not have it. */
  deliver(mail: Envelope): Promise<string>;
  /** Resolves when the server has closed the connection. */
  closed: Promise<unknown>;
}

export interface Envelope {
  /** "" is the null reverse-path. */
  from: string;
  to: string | string[];
  raw: string | Uint8Array;
}

/** An SMTP server, and the address of this machine that it is spoken to from, where that matters. */
interface Peer {
  host: string;
  port: number;
  local_address?: string;
}

/** A session with an SMTP server, byte for byte. It has been greeted, but has not said EHLO. */
export async function smtpClient({ host, port, local_address }: Peer): Promise<SmtpClient> {
  const own = local_address === undefined ? {} : { localAddress: local_address };
  let socket: Socket | TLSSocket = connectTcp({ host, port, ...own });
  // From the beginning: a server that shuts down may take the connection and reset it in the same turn.
  let replies = replyReader(socket);
  // Not `once`, which rejects when the connection ends in a reset.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  await Promise.race([once(socket, "connect"), closed]);
  const write = (bytes: string | Uint8Array): void => void socket.write(bytes);
  const say = (line: string): Promise<string> => {
    write(`${line}\r\n`);
    return replies.next();
  };
  const greeting = await replies.next();
  return {
    greeting,
    say,
    write,
    closed,
    reply: () => replies.next(),
    async script(pairs) {
      for (const [line, expected] of pairs) {
        const reply = await say(line);
        const fits = Array.isArray(expected) ? reply === expected.join("\n") : reply.startsWith(expected);
        if (!fits)
          throw new Error(`"${line.slice(0, 200)}" was answered "${reply}", not "${String(expected)}"`);
      }
    },
    async startTls() {
      const ready = await say("STARTTLS");
      if (!ready.startsWith("220")) throw new Error(`STARTTLS was answered "${ready}"`);
      const secure = connectTls({ socket, rejectUnauthorized: false, servername: "mx.mw.test" });
      await once(secure, "secureConnect");
      socket = secure;
      replies = replyReader(secure);
      return String(secure.getPeerCertificate().subject.CN);
    },
    async deliver({ from, to, raw }) {
      for (const line of [`MAIL FROM:<${from}>`, ...[to].flat().map((one) => `RCPT TO:<${one}>`), "DATA"]) {
        const reply = await say(line);
        if (!/^[23]/.test(reply)) return reply;
      }
      write(stuffed(raw));
      return say(".");
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
      await closed;
    },
  };
}

/** One mail in a session of its own; gives the last reply. */
export async function deliver(server: Peer, mail: Envelope): Promise<string> {
  await using client = await smtpClient(server);
  await client.say("EHLO client.example");
  const reply = await client.deliver(mail);
  await client.say("QUIT");
  return reply;
}

/** RFC 5321 §4.5.2, with a line end behind the last line. */
function stuffed(raw: string | Uint8Array): Buffer {
  const text = Buffer.from(raw).toString("latin1").replace(/^\./gm, "..");
  return Buffer.from(text.endsWith("\r\n") ? text : `${text}\r\n`, "latin1");
}

/** Cuts what comes into whole replies (RFC 5321 §4.2.1); after the end every read gives "". */
function replyReader(socket: Socket): { next(): Promise<string> } {
  let text = "";
  let ended = false;
  const replies: string[] = [];
  const waiting: ((reply: string) => void)[] = [];
  const hand = (reply: string): void => {
    const waiter = waiting.shift();
    if (waiter) waiter(reply);
    else replies.push(reply);
  };
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
    for (let end = lastLineOf(text); end; end = lastLineOf(text)) {
      hand(text.slice(0, end).replaceAll("\r\n", "\n").trimEnd());
      text = text.slice(end);
    }
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    ended = true;
    for (const waiter of waiting.splice(0)) waiter("");
  });
  return {
    async next() {
      const ready = replies.shift();
      if (ready !== undefined || ended) return ready ?? "";
      return new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** Where the first whole reply ends, or 0. */
function lastLineOf(text: string): number {
  const found = /^\d{3}(?: [^\r\n]*)?\r\n/m.exec(text);
  return found ? found.index + found[0].length : 0;
}
