import { describe, expect, test } from "bun:test";
import type { Mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { pass, roomAt, schedules } from "./room.ts";

/** A room whose relay refuses mail to the owner as `fault` says. */
async function lossyRoom() {
  await using stack = new AsyncDisposableStack();
  const relay: { fault: string | undefined } = { fault: undefined };
  const sink = stack.use(await startSmtpSink({ reject: () => relay.fault }));
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const room = stack.use(await roomAt({ config: { outbound: { mode: "relay", relay_url, retry: [60] } } }));
  const held = stack.move();
  return { room, relay, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

async function comesIn(room: Mailroom, word: string): Promise<void> {
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@news.example>` };
  expect(await room.send({ from: "eve@news.example", headers, subject: "News", text: word })).toStartWith(
    "250",
  );
  await room.drain();
}

/** What the model was shown by the runs of digests. */
function digests(room: Mailroom): string[] {
  return room.model.requests
    .map(({ body }) => String(body?.messages.at(-1)?.content))
    .filter((text) => text.startsWith("Summarise"));
}

const DIGEST = '--every="daily 9:00" --over=inbox\nSummarise what came in.';

describe("a digest whose answer did not arrive", () => {
  test("is made up for by the next one, with the mails that it had and those that came since", async () => {
    await using at = await lossyRoom();
    const { room, relay } = at;
    await room.send({ text: DIGEST });
    await room.drain();
    await comesIn(room, "A first balloon.");
    await pass(room, "1h");
    await comesIn(room, "A fine zeppelin.");
    relay.fault = "552 5.2.2 mailbox full";
    await pass(room, "24h");
    expect(await room.newest()).toMatchObject({ reply_status: "bounced" });
    relay.fault = undefined;
    await comesIn(room, "A small kite.");
    await pass(room, "24h");
    await pass(room, "24h");
    const shown = digests(room).map((text) =>
      ["balloon", "zeppelin", "kite"].filter((word) => text.includes(word)),
    );
    expect(shown).toEqual([["balloon"], ["zeppelin"], ["zeppelin", "kite"]]);
    expect((await schedules(room))[0]).toMatchObject({ status: "active" });
  });

  test("that was the very first one begins anew as well", async () => {
    await using at = await lossyRoom();
    const { room, relay } = at;
    await room.send({ text: DIGEST });
    await room.drain();
    await comesIn(room, "A first balloon.");
    relay.fault = "552 5.3.4 too big";
    await pass(room, "1h");
    relay.fault = undefined;
    await pass(room, "24h");
    expect(digests(room).map((text) => text.includes("balloon"))).toEqual([true, true]);
  });
});

describe("a schedule", () => {
  test("of which three answers in a row did not arrive pauses and says so, and its owner is told", async () => {
    await using at = await lossyRoom();
    const { room, relay } = at;
    await room.send({ text: '--every="daily 9:00"\nSay hello.' });
    await room.drain();
    relay.fault = "552 5.3.4 too big";
    for (const [span, status] of [
      ["1h", "active"],
      ["24h", "active"],
      ["24h", "paused"],
    ] as const) {
      await pass(room, span);
      expect((await schedules(room))[0].status).toBe(status);
    }
    const [{ reason }] = await schedules(room);
    expect(reason).toContain("The answers of 3 runs in a row did not arrive, the last one so:");
    expect(reason).toContain("too big");
    const told = (await room.outgoing()).filter(({ message_id }) => message_id === null);
    expect(told.map(({ raw }) => Buffer.from(raw ?? "").toString()).join()).toContain("has been paused");
  });

  test("goes on where the address of its owner was dead for a moment", async () => {
    await using at = await lossyRoom();
    const { room, relay } = at;
    await room.send({ text: '--every="daily 9:00"\nSay hello.' });
    await room.drain();
    const last = async () => (await room.newest()).reply_status;
    await pass(room, "1h");
    expect(await last()).toBe("sent");
    relay.fault = "550 5.1.1 who?";
    await pass(room, "24h");
    expect(await last()).toBe("bounced");
    relay.fault = undefined;
    for (let day = 0; day < 3; day += 1) {
      await pass(room, "24h");
      expect(await last()).toBe("sent");
    }
    expect((await schedules(room))[0]).toMatchObject({ status: "active" });
  });
});
