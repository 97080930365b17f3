import { generateKeyPairSync } from "node:crypto";
import { dkimSign } from "mailauth";
import type { ConfigOverrides } from "../../src/config/config.ts";
import type { MessageRow, OutgoingMailRow } from "../../src/db/schema.ts";
import type { MailParts } from "./mails.ts";
import { rawMail } from "./mails.ts";
import { type Caller, testApp, type TestApp } from "./app.ts";
import type { DnsZone } from "./dns-server.ts";
import { type ModelServer, type ModelServerOptions, startModelServer } from "./model-server.ts";
import { forgetNotices } from "./notices.ts";
import { deliver } from "./smtp-client.ts";

const LOOPBACK = ["127.0.0.0/8"];
const signing = generateKeyPairSync("rsa", { modulusLength: 2048 });
const PUBLIC = signing.publicKey.export({ type: "spki", format: "der" }).toString("base64");
const PRIVATE = signing.privateKey.export({ type: "pkcs8", format: "pem" });

export interface Mailroom extends TestApp {
  owner: Caller;
  /** The owner's inbox and its address. */
  inbox: { id: string; address: string };
  model: ModelServer;
  door: { host: string; port: number };
  /** Hands a mail in over SMTP from the sender of its From; gives the server's last reply. */
  send(mail: RoomMail): Promise<string>;
  /** All messages as the owner's activity shows them, newest first. */
  // oxlint-disable-next-line typescript/no-explicit-any
  activity(): Promise<any[]>;
  /** The newest message with everything that is stored about it. */
  newest(): Promise<MessageRow>;
  outgoing(): Promise<OutgoingMailRow[]>;
}

export interface RoomMail extends MailParts {
  /** The envelope sender; by default the address of From. */
  mail_from?: string;
  /** The envelope recipients; by default the inbox. */
  rcpt?: string | string[];
  raw?: Buffer;
  /** The address of this machine that it comes from; by default 127.0.0.1. */
  local_address?: string;
}

export interface RoomOptions {
  config?: ConfigOverrides;
  model?: ModelServerOptions;
  /** Settings of the inbox, as in POST /inboxes. */
  inbox?: Record<string, unknown>;
  parts?: Parameters<typeof testApp>[1];
}

/** What an inbox says that works on mail which nothing proves, too. */
export const READS_ANYBODY = { inbound_policy: { process_unauthenticated: true } };

/** A server with an owner (ada@example.com), one inbox, a model, and an open SMTP door that trusts loopback. */
export async function mailroom(options: RoomOptions = {}): Promise<Mailroom> {
  await using stack = new AsyncDisposableStack();
  const model = stack.use(startModelServer(options.model));
  const { config = {} } = options;
  const t = stack.use(
    await testApp(
      {
        ...config,
        smtp: { trusted_networks: LOOPBACK, ...config.smtp },
        llm: { kind: "openai_compatible", base_url: model.base_url, model: "stand-in", ...config.llm },
      },
      options.parts,
    ),
  );
  const owner = await t.as("ada@example.com");
  const { body: inbox } = await owner.post("/inboxes", { label: "Desk", ...options.inbox });
  await forgetNotices(t.app);
  const door = await t.smtp();
  const built = stack.move();
  return {
    ...t,
    owner,
    inbox,
    model,
    door,
    send: (mail) => {
      const from = mail.from ?? "Ada <ada@example.com>";
      const peer = mail.local_address === undefined ? {} : { local_address: mail.local_address };
      return deliver(
        { ...door, ...peer },
        {
          from: mail.mail_from ?? addressIn(from),
          to: mail.rcpt ?? inbox.address,
          raw: mail.raw ?? rawMail({ to: inbox.address, ...freshId(), ...mail, from }),
        },
      );
    },
    activity: async () => (await owner.get("/messages")).body.items,
    newest: () =>
      t.app.db.selectFrom("messages").selectAll().orderBy("id", "desc").limit(1).executeTakeFirstOrThrow(),
    outgoing: () => t.app.db.selectFrom("outgoing_mails").selectAll().orderBy("id").execute(),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

/** A Message-ID that no other mail of the test has. */
export function freshId(): MailParts {
  return { headers: { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` } };
}

/** The zone of a domain that signs with `signedBy` and publishes a DMARC policy. */
export function signingZone(domain: string, dmarc: string | null = "v=DMARC1; p=none"): DnsZone {
  return {
    [domain]: { A: ["192.0.2.1"] },
    [`s._domainkey.${domain}`]: { TXT: [`v=DKIM1; k=rsa; p=${PUBLIC}`] },
    ...(dmarc === null ? {} : { [`_dmarc.${domain}`]: { TXT: [dmarc] } }),
  };
}

/** The mail with a DKIM signature of the domain in front. */
export async function signedBy(domain: string, raw: Buffer): Promise<Buffer> {
  const key = { signingDomain: domain, selector: "s", privateKey: PRIVATE };
  const { signatures } = await dkimSign(raw, { ...key, signatureData: [key] });
  return Buffer.concat([Buffer.from(signatures), raw]);
}

export function addressIn(from: string): string {
  return /<([^<>]*)>/.exec(from)?.[1] ?? from;
}
