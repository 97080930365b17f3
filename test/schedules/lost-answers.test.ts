import { describe, expect, test } from "bun:test";
import type { Mailroom, RoomOptions } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { until } from "../support/until.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../src/lib/durations.ts";
import { pass, roomAt, schedules } from "./room.ts";

/** A room whose relay refuses mail to the owner as `fault` says. */
async function lossyRoom({
  retry = [60],
  ...options
}: { retry?: number[] } & Pick<RoomOptions, "model"> = {}) {
  await using stack = new AsyncDisposableStack();
  const relay: { fault: string | undefined } = { fault: undefined };
  const sink = stack.use(await startSmtpSink({ reject: () => relay.fault }));
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const outbound = { mode: "relay", relay_url, retry } as const;
  const room = stack.use(await roomAt({ ...options, config: { outbound } }));
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

test("what was in a digest that is given up while the next one is worked on is in the one after that", async () => {
  let busy: (() => Promise<unknown>) | undefined;
  const reply = async () => {
    const meanwhile = busy;
    busy = undefined;
    await meanwhile?.();
    return "The news.";
  };
  await using at = await lossyRoom({ retry: [25 * HOUR_SECONDS], model: { reply } });
  const { room, relay } = at;
  await room.send({ text: DIGEST });
  await room.drain();
  await comesIn(room, "A first balloon.");
  await pass(room, "1h");
  await comesIn(room, "A fine zeppelin.");
  relay.fault = "451 4.7.1 later";
  await pass(room, "24h");
  const first = await room.newest();
  expect(first).toMatchObject({ reply_status: "deferred" });
  await comesIn(room, "A small kite.");
  let sending: Promise<void> | undefined;
  busy = async () => {
    relay.fault = "552 5.2.2 mailbox full";
    room.clock.advance("2h");
    sending = room.drain();
    await until(() => isSettled(room, first.id));
    relay.fault = undefined;
  };
  await pass(room, "24h");
  await sending;
  expect(await isSettled(room, first.id)).toBe(true);
  for (let day = 0; day < 2; day += 1) await pass(room, "24h");
  const shown = digests(room).map((text) =>
    ["balloon", "zeppelin", "kite"].filter((word) => text.includes(word)),
  );
  expect(shown).toEqual([["balloon"], ["zeppelin"], ["kite"], ["zeppelin", "kite"]]);
});

/** Whether the answer to a message was given up, and its schedule has been told. */
async function isSettled({ app: { db } }: Mailroom, id: string): Promise<boolean> {
  const lost = await db.selectFrom("messages").select("reply_status").where("id", "=", id).executeTakeFirst();
  const job = await db.selectFrom("jobs").select("id").where("kind", "=", "settle_lost").executeTakeFirst();
  return lost?.reply_status === "bounced" && job === undefined;
}

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

  test("of which every answer is put off until it is given up pauses all the same", async () => {
    await using at = await lossyRoom({ retry: Array.from({ length: 4 }, () => DAY_SECONDS) });
    const { room, relay } = at;
    await room.send({ text: '--every="daily 9:00"\nSay hello.' });
    await room.drain();
    relay.fault = "451 4.7.1 not now";
    await pass(room, "1h");
    let days = 1;
    while (days < 12 && (await schedules(room))[0].status === "active") {
      await pass(room, "24h");
      days += 1;
    }
    const answers = (await room.activity()).map(({ reply_status }) => reply_status);
    // The first of three was made on the first day, and the third of them is given up after four more.
    expect([days, answers.filter((status) => status === "bounced").length]).toEqual([7, 3]);
    expect((await schedules(room))[0].reason).toContain("The answers of 3 runs in a row did not arrive");
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
    // Which is no digest, so that a run of it may be replayed.
    expect(await room.newest()).toMatchObject({ read_from: null });
    expect((await schedules(room))[0]).toMatchObject({ status: "active" });
  });
});
