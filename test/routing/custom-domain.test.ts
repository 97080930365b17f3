import { describe, expect, test } from "bun:test";
import { dkimVerify, type DNSResolver } from "mailauth";
import { simpleParser } from "mailparser";
import { bounceAddress } from "../../src/mail/writing/own-ids.ts";
import { createResolver } from "../../src/net/dns.ts";
import { activeDomain, addDomain, type Domain } from "../support/domain-desk.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import { freshId, mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { notification, rawMail } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { hasOpendkim, opendkimPasses } from "../support/verifiers.ts";

const NAME = "ai.acme.test";

interface Room extends Mailroom {
  dns: TestDnsServer;
  domain: Domain;
}

/** A mail room whose inbox has its address on a custom domain that is active. */
async function roomOnDomain(options: RoomOptions = {}): Promise<Room> {
  await using stack = new AsyncDisposableStack();
  const dns = stack.use(await startDnsServer());
  const config = { ...options.config, dns: { servers: [dns.address] } };
  const room = stack.use(await mailroom({ ...options, config }));
  const domain = await activeDomain({ dns }, room.owner, NAME);
  const { body: inbox } = await room.owner.post("/inboxes", { label: "Desk", domain_id: domain.id });
  const built = stack.move();
  return {
    ...room,
    inbox,
    dns,
    domain,
    send: (mail) => room.send({ to: inbox.address, rcpt: inbox.address, ...mail }),
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

async function answer(room: Room) {
  expect(await room.send({ subject: "Grüße ✉", ...freshId() })).toStartWith("250 ");
  await room.drain();
  const row = (await room.outgoing()).at(-1);
  if (!row?.raw) throw new Error("nothing was answered");
  const raw = Buffer.from(row.raw);
  return { row, raw, parsed: await simpleParser(raw) };
}

/** The inbox of the room as it is shown now. */
async function movedInbox(room: Room) {
  const { body } = await room.owner.get("/inboxes");
  return body.find(({ id }: { id: string }) => id === room.inbox.id);
}

describe("a reply from an inbox on a custom domain", () => {
  test("has From, Reply-To, Message-ID and envelope sender of that domain", async () => {
    await using room = await roomOnDomain();
    const { row, parsed } = await answer(room);
    expect(room.inbox.address).toEndWith(`@${NAME}`);
    expect(parsed.from?.value[0]?.address).toBe(room.inbox.address);
    expect(parsed.replyTo?.value[0]?.address).toMatch(/\+c_[a-z2-7]+@ai\.acme\.test$/);
    expect(parsed.messageId).toMatch(/@ai\.acme\.test>$/);
    expect(row.envelope_from).toMatch(/^b\+[a-z0-9]+@ai\.acme\.test$/);
  });

  test("is signed by the domain's own keys alone, and passes with the records that were published", async () => {
    await using room = await roomOnDomain();
    const { row, raw } = await answer(room);
    const resolver = createResolver({ servers: [room.dns.address] }) as DNSResolver;
    const { results } = await dkimVerify(raw, { resolver, sender: row.envelope_from });
    expect(
      results.map(({ status, signingDomain, selector }) => [status.result, signingDomain, selector]),
    ).toEqual([
      ["pass", NAME, "s1"],
      ["pass", NAME, "e1"],
    ]);
    const altered = Buffer.from(raw.toString("latin1").replace(/^To: .*/m, "To: eve@example.org"), "latin1");
    const { results: after } = await dkimVerify(altered, { resolver });
    expect(after.map(({ status }) => status.result)).toEqual(["fail", "fail"]);
    if (hasOpendkim) {
      const record = room.domain.dns_records.filter(({ purpose }) => purpose === "dkim");
      expect(opendkimPasses(raw, record)).toBe(true);
      expect(opendkimPasses(altered, record)).toBe(false);
    }
  });

  test("of an inbox on the service's domain is signed as before", async () => {
    await using room = await roomOnDomain();
    const { body: inbox } = await room.owner.post("/inboxes", {});
    await room.send({ rcpt: inbox.address, to: inbox.address, ...freshId() });
    await room.drain();
    const raw = Buffer.from((await room.outgoing()).at(-1)?.raw ?? []).toString();
    expect([...raw.matchAll(/\bd=([a-z.]+); s=(\w+)/g)].map(([, d, s]) => `${s} ${d}`)).toEqual([
      "s1 mw.test",
      "e1 mw.test",
    ]);
  });

  test("continues its thread by the address it came from", async () => {
    await using room = await roomOnDomain();
    const { parsed } = await answer(room);
    const to = parsed.replyTo?.value[0]?.address ?? "";
    await room.send({ rcpt: to, to, ...freshId() });
    const [second, first] = await room.activity();
    expect(second.conversation_id).toBe(first.conversation_id);
  });

  test("is marked when it bounces", async () => {
    await using room = await roomOnDomain();
    const { row } = await answer(room);
    const bounce = { from: "", to: row.envelope_from, raw: notification() };
    expect(await deliver(room.door, bounce)).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
  });
});

describe("at the SMTP door", () => {
  test("an unknown address of an active domain is 5.1.1, and any of a domain that is not ours 5.7.1", async () => {
    await using room = await roomOnDomain();
    const waiting = await addDomain(room.owner, "waiting.test");
    const raw = rawMail({});
    const answers = [];
    for (const to of [`nobody@${NAME}`, `x@${waiting.domain}`, "x@elsewhere.test", `x@sub.${NAME}`])
      answers.push((await deliver(room.door, { from: "ada@example.com", to, raw })).slice(0, 9));
    expect(answers).toEqual(["550 5.1.1", "550 5.7.1", "550 5.7.1", "550 5.7.1"]);
  });

  test("the same local part on another domain of ours is another address", async () => {
    await using room = await roomOnDomain();
    const [local] = room.inbox.address.split("@");
    const to = `${local}@mw.test`;
    expect(await room.send({ rcpt: to, to })).toStartWith("550 5.1.1 ");
    expect(await room.send({ rcpt: room.inbox.address.toUpperCase() })).toStartWith("250 ");
  });

  test("a bounce address is one of ours on our domains alone", async () => {
    await using room = await roomOnDomain();
    const { row } = await answer(room);
    const [local] = row.envelope_from.split("@");
    const answers = [];
    for (const domain of [NAME, "mw.test", "elsewhere.test"])
      answers.push(
        (await deliver(room.door, { from: "", to: `${local}@${domain}`, raw: notification() })).slice(0, 9),
      );
    expect(answers).toEqual(["250 2.6.0", "250 2.6.0", "550 5.7.1"]);
    expect(bounceAddress(room.app, row.id, NAME)).toBe(row.envelope_from);
  });
});

describe("a domain of other letters than ASCII", () => {
  test("takes mail and bounces by its A-labels and as it is read, and answers", async () => {
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: { dns: { servers: [dns.address] } } });
    const { id: domain_id } = await activeDomain({ dns }, room.owner, "bücher.test");
    const { body: inbox } = await room.owner.post("/inboxes", { domain_id });
    const [local] = inbox.address.split("@");
    expect(inbox.address).toBe(`${local}@xn--bcher-kva.test`);
    const to = inbox.address;
    expect(await room.send({ to, rcpt: to, ...freshId() })).toStartWith("250 ");
    expect(await room.send({ to, rcpt: `${local}@BÜCHER.test`, ...freshId() })).toStartWith("250 ");
    expect(await room.send({ rcpt: "nobody@bücher.test" })).toStartWith("550 5.1.1 ");
    await room.drain();
    const [row] = await room.outgoing();
    expect(row?.envelope_from).toEndWith("@xn--bcher-kva.test");
    expect(Buffer.from(row?.raw ?? []).toString()).toContain("d=xn--bcher-kva.test; s=s1");
    const bounce = { from: "", to: row?.envelope_from ?? "", raw: notification() };
    expect(await deliver(room.door, bounce)).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }, { reply_status: "bounced" }]);
  });

  test("may be the service's own", async () => {
    await using room = await mailroom({ config: { smtp: { domain: "xn--bcher-kva.test" } } });
    expect(await room.send({})).toStartWith("250 ");
  });
});

