import { describe, expect, test } from "bun:test";
import { addDomain, publish } from "../support/domain-desk.ts";
import { type DnsZone, startDnsServer } from "../support/dns-server.ts";
import { freshId, mailroom, signedBy, signingZone } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";

const LEA = "Lea <lea@partner.test>";

/** Ada lists Lea, who signs her mail; Mallory, of another account, may have had Lea's domain here. */
async function leaWrites(
  mallory:
    | "never came"
    | "has a second MX record at its domain"
    | "had its domain once, and the records are gone",
) {
  await using stack = new AsyncDisposableStack();
  // Mail of the people of partner.test goes to a mail provider.
  const zone: DnsZone = {
    ...signingZone("partner.test"),
    "partner.test": { MX: [[10, "mx.provider.test"]] },
  };
  const dns = stack.use(await startDnsServer(zone));
  dns.ttl = 0;
  const room = stack.use(
    await mailroom({
      config: { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } },
      inbox: { allowlist_senders: ["lea@partner.test"] },
    }),
  );
  if (mallory !== "never came") {
    const other = await room.as("mallory@example.net");
    const domain = await addDomain(other, "partner.test");
    publish(dns, domain, ["ownership"]);
    dns.set("partner.test", "MX", [
      [10, "mx.provider.test"],
      [90, "mx.mw.test"],
    ]);
    const { body } = await other.post(`/custom-domains/${domain.id}/verify`);
    expect(body.status).toBe("active");
    if (mallory !== "has a second MX record at its domain") {
      dns.remove("_mailwright.partner.test");
      dns.set("partner.test", "MX", [[10, "mx.provider.test"]]);
      for (let day = 0; day < 10; day++) {
        room.clock.advance("1d");
        await room.drain();
      }
      expect((await other.get("/custom-domains")).body).toMatchObject([{ status: "active" }]);
    }
  }
  const date = new Date(room.clock.now()).toUTCString().replace("GMT", "+0000");
  const { headers } = freshId();
  const mail = rawMail({
    from: LEA,
    to: room.inbox.address,
    text: "Say hello.",
    headers: { Date: date, ...headers },
  });
  const reply = await room.send({ mail_from: "lea@partner.test", raw: await signedBy("partner.test", mail) });
  await room.drain();
  const activity = await room.activity();
  const built = stack.move();
  return { room, reply, activity, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

describe("a listed sender's mail", () => {
  test("is worked on", async () => {
    await using t = await leaWrites("never came");
    expect(t.reply).toStartWith("250");
    expect(t.activity).toMatchObject([{ status: "done", sender: "lea@partner.test" }]);
  });

  test.each([
    "has a second MX record at its domain",
    "had its domain once, and the records are gone",
  ] as const)("is worked on where another account %s", async (mallory) => {
    await using t = await leaWrites(mallory);
    expect(t.reply).toStartWith("250");
    expect(t.activity).toMatchObject([{ status: "done", sender: "lea@partner.test" }]);
  });
});
