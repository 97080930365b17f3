import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

export const STAGES = ["greeting", "EHLO", "MAIL", "RCPT", "DATA", "mail"] as const;
type Stage = (typeof STAGES)[number];

/** A reply that answers nothing: in one piece with the one to this stage, before or behind it, or so much later. */
export interface Stray {
  stage: Stage;
  reply: string;
  when: "before" | "behind" | number;
}

interface Options {
  pipelining: boolean;
  /** What it says of the mail with this number, which it counts itself. */
  word?: (mail: number) => string;
  /** What else a session says at its mail with this number. */
  strays?: (session: number, mail: number) => Stray[];
  /** What it says in the middle of a mail that is longer than a few pieces, of which it reads no more. */
  halfway?: string;
  /** What it says again and again once it was asked this, until it is hung up on. */
  floods?: { stage: Stage; with: string };
  /** In place of its own reply; `close` ends the session without a word. */
  instead?: (stage: Stage) => string | undefined;
}

export interface Talker extends AsyncDisposable {
  port: number;
  /** The Message-IDs of the mails it took, as often as it did. */
  taken: string[];
  /** The same of all it was given to the last dot. */
  given: string[];
  sessions: number;
  /** The bytes of its flood that were taken. */
  flooded: number;
}

type Told = Omit<Talker, "port" | keyof AsyncDisposable>;

/** A mail server that says more than it is asked. It answers what it was asked in order, each command once. */
export async function startTalker(options: Options): Promise<Talker> {
  const sockets = new Set<Socket>();
  const talker: Told = { taken: [], given: [], sessions: 0, flooded: 0 };
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined).on("close", () => sockets.delete(socket)));
    talk(socket, talker, options);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(talker, {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  });
}

function flood(socket: Socket, talker: Told, words: string): void {
  const much = words.repeat(Math.ceil(65_536 / words.length));
  const more = (): void => {
    talker.flooded += much.length;
    if (!socket.destroyed && talker.flooded < 50_000_000) socket.write(much, () => setImmediate(more));
  };
  more();
}

function talk(socket: Socket, talker: Told, options: Options): void {
  const session = (talker.sessions += 1);
  let mail = 0;
  let text = "";
  // Between its 354 and its word a reply that comes apart from both cannot be told from that word.
  let in_mail = false;
  const say = (stage: Stage, own: string): void => {
    const reply = options.instead?.(stage) ?? own;
    if (reply === "close") return void socket.end();
    if (options.floods?.stage === stage) return flood(socket, talker, options.floods.with);
    const strays = (options.strays?.(session, mail) ?? []).filter((one) => one.stage === stage);
    const at = (when: Stray["when"]) =>
      strays
        .filter((one) => one.when === when)
        .map((one) => `${one.reply}\r\n`)
        .join("");
    const before = at("before");
    if (stage === "mail") in_mail = false;
    if (stage === "DATA") in_mail = true;
    socket.write(`${before}${reply}\r\n${at("behind")}`);
    for (const { reply: later, when } of strays)
      if (typeof when === "number")
        setTimeout(() => socket.writable && !in_mail && socket.write(`${later}\r\n`), when);
  };
  const end = (raw: string): void => {
    mail += 1;
    const id = /^Message-ID: <(.*)>/m.exec(raw)?.[1] ?? "";
    talker.given.push(id);
    const word = options.word?.(talker.given.length) ?? "250 2.0.0 kept";
    if (word.startsWith("250")) talker.taken.push(id);
    say("mail", word);
  };
  const answer = (line: string): void => {
    const verb = line.slice(0, 4).toUpperCase();
    if (verb === "EHLO") say("EHLO", options.pipelining ? "250-talker\r\n250 PIPELINING" : "250 talker");
    else if (verb === "MAIL") say("MAIL", "250 2.1.0 sender ok");
    else if (verb === "RCPT") say("RCPT", "250 2.1.5 recipient ok");
    else if (verb === "DATA") say("DATA", "354 go ahead");
    else if (verb === "QUIT") socket.end("221 2.0.0 bye\r\n");
    else socket.write("500 what?\r\n");
  };
  say("greeting", "220 talker ESMTP");
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    text += chunk;
    for (;;) {
      const mark = !in_mail ? "\r\n" : "\r\n.\r\n";
      const to = text.indexOf(mark);
      if (to === -1) {
        if (in_mail && options.halfway !== undefined && text.length > 65_536)
          socket.pause().write(`${options.halfway}\r\n`);
        return;
      }
      const item = text.slice(0, to);
      text = text.slice(to + mark.length);
      if (!in_mail) answer(item);
      else end(item);
    }
  });
}
