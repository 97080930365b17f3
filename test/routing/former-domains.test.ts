import { describe, expect, test } from "bun:test";
import { movedWarning, moveToServiceDomain } from "../../src/resources/inboxes/leave-domain.ts";
import { addressIn, mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { account, house, inbox } from "../faults/house.ts";
import { simpleParser } from "mailparser";

const NEW = "new.test";

describe("a former domain of the service that is listed", () => {
  test("stays the address of its inboxes: taken, answered from, signed for, and bounced to", async () => {
    await using room = await mailroom();
    const { address } = room.inbox;
    await rename(room, ["mw.test"]);
    expect((await room.owner.get("/inboxes")).body[0].address).toBe(address);
    expect(await room.send({})).toStartWith("250 ");
    await room.drain();
    const [answer] = await room.outgoing();
    const raw = Buffer.from(answer?.raw ?? []);
    const { from, replyTo } = await simpleParser(raw);
    expect(addressIn(from?.text ?? "")).toBe(address);
    expect(raw.toString()).toContain("d=mw.test;");
    const back = addressIn(replyTo?.text ?? "");
    expect(back).toEndWith("@mw.test");
    const { conversation_id } = await room.newest();
    expect(await room.send({ to: back, rcpt: back, text: "And more." })).toStartWith("250 ");
    expect((await room.newest()).conversation_id).toBe(conversation_id);
    const to = answer?.envelope_from ?? "";
    expect(await deliver(room.door, { from: "", to, raw: notification({}) })).toStartWith("250 ");
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "bounced" });
  });

  test("gets no new addresses, is nobody's custom domain, and its mail is our own", async () => {
    await using room = await mailroom();
    await rename(room, ["mw.test"]);
    const made = await room.owner.post("/inboxes", { label: "Newer" });
    expect(made.body.address).toEndWith(`@${NEW}`);
    for (const domain of ["mw.test", "sub.mw.test"])
      expect((await room.owner.post("/custom-domains", { domain })).status).toBe(422);
    await room.send({ from: `Loop <${room.inbox.address}>` });
    await room.drain();
    expect(await room.outgoing()).toEqual([]);
  });
});

describe("a former domain of the service that is not listed", () => {
  test("is left by its inboxes, whose old addresses are refused with the reason", async () => {
    await using room = await mailroom();
    const old = room.inbox.address;
    expect(await rename(room, [])).toBe(1);
    const moved = (await room.owner.get("/inboxes")).body[0].address;
    expect(moved).toBe(old.replace("mw.test", NEW));
    expect(await room.send({})).toStartWith("550 5.7.1 This server takes mail for its own addresses only");
    expect(await room.send({ to: moved, rcpt: moved })).toStartWith("250 ");
    await room.drain();
    const [answer] = await room.outgoing();
    expect(addressIn((await simpleParser(Buffer.from(answer?.raw ?? []))).from?.text ?? "")).toBe(moved);
  });

  test("is named by /readyz for two weeks after the change, over restarts", async () => {
    await using at = await house();
    const owner = await account(at, "ada@example.com");
    for (const domain of ["mw.test", NEW, NEW]) {
      await using server = await at.start({ MAILWRIGHT_SMTP__DOMAIN: domain });
      const { warnings } = (await (await fetch(`${server.http}/readyz`)).json()) as { warnings: object };
      if (domain === NEW)
        expect(warnings).toMatchObject({
          moved_inboxes: expect.stringMatching(/1 inbox has moved from mw\.test to new\.test, .+"mw\.test"/),
        });
      else {
        expect(warnings).not.toHaveProperty("moved_inboxes");
        await inbox(server, owner);
      }
      server.kill("SIGTERM");
      expect(await server.exited).toBe(0);
    }
    await using room = await mailroom();
    await rename(room, []);
    room.clock.advance("13d");
    expect(await movedWarning(room.app)).toContain("was changed");
    room.clock.advance("2d");
    expect(await movedWarning(room.app)).toBeUndefined();
  });

  test("is no domain of what is being erased: that gets no address, and nothing is said of it", async () => {
    await using room = await mailroom();
    const { id } = room.inbox;
    // As the inboxes of an account that is deleted are until all of it is erased.
    const nameless = { domain: "", local_part: id, prefix: null };
    await room.app.db.updateTable("inboxes").set(nameless).where("id", "=", id).execute();
    expect(await room.app.write((tx) => moveToServiceDomain(room.app, tx))).toBe(0);
    expect(await movedWarning(room.app)).toBeUndefined();
  });

  test("is named beside the ones before it that have moved within two weeks", async () => {
    await using room = await mailroom();
    await rename(room, []);
    room.clock.advance("2d");
    room.app.config.smtp.domain = "third.test";
    expect(await move(room)).toBe(1);
    expect(await movedWarning(room.app)).toContain("1 inbox has moved from mw.test, new.test to third.test");
    room.clock.advance("20d");
    room.app.config.smtp.domain = "fourth.test";
    expect(await move(room)).toBe(1);
    expect(await movedWarning(room.app)).toContain("from third.test to fourth.test");
  });

  test("comes back with all its addresses when the change is taken back", async () => {
    await using room = await mailroom();
    const old = room.inbox.address;
    await rename(room, []);
    room.app.config.smtp.domain = "mw.test";
    expect(await move(room)).toBe(1);
    expect(await move(room)).toBe(0);
    expect((await room.owner.get("/inboxes")).body[0].address).toBe(old);
  });

  test("is left with another name where the old one is taken, and custom domains stay as they are", async () => {
    await using room = await mailroom();
    const { db } = room.app;
    const [first] = await db.selectFrom("inboxes").selectAll().execute();
    if (first === undefined) throw new Error("there is no inbox");
    const domain_id = Bun.randomUUIDv7();
    const domain = {
      id: domain_id,
      user_id: first.user_id,
      domain: "own.test",
      status: "active" as const,
      ownership_token: "x",
      findings: "{}",
      error: null,
      misses: 0,
      verified_at: 1,
      last_checked_at: 1,
      created: 1,
    };
    await db.insertInto("custom_domains").values(domain).execute();
    const other = (change: object) => ({ ...first, id: Bun.randomUUIDv7(), ...change });
    await db
      .insertInto("inboxes")
      .values([other({ domain: NEW }), other({ domain: "own.test", domain_id })])
      .execute();
    expect(await rename(room, [])).toBe(1);
    const inboxes = await db.selectFrom("inboxes").select(["id", "local_part", "domain"]).execute();
    expect(inboxes.map(({ domain }) => domain).toSorted()).toEqual([NEW, NEW, "own.test"]);
    const moved = inboxes.find(({ id }) => id === first.id);
    expect(moved?.local_part).not.toBe(first.local_part);
  });
});

async function rename(room: Mailroom, former_domains: string[]): Promise<number> {
  Object.assign(room.app.config.smtp, { domain: NEW, former_domains });
  return move(room);
}

function move({ app }: Mailroom): Promise<number> {
  return app.write((tx) => moveToServiceDomain(app, tx));
}
