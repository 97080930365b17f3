import { describe, expect, test } from "bun:test";
import { mailroom } from "../support/mailroom.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const HOUR = 3_600;
const ZONE = { MX: [[10, "m.example.com"]] as [number, string][], A: ["127.0.0.1"] };

/** A server that mails directly, and its name server, in which the owner's domain may be missing. */
async function byNames(retry: number[]) {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink());
  const dns = stack.use(await startDnsServer({}));
  dns.ttl = 0;
  const config = {
    outbound: { mode: "direct" as const, retry },
    dns: { servers: [dns.address] },
    egress: { allow: ["127.0.0.0/8"] },
  };
  const room = stack.use(await mailroom({ config, parts: { smtp_port: sink.port } }));
  const show = (what: "all" | "no mail server" | "a private one" | "nothing") => {
    if (what === "nothing") dns.remove("example.com");
    else dns.set("example.com", "MX", ZONE.MX);
    if (what === "all") dns.set("m.example.com", "A", ZONE.A);
    else if (what === "a private one") dns.set("m.example.com", "A", ["10.1.2.3"]);
    else dns.remove("m.example.com");
  };
  const reply = async () => {
    await room.drain();
    const [message] = await room.activity();
    return { status: message.reply_status, error: message.reply_error };
  };
  const suppressions = () => room.app.db.selectFrom("suppressions").selectAll().execute();
  const built = stack.move();
  return { ...room, sink, show, reply, suppressions, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

describe("what our own name server says of a recipient's domain", () => {
  test.each(["nothing", "no mail server", "a private one"] as const)(
    "is not believed the first time: %s",
    async (what) => {
      await using room = await byNames([60, HOUR]);
      room.show(what);
      await room.send({ text: "What is on today?" });
      expect(await room.reply()).toMatchObject({
        status: "deferred",
        error: expect.stringMatching(
          /^It is asked again before this is believed: The (?:domain|mail server) .*example\.com/,
        ),
      });
      room.show("all");
      room.clock.advance("60s");
      expect(await room.reply()).toMatchObject({ status: "sent", error: null });
      expect(room.sink.mails).toHaveLength(1);
      expect(await room.suppressions()).toEqual([]);
    },
  );

  test("is believed once it has stayed for hours, and never counts as a return of the address", async () => {
    await using room = await byNames([60, HOUR, 2 * HOUR, 4 * HOUR, 24 * HOUR]);
    room.show("nothing");
    for (let mail = 0; mail < 4; mail += 1) {
      await room.send({ text: `What is on today, and on day ${mail}?` });
      expect((await room.reply()).status).toBe("deferred");
      for (const seconds of [60, HOUR, 2 * HOUR]) {
        room.clock.advance(`${seconds}s`);
        expect((await room.reply()).status).toBe("deferred");
      }
      room.clock.advance(`${4 * HOUR}s`);
      expect(await room.reply()).toEqual({
        status: "bounced",
        error: "The domain example.com does not exist. Check the address.",
      });
    }
    expect(await room.suppressions()).toEqual([]);
    room.show("all");
    await room.send({ text: "What is on tomorrow?" });
    expect((await room.reply()).status).toBe("sent");
  });

  test("is not believed late either, where it was something else before", async () => {
    await using room = await byNames([60, 8 * HOUR, 24 * HOUR, HOUR]);
    room.show("nothing");
    await room.send({ text: "What is on today?" });
    expect((await room.reply()).status).toBe("deferred");
    room.clock.advance("60s");
    expect((await room.reply()).status).toBe("deferred");
    await room.app.db.updateTable("outgoing_mails").set({ response: "451 4.7.1 greylisted" }).execute();
    room.clock.advance(`${8 * HOUR}s`);
    expect((await room.reply()).status).toBe("deferred");
    room.clock.advance(`${24 * HOUR}s`);
    expect((await room.reply()).status).toBe("bounced");
  });

  test("is believed at once when there is no further try", async () => {
    await using room = await byNames([]);
    room.show("nothing");
    await room.send({ text: "What is on today?" });
    expect((await room.reply()).status).toBe("bounced");
    expect(await room.suppressions()).toEqual([]);
  });
});
