import { createConnection, createServer, type Socket } from "node:net";
import { DOMAIN, SENDER } from "./support.ts";

/** A mail of about `bytes`, with a Message-ID of its own: `<name@client.example>`. */
export function mailOf(name: string, bytes: number, text = "What is six times seven?"): string {
  const head = [
    `From: Ada <${SENDER}>`,
    `To: inbox@${DOMAIN}`,
    `Subject: ${name}`,
    `Message-ID: <${name}@client.example>`,
    "Date: Fri, 03 May 2024 10:00:00 +0000",
    "MIME-Version: 1.0",
    "Content-Type: text/plain; charset=utf-8",
    "",
    text,
    // Below the signature mark, so that it is read and stored but not taken for the instruction.
    "-- ",
  ].join("\r\n");
  const line = `\r\n${"x".repeat(70)}`;
  return head + line.repeat(Math.max(0, Math.ceil((bytes - head.length) / line.length)));
}

const BASE64_LINE = 76;

/** The same with a file of so many bytes, which lie on the disk as they are sent and as they are. */
export function mailWithFile(name: string, bytes: number, file: Buffer): string {
  const mail = mailOf(name, bytes);
  const bodyAt = mail.indexOf("\r\n\r\n");
  const head = mail.slice(0, bodyAt).replace(/^Content-Type: .*$/m, "");
  const lines = file.toString("base64").match(new RegExp(`.{1,${BASE64_LINE}}`, "g")) ?? [];
  return [
    head.trimEnd(),
    'Content-Type: multipart/mixed; boundary="part"',
    "",
    "--part",
    "Content-Type: text/plain; charset=utf-8",
    mail.slice(bodyAt + 2),
    "--part",
    'Content-Type: application/octet-stream; name="file.bin"',
    'Content-Disposition: attachment; filename="file.bin"',
    "Content-Transfer-Encoding: base64",
    "",
    ...lines,
    "--part--",
  ].join("\r\n");
}

/** Delivers one mail on a connection of its own. Gives the milliseconds from the final dot to the 250. */
export async function deliver(port: number, to: string, mail: string, host = "127.0.0.1"): Promise<number> {
  const socket = createConnection({ port, host, noDelay: true });
  const answers = repliesOf(socket);
  const say = async (line: string, expected: string): Promise<void> => {
    if (line !== "") socket.write(`${line}\r\n`);
    const { value = "nothing" } = await answers.next();
    if (!String(value).startsWith(expected)) throw new Error(`After ${line.slice(0, 40)}: ${String(value)}`);
  };
  await say("", "220");
  await say("EHLO client.example", "250");
  await say(`MAIL FROM:<${SENDER}>`, "250");
  await say(`RCPT TO:<${to}>`, "250");
  await say("DATA", "354");
  socket.write(mail);
  const started = performance.now();
  await say("\r\n.", "250");
  const took = performance.now() - started;
  socket.end("QUIT\r\n");
  return took;
}

/** Returns the code that answers a mail, whatever it is; dots at the beginning of its lines are doubled. */
export async function speak(
  port: number,
  { from, to, mail, source = "127.0.0.1" }: { from: string; to: string; mail: string; source?: string },
): Promise<number> {
  const socket = createConnection({ port, host: "127.0.0.1", localAddress: source, noDelay: true });
  const answers = repliesOf(socket);
  const lines = ["EHLO client.example", `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, "DATA"];
  const data = `${mail.replaceAll(/\r?\n/g, "\r\n").replaceAll(/^\./gm, "..")}\r\n.\r\n`;
  let code = 0;
  for (const text of ["", ...lines.map((line) => `${line}\r\n`), data]) {
    socket.write(text);
    const { value } = await answers.next();
    code = Number(String(value).slice(0, 3));
    if (code >= 400 || Number.isNaN(code)) break;
  }
  socket.end("QUIT\r\n");
  return code;
}

/** A relay that takes everything at once; `onMail` hears the In-Reply-To of each mail when its final dot has come. */
export async function startRelay(
  onMail: (answers_to: string) => void,
): Promise<AsyncDisposable & { port: number }> {
  const server = createServer((socket) => converse(socket, onMail));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}

function converse(socket: Socket, onMail: (answers_to: string) => void): void {
  let text = "";
  let inData = false;
  socket.setNoDelay(true).write("220 relay\r\n");
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    for (;;) {
      const end = inData ? text.indexOf("\r\n.\r\n") : text.indexOf("\r\n");
      if (end === -1) return;
      const part = text.slice(0, end);
      text = text.slice(end + (inData ? 5 : 2));
      if (inData) onMail(/^In-Reply-To:\s*<([^@>]+)/im.exec(part)?.[1] ?? "");
      inData = !inData && /^DATA/i.test(part);
      socket.write(inData ? "354 go on\r\n" : "250 ok\r\n");
    }
  });
}

/** Whole replies, several lines joined. */
async function* repliesOf(socket: Socket): AsyncGenerator<string> {
  let text = "";
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    text += chunk.toString("latin1");
    if (!/^\d{3} .*\r\n$/m.test(text)) continue;
    yield text;
    text = "";
  }
}
