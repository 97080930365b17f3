import { describe, expect, test } from "bun:test";
import { jobHandlers } from "../../src/handlers.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { sendLater } from "../../src/mail/outgoing.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { at, direct } from "../support/direct.ts";
import { type SmtpSink, startSmtpSink } from "../support/smtp-sink.ts";

const HOSTS = 9;
const PATIENT = { idle_ms: 60_000, confirm_ms: 60_000, greeting_ms: 60_000 };

/** Mails on their way to servers that hold those to `slow…` until the end of the test. */
async function postRoom(mode: "relay" | "direct", domains: Record<string, number> = {}) {
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
  const t = stack.use(await testApp({ outbound: { mode, relay_url }, egress: { allow: ["127.0.0.1"] } }));
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
  const worker = stack.use(createWorker(t.app, jobHandlers(t.app)));
  t.app.worker = worker;
  worker.start();
  stack.defer(told.resolve);
  const built = stack.move();
  return {
    ...t,
    ...lettersOf(t),
    /** Resolves once so many mails are with the servers. */
    arrived: async (count: number, server = 1) => {
      for (let mail = 0; mail < count; mail++) await at(sinks, server - 1).next();
    },
    /** Resolves once a server has a mail to this address. */
    has: async (address: string, server = 1) => {
      while ((await at(sinks, server - 1).next()).rcpt_to[0] !== address);
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

function lettersOf(t: TestApp) {
  const account = async (email: string, proven = true): Promise<string> => {
    const { user } = await t.as(email);
    if (!proven)
      await t.app.db.updateTable("users").set({ email_verified: 0 }).where("id", "=", user.id).execute();
    return user.id;
  };
  const post = (user_id: string, ...addresses: string[]) =>
    t.app.write(async (tx) => {
      for (const envelope_to of addresses)
        await sendLater(t.app, tx, {
          id: t.app.newId(),
          user_id,
          message_id: null,
          kind: "notice",
          envelope_from: "desk@mw.test",
          envelope_to,
          rfc_message_id: `<${envelope_to}>`,
          raw: Buffer.from("Subject: Hello\r\n\r\nHello\r\n"),
        });
    });
  return { account, post };
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

test.each(["relay", "direct"] as const)("%s: what has been acknowledged is written down", async (mode) => {
  await using room = await postRoom(mode, { "big.example": 1 });
  const ann = await room.account("ann@client.example");
  const addresses = Array.from({ length: 20 }, (_, index) => `ann${index}@big.example`);
  await room.post(ann, ...addresses);
  await room.arrived(20);
  for (;;) {
    const mails = await room.app.db.selectFrom("outgoing_mails").select("status").execute();
    if (mails.every(({ status }) => status === "sent")) return expect(mails).toHaveLength(20);
    await Bun.sleep(5);
  }
});
