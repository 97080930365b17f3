import { describe, expect, test } from "bun:test";
import { queueWarnings } from "../../src/operation/admin/warnings.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { RELAY_CONNECTIONS } from "../../src/mail/sending/send-relay.ts";
import { sendLater } from "../../src/mail/sending/outgoing.ts";
import type { SendOutcome } from "../../src/mail/sending/send.ts";
import { testApp, type TestApp, setWorker } from "../support/app.ts";
import { at, direct, MAIL } from "../support/direct.ts";
import type { DnsZone } from "../support/dns-server.ts";
import { type SinkFault, type SinkOptions, type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";

const HOSTS = 9;
/** No run is begun in this room. */
const UNASKED = { kind: "openai_compatible", base_url: "http://127.0.0.1:9", model: "none" } as const;
const PATIENT = { idle_ms: 60_000, confirm_ms: 60_000, greeting_ms: 60_000 };

/** Mails on their way to servers that hold those to `slow…` until the end of the test. */
async function postRoom(
  mode: "relay" | "direct",
  domains: Record<string, number> = {},
  slots = mode === "relay" ? RELAY_CONNECTIONS : 512,
) {
  await using stack = new AsyncDisposableStack();
  const told = Promise.withResolvers<void>();
  const holding = (sink: () => SmtpSink | undefined) => ({
    starttls: false,
    beforeWord: async () => {
      if (sink()?.mails.at(-1)?.rcpt_to[0]?.startsWith("slow")) await told.promise;
    },
  });
  const sinks: SmtpSink[] = [];
  if (mode === "relay") sinks.push(stack.use(await startSmtpSink(holding(() => sinks[0]))));
  const relay_url = `smtp://127.0.0.1:${sinks[0]?.port ?? 9}`;
  const t = stack.use(
    await testApp({ outbound: { mode, relay_url }, egress: { allow: ["127.0.0.1"] }, llm: UNASKED }),
  );
  if (mode === "direct") {
    const servers = Array.from({ length: Math.max(...Object.values(domains)) }, (_, index) =>
      holding(() => sinks[index]),
    );
    const zone = Object.fromEntries(
      Object.entries(domains).map(([domain, server]) => [
        domain,
        { MX: [[10, `mx${server}.there.example`] as [number, string]] },
      ]),
    );
    const outside = stack.use(await direct(servers, zone, { timeouts: PATIENT }));
    sinks.push(...outside.sinks);
    t.app.sender.send = outside.sender.send;
  }
  const handlers = jobHandlers(t.app);
  handlers.send_mail.slots = slots;
  handlers.route_message.slots = 0;
  const worker = stack.use(createWorker(t.app, handlers));
  setWorker(t.app, worker);
  worker.start();
  stack.defer(told.resolve);
  const built = stack.move();
  return {
    ...t,
    ...lettersOf(t),
    /** Has the servers say that they have what they were given. */
    acknowledge: told.resolve,
    /** Resolves once so many mails are with the servers. */
    arrived: async (count: number, server = 1) => {
      for (let mail = 0; mail < count; mail++) await at(sinks, server - 1).next();
    },
    /** Resolves once so many mails, which are all, are known to have been handed over. */
    sent: async (count: number) => {
      for (;;) {
        const mails = await t.app.db.selectFrom("outgoing_mails").select("status").execute();
        if (mails.every(({ status }) => status === "sent")) return expect(mails).toHaveLength(count);
        await Bun.sleep(5);
      }
    },
    /** Resolves once a server has a mail to this address. */
    has: async (address: string, server = 1) => {
      while ((await at(sinks, server - 1).next()).rcpt_to[0] !== address);
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

interface Letter {
  user_id: string;
  message_id?: string | null;
  from?: string;
}

function lettersOf(t: TestApp) {
  const account = async (email: string, proven = true): Promise<string> => {
    const { user } = await t.as(email);
    if (!proven)
      await t.app.db.updateTable("users").set({ email_verified: 0 }).where("id", "=", user.id).execute();
    return user.id;
  };
  const post = (user_id: string, ...addresses: string[]) => letter({ user_id }, ...addresses);
  /** Answers somebody who wrote to a new account and is not known there. */
  const answerStranger = async (email: string, address: string): Promise<void> => {
    const { user, post: call } = await t.as(email);
    const { body: inbox } = await call("/inboxes", {});
    await call("/v1/messages", { instruction: "Hello", async: true });
    const written = t.app.db.updateTable("messages").set({ authority: "stranger", sender: address });
    const [message] = await written.where("user_id", "=", user.id).returning("id").execute();
    await letter({ user_id: user.id, message_id: message?.id ?? "", from: inbox.address }, address);
  };
  const letter = ({ user_id, message_id = null, from = "desk@mw.test" }: Letter, ...addresses: string[]) =>
    t.app.write(async (tx) => {
      for (const envelope_to of addresses)
        await sendLater(t.app, tx, {
          id: t.app.newId(),
          user_id,
          message_id,
          kind: message_id === null ? "notice" : "reply",
          envelope_from: from,
          envelope_to,
          rfc_message_id: `<${envelope_to}>`,
          raw: Buffer.from(`From: ${from}\r\nSubject: Hello\r\n\r\nHello\r\n`),
        });
    });
  return { account, post, answerStranger };
}

function slow(count: number, domain: string): string[] {
  return Array.from({ length: count }, (_, index) => `slow${index}@${domain}`);
}

describe("mails of one account that a server does not acknowledge leave room for those of others", () => {
  test("at the relay", async () => {
    await using room = await postRoom("relay");
    const [ann, bob] = [await room.account("ann@client.example"), await room.account("bob@client.example")];
    await room.post(ann, ...slow(16, "there.example"));
    await room.arrived(3);
    await room.post(bob, "bob@there.example");
    await room.has("bob@there.example");
  });

  test("at the server of a domain that both write to", async () => {
    await using room = await postRoom("direct", { "big.example": 1 });
    const [ann, bob] = [await room.account("ann@client.example"), await room.account("bob@client.example")];
    await room.post(ann, ...slow(16, "big.example"));
    await room.arrived(4);
    await room.post(bob, "bob@big.example");
    await room.has("bob@big.example");
  });

  test("at a server that many domains have in common", async () => {
    const tar = Array.from({ length: 4 }, (_, index) => `tar${index}.example`);
    const domains = Object.fromEntries([...tar, "good.example"].map((domain) => [domain, 1]));
    await using room = await postRoom("direct", domains);
    const [ann, bob] = [await room.account("ann@client.example"), await room.account("bob@client.example")];
    await room.post(ann, ...tar.flatMap((domain) => slow(8, domain)));
    await room.arrived(5);
    await room.post(bob, "bob@good.example");
    await room.has("bob@good.example");
  });
});

/** Accounts of which each has one mail for a domain of its own. */
async function postForEach(room: Awaited<ReturnType<typeof postRoom>>, domains: string[]): Promise<void> {
  for (const [index, domain] of domains.entries())
    await room.post(await room.account(`user${index}@client.example`), `slow@${domain}`);
}

describe("mails of many accounts to one server that does not acknowledge them leave room for all others", () => {
  test("at the relay, where it is one domain that it takes long for", async () => {
    await using room = await postRoom("relay");
    await postForEach(room, Array(8).fill("slow.example"));
    await room.arrived(5);
    await room.post(await room.account("bob@client.example"), "bob@there.example");
    await room.has("bob@there.example");
  });

  test("at the server of many domains, each of which gets its mail in the end", async () => {
    const tar = Array.from({ length: 40 }, (_, index) => `tar${index}.example`);
    const domains = Object.fromEntries(tar.map((domain) => [domain, 1]));
    await using room = await postRoom("direct", { ...domains, "good.example": 2 }, 24);
    await postForEach(room, tar);
    await room.arrived(10);
    await room.post(await room.account("bob@client.example"), "bob@good.example");
    await room.has("bob@good.example", 2);
    room.acknowledge();
    await room.arrived(tar.length - 10);
    await room.sent(tar.length + 1);
  });
});

describe("answers to strangers whose servers do not acknowledge them leave room for what accounts write", () => {
  test.each(["relay", "direct"] as const)("%s: however many accounts they wrote to", async (mode) => {
    const tar = Array.from({ length: 16 }, (_, index) => `tar${index}.example`);
    const servers = Object.fromEntries(tar.map((domain, index) => [domain, index + 2]));
    const domains: Record<string, number> = mode === "direct" ? { ...servers, "good.example": 1 } : {};
    await using room = await postRoom(mode, domains, 10);
    for (const [index, domain] of tar.entries())
      await room.answerStranger(`user${index}@client.example`, `slow@${domain}`);
    if (mode === "relay") await room.arrived(5);
    else for (let server = 2; server <= 6; server += 1) await room.arrived(1, server);
    await room.post(await room.account("bob@client.example"), "bob@good.example");
    await room.has("bob@good.example");
  });
});

test("mail that waits for its turn for more than a minute is told to the operator", async () => {
  await using room = await postRoom("direct", { "big.example": 1 });
  await room.post(await room.account("ann@client.example"), ...slow(8, "big.example"));
  await room.arrived(4);
  expect(await queueWarnings(room.app)).toEqual({});
  room.clock.advance("59s");
  expect(await queueWarnings(room.app)).toEqual({});
  room.clock.advance("61s");
  expect(await queueWarnings(room.app)).toEqual({
    sending: expect.stringContaining("4 mails wait for their turn to be sent, the first for 2 minutes"),
  });
});

describe("codes for addresses that nobody has proven, at domains that do not acknowledge them, leave room", () => {
  test("for a code to another domain, and for the answers of everybody", async () => {
    const tar = Array.from({ length: HOSTS }, (_, index) => `tar${index}.example`);
    const domains = Object.fromEntries(tar.map((domain, index) => [domain, index + 2]));
    await using room = await postRoom("direct", { ...domains, "good.example": 1 });
    const stranger = await room.account("eve@client.example", false);
    const ann = await room.account("ann@client.example");
    for (const domain of tar) await room.post(stranger, ...slow(8, domain));
    for (const domain of tar) await room.arrived(1, domains[domain]);
    await room.post(stranger, "newcomer@good.example");
    await room.has("newcomer@good.example");
    await room.post(ann, "ann@good.example");
    await room.has("ann@good.example");
  });

  test("for a code to another domain of the same server", async () => {
    await using room = await postRoom("direct", { "tar0.example": 1, "tar1.example": 1, "good.example": 1 });
    const stranger = await room.account("eve@client.example", false);
    await room.post(stranger, ...slow(8, "tar0.example"), ...slow(8, "tar1.example"));
    await room.arrived(4);
    await room.post(stranger, "newcomer@good.example");
    await room.has("newcomer@good.example");
  });

  test("at a server that many domains have in common, for the answers of everybody", async () => {
    const tar = Array.from({ length: 5 }, (_, index) => `tar${index}.example`);
    const domains = Object.fromEntries([...tar, "good.example"].map((domain) => [domain, 1]));
    await using room = await postRoom("direct", domains);
    const stranger = await room.account("eve@client.example", false);
    const ann = await room.account("ann@client.example");
    for (const domain of tar) await room.post(stranger, ...slow(8, domain));
    await room.arrived(5);
    await room.post(ann, "ann@good.example");
    await room.has("ann@good.example");
  });
});

describe("no room at the second server of a domain takes nothing back of what the first one", () => {
  const MANY = Array.from({ length: 200 }, (_, index) => index);
  const BUSY = "451 4.3.2 busy, come back later";

  /** What becomes of a mail of an account whose mails have all of its room at the second server. */
  async function outcomeWith(fault: SinkFault | undefined, first: SinkOptions = {}): Promise<SendOutcome> {
    const told = Promise.withResolvers<void>();
    const zone: DnsZone = {
      "there.example": { MX: [1, 2].map((nth): [number, string] => [nth, `mx${nth}.there.example`]) },
      "full.example": { MX: [[10, "mx2.there.example"]] },
    };
    const second = { starttls: false, beforeWord: () => told.promise };
    await using outside = await direct([{ starttls: false, ...first }, second], zone, { timeouts: PATIENT });
    at(outside.sinks, 0).fault = fault;
    const send = (envelope_to: string) =>
      outside.sender.send({ ...MAIL, envelope_to, share: { account: "ann", slots: null } });
    const filling = MANY.map((nth) => send(`ann${nth}@full.example`));
    await Promise.any(
      filling.map(async (one) => {
        if ((await one).status !== "crowded") throw new Error("it had room");
      }),
    );
    const outcome = await send("bob@there.example");
    told.resolve();
    await Promise.all(filling);
    return outcome;
  }

  test("may have taken", async () => {
    expect(await outcomeWith("drop_in_data")).toMatchObject({ status: "deferred", may_have_it: true });
  });

  test("has said", async () => {
    const outcome = await outcomeWith(undefined, { reject_mail: () => BUSY });
    expect(outcome).toMatchObject({ status: "deferred", code: 451 });
  });

  test("has not said, as nobody was there", async () => {
    expect(await outcomeWith("drop_at_sender")).toMatchObject({ status: "crowded" });
  });
});

test.each(["relay", "direct"] as const)("%s: what has been acknowledged is written down", async (mode) => {
  await using room = await postRoom(mode, { "big.example": 1 });
  const ann = await room.account("ann@client.example");
  const addresses = Array.from({ length: 20 }, (_, index) => `ann${index}@big.example`);
  await room.post(ann, ...addresses);
  await room.arrived(20);
  await room.sent(20);
});
