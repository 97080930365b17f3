import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";

const EVE = "Eve <eve@example.net>";

/** Where nothing but a signature proves anything, and there is none. */
async function strangersRoom(options: RoomOptions = {}): Promise<Mailroom> {
  await using stack = new AsyncDisposableStack();
  const dns = stack.use(await startDnsServer());
  const config = { dns: { servers: [dns.address] }, smtp: { trusted_networks: [] } };
  const room = stack.use(await mailroom({ config, ...options }));
  const built = stack.move();
  return { ...room, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

const policy = (inbound_policy: Record<string, boolean>) => ({ inbox: { inbound_policy } });
const left = async (room: Mailroom) => (await room.owner.get("/auth/me")).body.credits.remaining;

describe("mail whose sender proves nothing", () => {
  test("costs nothing, is kept nowhere, and leaves a trace that says why and what would have it read", async () => {
    await using room = await strangersRoom();
    const before = await left(room);
    const said = await room.send({ from: EVE, subject: "Buy now", text: "Cheap" });
    expect(said).toStartWith("550 5.7.1");
    expect(said).toContain("Nothing shows that this mail is from its sender");
    await room.drain();
    expect(room.model.requests).toEqual([]);
    expect(await left(room)).toBe(before);
    expect(await room.app.db.selectFrom("raw_mails").select("id").execute()).toEqual([]);
    const [entry] = await room.activity();
    expect(entry).toMatchObject({
      status: "rejected",
      reason: "sender_unauthenticated",
      sender: "eve@example.net",
      subject: "Buy now",
    });
    expect(entry.error).toContain("Turn on “Work on mail whose sender proves nothing”");
  });

  test("is listed so often in an hour, and then counted", async () => {
    await using room = await strangersRoom({
      config: {
        limits: { inbound_per_sender_hour: 0, inbound_per_sender_day: 0 },
        smtp: { trusted_networks: [] },
      },
    });
    room.app.config.plans.team.inbound_per_hour = 0;
    for (let n = 0; n < 203; n += 29)
      await Promise.all(
        Array.from({ length: 29 }, (_, one) => room.send({ from: EVE, text: `Mail ${n + one}` })),
      );
    const rows = await room.app.db.selectFrom("messages").select(["mails", "error"]).execute();
    expect(rows).toHaveLength(201);
    expect(rows.find(({ mails }) => mails > 1)).toMatchObject({
      mails: 3,
      error: expect.stringContaining("nothing shows that they are from whom they say"),
    });
  });

  test.each([[{ process_unauthenticated: true }], [{ reply_to_unauthenticated: true }]])(
    "is worked on where its owner wants that: %j",
    async (wanted) => {
      await using room = await strangersRoom(policy(wanted));
      await room.send({ from: EVE, text: "Hello" });
      await room.drain();
      const row = await room.newest();
      expect([row.state, row.authority]).toEqual(["done", "unauthenticated"]);
      const answered = "reply_to_unauthenticated" in wanted;
      expect((await room.outgoing()).length).toBe(answered ? 1 : 0);
      const [{ reply_status, reply_error }] = await room.activity();
      expect(reply_status).toBe(answered ? "sent" : "none");
      if (answered) expect(reply_error).toBeNull();
      else
        expect(reply_error).toContain("“Answer strangers whose address cannot be verified” of the inbox has");
    },
  );

  test("is refused as before where it claims to be the owner's, and where there is a list", async () => {
    await using room = await strangersRoom();
    expect(await room.send({ text: "It is me" })).toStartWith("550");
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: ["bob@example.org"] });
    expect(await room.send({ from: EVE, text: "Hello" })).toStartWith("550");
  });

  test("is what an inbox of an earlier version refuses too, until it is told otherwise", async () => {
    await using room = await strangersRoom();
    const old = JSON.stringify({ reply_to_unauthenticated: false, process_bulk: true });
    await room.app.db.updateTable("inboxes").set({ inbound_policy: old }).execute();
    const path = `/inboxes/${room.inbox.id}`;
    expect((await room.owner.get(path)).body.inbound_policy).toEqual({
      reply_to_unauthenticated: false,
      process_bulk: true,
      process_unauthenticated: false,
    });
    await room.owner.patch(path, { inbound_policy: { process_unauthenticated: true } });
    await room.send({ from: EVE, text: "Hello" });
    await room.drain();
    expect((await room.newest()).state).toBe("done");
  });
});

describe("a mail that was worked on and not answered says why", () => {
  test.each([
    [{ reply_enabled: false }, { text: "Hello" }, "“Answer by mail” in its settings"],
    [{}, { text: "Sum up --no-reply" }, "--no-reply"],
    [
      { inbound_policy: { process_bulk: true } },
      { text: "News", from: EVE, headers: { "List-Id": "<news.example.net>" } },
      "a program wrote it",
    ],
  ])("%j", async (inbox, mail, words) => {
    await using room = await mailroom({ inbox });
    await room.send(mail);
    await room.drain();
    const [entry] = await room.activity();
    expect(entry).toMatchObject({ status: "done", reply_status: "none" });
    expect(entry.reply_error).toContain(words);
  });

  test("a failure that a stranger is not told of", async () => {
    await using room = await mailroom({ model: { fault: "unauthorized" } });
    await room.send({ from: EVE, text: "Hello" });
    await room.drain();
    const [entry] = await room.activity();
    expect([entry.status, entry.reply_error]).toEqual(["failed", expect.stringContaining("strangers")]);
  });

  test("of a call nobody expects a mail", async () => {
    await using room = await mailroom();
    await room.owner.post("/v1/messages", { instruction: "Hello", inbox_id: room.inbox.id });
    expect((await room.activity())[0].reply_error).toBeNull();
  });
});
