import SMTPConnection from "nodemailer/lib/smtp-connection";
import { quote } from "../../lib/quote.ts";
import { matchReplies } from "./matched-smtp.ts";
import type { SenderOptions } from "./send.ts";
import { readRelayUrl } from "./send-relay.ts";

/** The members of a session that the library keeps to itself: it has no command of its own that sends nothing. */
interface Commands {
  _sendCommand(command: string): void;
  _responseActions: ((reply: string) => void)[];
}

export interface RefusedSender {
  sender: string;
  reply: string;
}

/**
 * Asks the relay whether it takes mail from each of these senders, and sends nothing; "" is the null sender. Returns those
 * that it refuses for good. Many a relay says so only once a recipient is named. Rejects where there is no session.
 */
export async function trySenders(
  options: Pick<SenderOptions, "relay_url" | "hostname" | "egress_allow">,
  senders: string[],
  timeout_ms: number,
): Promise<RefusedSender[]> {
  matchReplies();
  const { transport } = readRelayUrl(options);
  const session = new SMTPConnection({
    ...transport,
    name: options.hostname,
    connectionTimeout: timeout_ms,
    greetingTimeout: timeout_ms,
    socketTimeout: 2 * timeout_ms,
  });
  const { promise: broken, reject } = Promise.withResolvers<never>();
  broken.catch(() => undefined);
  session.on("error", reject);
  session.on("end", () => reject(new Error("The relay closed the connection.")));
  const step = <T>(begin: (done: (fault: Error | null | undefined, value?: T) => void) => void) =>
    Promise.race([
      broken,
      new Promise<T | undefined>((resolve, refuse) =>
        begin((fault, value) => (fault ? refuse(fault) : resolve(value))),
      ),
    ]);
  const commands = session as unknown as Commands;
  const ask = (command: string) =>
    step<string>((done) => {
      commands._responseActions.push((reply) => done(null, reply));
      commands._sendCommand(command);
    });
  try {
    await step((done) => session.connect((fault) => done(fault)));
    if ("auth" in transport) {
      const { auth } = transport;
      await step((done) => session.login({ credentials: auth }, (fault) => done(fault)));
    }
    const refused: RefusedSender[] = [];
    for (const sender of senders) {
      const reply = (await ask(`MAIL FROM:<${sender}>`)) ?? "";
      if (reply.startsWith("5")) refused.push({ sender, reply: quote(reply, []) });
      await ask("RSET");
    }
    session.quit();
    return refused;
  } finally {
    session.close();
  }
}
