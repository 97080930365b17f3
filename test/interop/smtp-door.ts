import type { ConfigOverrides } from "../../src/config/config.ts";
import { readBytes } from "../../src/resources/messages/stored-bytes.ts";
import { testApp } from "../support/app.ts";
import { rawClient, upToData } from "./raw-client.ts";

export const OWNER = "ann@peer.test";

/** An app with one account, one inbox and an open SMTP door, where mail from loopback is believed and no cap is in the way. */
export async function smtpDoor(overrides: ConfigOverrides = {}, parts: Parameters<typeof testApp>[1] = {}) {
  await using built = new AsyncDisposableStack();
  const t = built.use(
    await testApp(
      {
        llm: { kind: "demo" },
        ...overrides,
        smtp: { trusted_networks: ["127.0.0.0/8"], ...overrides.smtp },
        plans: { ...overrides.plans, team: { inbound_per_hour: 0, ...overrides.plans?.team } },
        limits: {
          replies_per_conversation_hour: 0,
          replies_per_sender_hour: 0,
          inbound_per_sender_hour: 0,
          inbound_per_sender_day: 0,
          replies_per_sender_day: 0,
          same_body_per_hour: 0,
        },
      },
      parts,
    ),
  );
  const owner = await t.as(OWNER);
  const inbox: string = (await owner.post("/inboxes", {})).body.address;
  const address = await t.smtp();
  const stack = built.move();
  const read: string[] = [];
  let newest = "";
  return {
    ...t,
    owner,
    inbox,
    address,
    /** The mails in the store, oldest first, byte for byte as Latin-1. Each is read once, for some are of megabytes. */
    async stored(): Promise<string[]> {
      const rows = await t.app.db
        .selectFrom("raw_mails")
        .selectAll()
        .where("id", ">", newest)
        .orderBy("id")
        .execute();
      for (const row of rows) {
        read.push(Buffer.from((await readBytes(t.app, "raw_mails", row)) ?? []).toString("latin1"));
        newest = row.id;
      }
      return read.slice();
    },
    /** Delivers one honest mail on a connection of its own; the reply to its last dot. */
    async deliver(subject: string): Promise<string> {
      using client = await rawClient(address);
      await upToData(client, OWNER, [inbox]);
      client.write(`${mailOf(subject)}.\r\n`);
      // Not before the reply is there may the connection be closed.
      return await client.reply();
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The smallest mail the door takes, ended by a line end. */
export function mailOf(subject: string, body = "Hello.\r\n"): string {
  return `From: ${OWNER}\r\nMessage-ID: <${Bun.randomUUIDv7()}@peer.test>\r\nSubject: ${subject}\r\n\r\n${body}`;
}
