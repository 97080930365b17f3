import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { watchClock } from "../../src/jobs/clock.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";
import { retryJob } from "../../src/operation/admin/change-job.ts";
import { queueDepths } from "../../src/jobs/depths.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";

/** A room in which each order meets what its owner is told of by letters of one kind. */
type Meeting = () => Promise<Mailroom & { order(nth: number): Promise<void> }>;

function orders(room: Mailroom, from: string): Mailroom & { order(nth: number): Promise<void> } {
  const order = async (nth: number): Promise<void> => {
    const mail = { ...freshId(), from, subject: `Order ${nth}.`, text: `Where is ${nth}?` };
    expect(await room.send(mail)).toStartWith("250");
    await room.drain();
  };
  return { ...room, order };
}

const KINDS: Record<string, Meeting> = {
  "could not be worked on": async () =>
    orders(
      await mailroom({
        model: { fault: "unauthorized" },
        config: { limits: { inbound_per_sender_hour: 0, replies_per_sender_hour: 0 } },
      }),
      "Eve <eve@example.net>",
    ),
  "was left out": async () => {
    const room = orders(
      await mailroom({ config: { limits: { replies_per_sender_hour: 1 } } }),
      "Ada <ada@example.com>",
    );
    await room.order(0);
    return room;
  },
  "was not forwarded": async () => {
    const room = await mailroom();
    const rules = [{ name: "Fwd", when: [], do: { forward_to: "ada@example.com", keep: true } }];
    expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules })).status).toBe(200);
    await forgetNotices(room.app);
    await room.app.db.updateTable("users").set({ email_verified: 0 }).execute();
    return orders(room, "Eve <eve@example.net>");
  },
};

/** The orders that each letter names. */
async function named(room: Mailroom): Promise<number[][]> {
  const letters = (await room.outgoing()).filter(({ message_id }) => message_id === null);
  const read = await Promise.all(letters.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
  return read.map(({ text = "" }) => [...text.matchAll(/Order\s+(\d+)\./g)].map(([, nth]) => Number(nth)));
}

async function idOf(room: Mailroom, nth: number): Promise<string> {
  const messages = room.app.db.selectFrom("messages").select("id").where("subject", "=", `Order ${nth}.`);
  return (await messages.executeTakeFirstOrThrow()).id;
}

async function remove(room: Mailroom, nth: number): Promise<void> {
  expect((await room.owner.delete(`/messages/${await idOf(room, nth)}`)).status).toBe(204);
}

async function tryAgain(room: Mailroom, nth: number): Promise<void> {
  room.model.fault = "none";
  expect((await room.owner.post(`/messages/${await idOf(room, nth)}/retry`)).status).toBe(202);
  await room.drain();
}

async function nextDays(room: Mailroom): Promise<void> {
  for (let day = 0; day < 3; day += 1) {
    room.clock.advance("1d");
    await room.drain();
  }
}

describe.each(Object.entries(KINDS))("mail that %s after the letter of a day", (_kind, meet) => {
  test.each<[string, (room: Mailroom) => Promise<void>, number[][]]>([
    ["is told of in the next day's", async () => {}, [[1], [2, 3, 4]]],
    ["is told of though the first of it was deleted", (room) => remove(room, 2), [[1], [3, 4]]],
    ["is told of though the first of it was tried again", (room) => tryAgain(room, 2), [[1], [3, 4]]],
    [
      "is told of to nobody once all of it was seen to",
      async (room) => {
        for (const nth of [2, 4]) await remove(room, nth);
        await tryAgain(room, 3);
      },
      [[1]],
    ],
  ])("%s", async (_what, seeTo, expected) => {
    await using room = await meet();
    for (const nth of [1, 2, 3, 4]) await room.order(nth);
    expect(await named(room)).toEqual([[1]]);
    await seeTo(room);
    await nextDays(room);
    expect(await named(room)).toEqual(expected);
  });

  test.each<[string, (room: Mailroom) => Promise<unknown>]>([
    [
      "the operator has the queue tried at once",
      async (room) => {
        const jobs = room.app.db.selectFrom("jobs").select("id").where("kind", "=", "mail_notice");
        const { id } = await jobs.orderBy("id").limit(1).executeTakeFirstOrThrow();
        await retryJob(room.app, id);
      },
    ],
    [
      "the clock is set back",
      async (room) => {
        let passed = 0;
        const app = { ...room.app, steadyNow: () => room.app.steadyNow() + passed };
        const look = watchClock(app, jobHandlers(app));
        await look();
        passed = 90;
        await look();
      },
    ],
  ])("is in the next day's where %s", async (_what, hasten) => {
    await using room = await meet();
    for (const nth of [1, 2]) await room.order(nth);
    await hasten(room);
    await room.drain();
    for (const nth of [3, 4]) await room.order(nth);
    expect(await named(room)).toEqual([[1]]);
    room.clock.advance("1h");
    // Nothing of it seems to be late meanwhile.
    const depths = await queueDepths(room.app);
    expect(depths).toContainEqual({ kind: "mail_notice", status: "pending", jobs: 3, oldest_seconds: 0 });
    await nextDays(room);
    expect(await named(room)).toEqual([[1], [2, 3, 4]]);
  });
});

test("mails that wait for one letter are counted in it, and only the first fifty are named", async () => {
  const meet = KINDS["could not be worked on"] as Meeting;
  await using room = await meet();
  for (let nth = 1; nth <= 60; nth += 1) await room.order(nth);
  room.clock.advance("1d");
  await room.drain();
  const [, letter] = (await room.outgoing()).filter(({ message_id }) => message_id === null);
  const { subject, text = "" } = await simpleParser(Buffer.from(letter?.raw ?? []));
  expect(subject).toBe("Mails were taken, but not worked on");
  expect(text).toContain("59 mails were taken by your Mailwright");
  expect(text).toContain("And 9 more, which your activity lists.");
  expect((await named(room))[1]).toHaveLength(50);
  expect(
    await room.app.db.selectFrom("jobs").select("id").where("kind", "=", "mail_notice").execute(),
  ).toEqual([]);
});

test("a letter that a clock far ahead has dated takes no letter of the days until then", async () => {
  const meet = KINDS["could not be worked on"] as Meeting;
  await using room = await meet();
  const day = new Date((room.app.now() + 300 * DAY_SECONDS) * 1_000).toISOString().slice(0, 10);
  const row = { user_id: room.owner.user.id, kind: "failure_untold", day } as const;
  await room.app.db.insertInto("owner_notices").values(row).execute();
  await room.order(1);
  expect(await named(room)).toEqual([[1]]);
});