describe("mail that says to be from a custom domain", () => {
  test("of an inbox there is our own, and starts nothing", async () => {
    await using room = await roomOnDomain();
    const { body: other } = await room.owner.post("/inboxes", { domain_id: room.domain.id });
    expect(await room.send({ from: other.address, ...freshId() })).toStartWith("250 ");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "rejected", reason: "own_address" }]);
    expect(room.model.requests).toHaveLength(0);
  });

  test("is somebody else's while the domain is not active, and after it was removed", async () => {
    await using room = await roomOnDomain();
    await addDomain(room.owner, "waiting.test");
    await room.send({ from: "carl@waiting.test", ...freshId() });
    await room.owner.delete(`/custom-domains/${room.domain.id}`);
    const moved = await movedInbox(room);
    await room.send({ from: `carl@${NAME}`, rcpt: moved.address, ...freshId() });
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done" }, { status: "done" }]);
  });

  test("of anybody else is that person's, who may have mail elsewhere", async () => {
    await using room = await roomOnDomain();
    await room.as(`carl@${NAME}`);
    await room.send({ from: `carl@${NAME}`, ...freshId() });
    await room.send({ from: `dora@${NAME}`, ...freshId() });
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { status: "done", sender: `dora@${NAME}` },
      { status: "done", sender: `carl@${NAME}` },
    ]);
  });
});

