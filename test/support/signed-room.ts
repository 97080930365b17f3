import type { ConfigOverrides } from "../../src/config/config.ts";
import { startDnsServer } from "./dns-server.ts";
import {
  addressIn,
  freshId,
  mailroom,
  type Mailroom,
  READS_ANYBODY,
  signedBy,
  signingZone,
} from "./mailroom.ts";
import { type MailParts, rawMail } from "./mails.ts";

export const ADA = "Ada <ada@example.com>";
export const BOB = "Bob <bob@example.org>";

export interface SignedRoom extends Mailroom {
  /** A mail to the inbox with a signature of its sender's domain, and today's date. */
  signed(mail?: MailParts): Promise<Buffer>;
  /** Hands in a mail as it is, as whoever has a copy of it can; gives the server's last reply. */
  again(raw: Buffer, rcpt?: string | string[]): Promise<string>;
  /** What the model was asked last, above the fence. */
  instruction(): Promise<string>;
}

/** Nobody is trusted for the address of the socket: a signature is all there is. Mail without one is read as anybody's. */
export async function signedRoom({
  config = {},
  inbox = {},
}: { config?: ConfigOverrides; inbox?: Record<string, unknown> } = {}): Promise<SignedRoom> {
  await using stack = new AsyncDisposableStack();
  const zone = { ...signingZone("example.com"), ...signingZone("example.org") };
  const dns = stack.use(await startDnsServer(zone));
  const smtp = { trusted_networks: [], ...config.smtp };
  const room = stack.use(
    await mailroom({
      config: { ...config, dns: { servers: [dns.address] }, smtp },
      inbox: { ...READS_ANYBODY, ...inbox },
    }),
  );
  const built = stack.move();
  return {
    ...room,
    signed: ({ headers, ...mail } = {}) => {
      const { from = ADA } = mail;
      const date = new Date(room.clock.now()).toUTCString().replace("GMT", "+0000");
      const parts = { to: room.inbox.address, text: "Say hello.", ...mail, from };
      const fields = { Date: date, ...freshId().headers, ...headers };
      return signedBy(addressIn(from).split("@")[1] ?? "", rawMail({ ...parts, headers: fields }));
    },
    again: (raw, rcpt) =>
      room.send({ mail_from: "eve@example.net", raw, ...(rcpt === undefined ? {} : { rcpt }) }),
    async instruction() {
      await room.drain();
      const body = room.model.requests.at(-1)?.body as { messages: { content: string }[] };
      return body.messages.at(-1)?.content.split("<<DATA")[0]?.trim() ?? "";
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

/** The mail with a field in front that no signature covers. */
export function altered(raw: Buffer, field = "Reply-To: ada@example.com"): Buffer {
  return Buffer.concat([Buffer.from(`${field}\r\n`), raw]);
}

/** Hands a mail in as the author's own server does. */
export async function straight(t: SignedRoom, raw: Buffer, mail_from = "ada@example.com"): Promise<string> {
  const { smtp } = t.app.config;
  smtp.trusted_networks = ["127.0.0.0/8"];
  try {
    return await t.send({ raw, mail_from });
  } finally {
    smtp.trusted_networks = [];
  }
}