test("a domain that nobody had to prove does not silence those who write from it", async () => {
  await using room = await mailroom({
    config: { domains: { verification: "trust" }, dns: { servers: ["127.0.0.1:9"] } },
  });
  const bob = await room.as("bob@example.com");
  const { id } = await addDomain(bob, "example.org");
  expect((await bob.post(`/custom-domains/${id}/verify`)).body.status).toBe("active");
  const { body: his } = await bob.post("/inboxes", { domain_id: id });
  await room.send({ from: "carl@example.org", ...freshId() });
  await room.send({ from: his.address, ...freshId() });
  await room.drain();
  expect(await room.activity()).toMatchObject([
    { status: "rejected", reason: "own_address" },
    { status: "done", sender: "carl@example.org" },
  ]);
});

describe("removing a domain", () => {
  test("moves its inboxes to the service's domain with the same local part", async () => {
    await using room = await roomOnDomain();
    const [local] = room.inbox.address.split("@");
    expect((await room.owner.delete(`/custom-domains/${room.domain.id}`)).status).toBe(204);
    const moved = await movedInbox(room);
    expect(moved).toMatchObject({ address: `${local}@mw.test`, domain: "mw.test", domain_id: null });
    expect(await room.send({ rcpt: moved.address, ...freshId() })).toStartWith("250 ");
    expect(await room.send({ ...freshId() })).toStartWith("550 ");
    await room.drain();
    const raw = Buffer.from((await room.outgoing()).at(-1)?.raw ?? []).toString();
    expect(raw).toContain(`<${local}@mw.test>`);
    expect(raw).toContain("d=mw.test; s=s1");
  });

  test("refuses the old address for good, also once the domain is back", async () => {
    await using room = await roomOnDomain();
    await room.owner.delete(`/custom-domains/${room.domain.id}`);
    await activeDomain(room, room.owner, NAME);
    expect(await room.send({})).toStartWith("550 5.1.1 ");
    const retired = await room.app.db.selectFrom("retired_addresses").select("address").execute();
    expect(retired).toContainEqual({ address: room.inbox.address });
  });

  test.each(["inbox", "retired address"])(
    "makes a new token where the local part is that of another %s",
    async (holder) => {
      await using room = await roomOnDomain();
      const [local = ""] = room.inbox.address.split("@");
      const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
      await room.app.db
        .updateTable("inboxes")
        .set({ local_part: local })
        .where("id", "=", other.id)
        .execute();
      if (holder !== "inbox") await room.owner.delete(`/inboxes/${other.id}`);
      expect((await room.owner.delete(`/custom-domains/${room.domain.id}`)).status).toBe(204);
      const moved = await movedInbox(room);
      expect(moved.address).toMatch(/^desk-[a-z0-9]{12}@mw\.test$/);
      expect(moved.address).not.toBe(`${local}@mw.test`);
    },
  );

  test("leaves the threads as they are: their reply tokens are good at the new address", async () => {
    await using room = await roomOnDomain();
    const { parsed } = await answer(room);
    const [local] = (parsed.replyTo?.value[0]?.address ?? "").split("@");
    await room.owner.delete(`/custom-domains/${room.domain.id}`);
    const to = `${local}@mw.test`;
    expect(await room.send({ rcpt: to, to, ...freshId() })).toStartWith("250 ");
    const [second, first] = await room.activity();
    expect(second.conversation_id).toBe(first.conversation_id);
  });

  test("during a run lets the answer go out from the new address", async () => {
    await using room: Room = await roomOnDomain({
      model: {
        reply: async () => {
          await room.owner.delete(`/custom-domains/${room.domain.id}`);
          return "Done.";
        },
      },
    });
    const [local] = room.inbox.address.split("@");
    await room.send({ ...freshId() });
    await room.drain();
    const row = (await room.outgoing()).at(-1);
    const parsed = await simpleParser(Buffer.from(row?.raw ?? []));
    expect(parsed.from?.value[0]?.address).toBe(`${local}@mw.test`);
    expect(row?.envelope_from).toEndWith("@mw.test");
    expect(await room.activity()).toMatchObject([{ status: "done" }]);
  });
});
