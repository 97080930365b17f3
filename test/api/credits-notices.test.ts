import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import type { OutgoingMailRow } from "../../src/db/schema.ts";
import { freshId, type Mailroom, mailroom } from "../support/mailroom.ts";
import { forgetNotices } from "../support/notices.ts";

const BOB = "Bob <bob@example.org>";
const ONE = { plans: { team: { credits: 1 } } };

test("the owner is told once a day that mail is not worked on, and its sender never", async () => {
  await using room = await mailroom({ config: ONE });
  await room.owner.patch("/auth/profile", { timezone: "Europe/Berlin" });
  await forgetNotices(room.app);
  for (let mail = 0; mail < 4; mail += 1) await send(room, BOB);
  await room.drain();
  expect(await room.activity()).toMatchObject([
    ...Array.from({ length: 3 }, () => ({ status: "limited", reason: "credit_limit", credits_charged: 0 })),
    { status: "done" },
  ]);
  const [notice, ...others] = await notices(room);
  expect([notice?.envelope_to, others]).toEqual(["ada@example.com", []]);
  const { subject, text } = await simpleParser(Buffer.from(notice?.raw ?? []));
  expect(subject).toBe("Your Mailwright credits are used up");
  for (const words of [
    "your credits for this period are used up (1 of 1)",
    "3 mails came in",
    "1 February 2026 at 01:00 (Europe/Berlin)",
    "ask the administrator of this server to raise plans.team.credits",
  ])
    expect(text?.replaceAll(/\s+/g, " ")).toContain(words);
  room.clock.advance("1d");
  await send(room, BOB);
  await room.drain();
  expect(await notices(room)).toHaveLength(2);
  const to_bob = (await room.outgoing()).filter(({ envelope_to }) => envelope_to === "bob@example.org");
  expect(to_bob.map(({ kind }) => kind)).toEqual(["reply"]);
});

test("a listed sender is told that a mail was over the limit, and its owner has it done once there are credits", async () => {
  await using room = await mailroom({ config: ONE, inbox: { allowlist_senders: ["bob@example.org"] } });
  for (const from of ["ada@example.com", BOB])
    await room.send({ ...freshId(), from, subject: "Milk", text: `Buy milk, ${from}` });
  await room.drain();
  const [limited] = await room.activity();
  expect(limited).toMatchObject({ status: "limited", sender: "bob@example.org" });
  const toBob = async () =>
    (await room.outgoing()).filter(({ envelope_to }) => envelope_to === "bob@example.org");
  const [told, ...others] = await toBob();
  expect([told?.kind, others]).toEqual(["notice", []]);
  const { text, subject } = await simpleParser(Buffer.from(told?.raw ?? []));
  expect(subject).toBe("Re: Milk");
  const words = text?.replaceAll(/\s+/g, " ");
  expect(words).toContain("no credits left this month");
  expect(words).toContain("send your mail again.");
  const again = () => room.owner.post(`/messages/${limited.message_id}/retry`);
  // Before that it is answered as a call would be, and does not stand in the way.
  expect((await again()).status).toBe(429);
  room.clock.advance("32d");
  expect((await again()).status).toBe(202);
  await room.drain();
  expect((await room.activity())[0]).toMatchObject({ status: "done", retry_of: limited.message_id });
  expect((await toBob()).map(({ kind }) => kind)).toEqual(["notice", "reply"]);
  expect((await again()).status).toBe(409);
});

const KEYS = { stripe_secret_key: "sk_test_1", stripe_webhook_secret: "whsec_1" };

test("who pays is told where to get more", async () => {
  await using room = await mailroom({
    config: { billing: KEYS, plans: { default: "pro", pro: { credits: 0 } } },
  });
  await send(room);
  await room.drain();
  const [notice] = await notices(room);
  const { text } = await simpleParser(Buffer.from(notice?.raw ?? []));
  expect(text?.replaceAll(/\s+/g, " ")).toContain(
    "get a larger plan, or buy credits <http://mw.test/app/billing>",
  );
});

test("a call over the cap and a test of an inbox call for no letter, and a test costs nothing", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 0 } } } });
  expect((await room.owner.post("/v1/messages", { instruction: "x" })).status).toBe(429);
  const tested = await room.owner.post(`/inboxes/${room.inbox.id}/test`);
  expect([tested.status, tested.body.status]).toEqual([200, "done"]);
  await room.drain();
  expect(await notices(room)).toEqual([]);
});

test.each(["a larger plan", "a new month"])(
  "mail that was left undone is told of though there are credits again: %s",
  async (which) => {
    await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 1 } } } });
    await send(room);
    await room.drain();
    await send(room);
    await send(room);
    if (which === "a new month") room.clock.advance("40d");
    else await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
    await room.drain();
    const told = await notices(room);
    expect(told).toHaveLength(1);
    const { subject, text } = await simpleParser(Buffer.from(told[0]?.raw ?? []));
    expect(subject).toBe("Mail was taken, but not worked on");
    expect(text?.replaceAll(/\s+/g, " ")).toContain(
      "2 mails to your inboxes were not worked on when they came, because there were no credits.",
    );
    await room.drain();
    expect(await notices(room)).toHaveLength(1);
  },
);

test("nothing is told once the mail is deleted, or the account is gone", async () => {
  await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
  await send(room);
  await room.app.db.updateTable("messages").set({ deleted_at: room.app.now() }).execute();
  await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
  await room.drain();
  expect(await notices(room)).toEqual([]);
  await setPlan(room.app, { email: "ada@example.com", plan: "free" });
  room.clock.advance("1d");
  await send(room);
  await room.app.db.deleteFrom("users").execute();
  await room.drain();
  expect(await room.outgoing()).toEqual([]);
});

test("a day's letter that nothing called for any more goes out when something does", async () => {
  await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
  await send(room);
  await room.app.db.updateTable("messages").set({ deleted_at: room.app.now() }).execute();
  await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
  await room.drain();
  await setPlan(room.app, { email: "ada@example.com", plan: "free" });
  await send(room);
  await send(room);
  await room.drain();
  expect(await notices(room)).toHaveLength(1);
});

test.each([
  ["is told of the next day", 0, 1],
  ["and deleted meanwhile is told of to nobody", 1, 0],
])("mail that was left undone after the day's letter %s", async (_what, deleted, more) => {
  await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
  for (let mail = 0; mail < 2; mail += 1) {
    await send(room);
    await room.drain();
  }
  await send(room);
  await room.drain();
  expect(await notices(room)).toHaveLength(1);
  if (deleted === 1) await room.app.db.updateTable("messages").set({ deleted_at: room.app.now() }).execute();
  for (let day = 0; day < 3; day += 1) {
    room.clock.advance("1d");
    await room.drain();
  }
  const [, ...later] = await notices(room);
  expect(later).toHaveLength(more);
  const read = await Promise.all(later.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
  expect(read.every(({ text }) => text?.includes("3 mails came in since then"))).toBe(true);
});

test("mail that the day's letter has counted is not told of the next day", async () => {
  await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
  for (let mail = 0; mail < 3; mail += 1) await send(room);
  for (let day = 0; day < 3; day += 1) {
    await room.drain();
    expect(await notices(room)).toHaveLength(1);
    room.clock.advance("1d");
  }
});

describe.each<[string, (room: Mailroom) => Promise<unknown>]>([
  ["still no credits", (room) => Promise.resolve(room.clock.advance("1d"))],
  [
    "credits again by a larger plan",
    async (room) => {
      await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
      room.clock.advance("1d");
    },
  ],
  ["credits again by a new month", (room) => Promise.resolve(room.clock.advance("20d"))],
])("what was left undone after the day's letter is told of the next day, with %s:", (which, nextDay) => {
  const AGAIN = which !== "still no credits";
  const MAIL = "have mail that still matters tried again in your activity";
  const RUN = "make up for runs by “Run now” of their schedules";
  test.each<[string, { mail: boolean; run: boolean }, [subject: string, ...words: string[]]]>([
    [
      "a mail",
      { mail: true, run: false },
      AGAIN
        ? [
            "Mail was taken, but not worked on",
            "One mail to your inboxes was not worked on when it came",
            MAIL,
          ]
        : ["Your Mailwright credits are used up", "2 mails came in since then. They are kept", MAIL],
    ],
    [
      "a run of a schedule",
      { mail: false, run: true },
      AGAIN
        ? [
            "Runs of your schedules were left out",
            "One run of your schedules was not worked on at the time, because there were no credits.",
            RUN,
          ]
        : [
            "Your Mailwright credits are used up",
            "One mail came in since then, and one run of your schedules was left out. They are kept",
            `${MAIL}, and ${RUN}`,
          ],
    ],
    [
      "both",
      { mail: true, run: true },
      AGAIN
        ? [
            "Mail was taken, but not worked on",
            "One mail to your inboxes and one run of your schedules were not worked on",
            `${MAIL}, and ${RUN}`,
          ]
        : [
            "Your Mailwright credits are used up",
            "2 mails came in since then, and one run of your schedules was left out",
            `${MAIL}, and ${RUN}`,
          ],
    ],
  ])("%s", async (_what, { mail, run }, [subject, ...words]) => {
    await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 1 } } } });
    if (run) await schedule(room);
    for (let count = 0; count < 2; count += 1) await send(room);
    await room.drain();
    const [today] = await told(room);
    expect(today).toMatchObject({ subject: "Your Mailwright credits are used up" });
    expect(today?.words).toContain("Mail to your inboxes is not being worked on");
    room.clock.advance("2h");
    if (mail) await send(room);
    await room.drain();
    expect(await told(room)).toHaveLength(1);
    await nextDay(room);
    await room.drain();
    const [, tomorrow, ...others] = await told(room);
    expect([tomorrow?.subject, others]).toEqual([subject, []]);
    for (const word of words) expect(tomorrow?.words).toContain(word);
  });
});

test("a run of a schedule alone that finds no credits is told of in its own words", async () => {
  await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
  await schedule(room);
  room.clock.advance("2h");
  await room.drain();
  const [letter, ...others] = await told(room);
  expect([letter?.subject, others]).toEqual(["Your Mailwright credits are used up", []]);
  expect(letter?.words).toContain("Your schedules are not being worked on: your credits");
  expect(letter?.words).toContain("One run of your schedules was left out. It is kept and listed");
  expect(letter?.words).not.toContain("senders");
});

test.each([
  ["still without", "1d"],
  ["with credits again", "20d"],
])(
  "mail over the cap that was tried again meanwhile is told of no more the next day, %s",
  async (_how, span) => {
    await using room = await mailroom({ config: { plans: { default: "free", free: { credits: 0 } } } });
    await send(room);
    await room.drain();
    room.clock.advance("2h");
    await send(room);
    await room.drain();
    await setPlan(room.app, { email: "ada@example.com", plan: "pro" });
    for (const { message_id } of await room.activity())
      expect((await room.owner.post(`/messages/${message_id}/retry`)).status).toBe(202);
    await room.drain();
    await setPlan(room.app, { email: "ada@example.com", plan: "free" });
    room.clock.advance(span);
    await room.drain();
    expect(await told(room)).toHaveLength(1);
  },
);

/** Has something done at 13:00 on the fifteenth of each month: the rooms begin at noon of such a day. */
async function schedule(room: Mailroom): Promise<void> {
  const order = { instruction: "Tell me the news.", every: "monthly 15 13:00", timezone: "UTC" };
  expect((await room.owner.post("/v1/schedules", order)).status).toBe(201);
  await forgetNotices(room.app);
}

/** The letters to the owner, oldest first. */
async function told(room: Mailroom): Promise<{ subject: string | undefined; words: string }[]> {
  const letters = (await notices(room)).filter(({ message_id }) => message_id === null);
  const read = await Promise.all(letters.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
  return read.map(({ subject, text = "" }) => ({
    subject,
    words: text.replaceAll(/\s*<https?:[^>]*>/g, "").replaceAll(/\s+/g, " "),
  }));
}

test("a mail over the cap is an event for webhooks, of the type message.skipped", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 0 } } } });
  await room.owner.post("/v1/webhooks", { url: "https://hooks.example.invalid/", event_types: ["*"] });
  await send(room);
  const events = await room.app.db.selectFrom("events").select(["type", "body"]).execute();
  expect(events.map(({ type }) => type)).toEqual(["message.skipped"]);
  expect(JSON.parse(events[0]?.body ?? "")).toMatchObject({ data: { object: { status: "limited" } } });
});

async function send(room: Mailroom, from?: string): Promise<void> {
  const mail = { text: `Hello ${Bun.randomUUIDv7()}`, ...freshId() };
  expect(await room.send(from === undefined ? mail : { ...mail, from })).toStartWith("250 ");
}

async function notices(room: Mailroom): Promise<OutgoingMailRow[]> {
  return (await room.outgoing()).filter(({ kind }) => kind === "notice");
}

test("strangers leave a fifth of the credits to the owner and those on the list, and the owner is told", async () => {
  await using room = await mailroom({ config: { plans: { team: { credits: 10 } } } });
  for (let count = 0; count < 12; count += 1) await send(room, BOB);
  await room.drain();
  const statuses = async (sender: string) =>
    (await room.activity())
      .filter((entry) => entry.sender === sender)
      .map(({ status }: { status: string }) => status)
      .sort();
  expect(await statuses("bob@example.org")).toEqual([...Array(8).fill("done"), ...Array(4).fill("limited")]);
  const [notice, ...others] = await notices(room);
  expect(others).toEqual([]);
  const { subject, text } = await simpleParser(Buffer.from(notice?.raw ?? []));
  expect(subject).toBe("Mail of strangers has used its share of your Mailwright credits");
  expect(text).toContain("the last 2 are kept");
  expect(text).toContain("4 mails came in since then");
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: ["carol@example.net"] });
  await send(room, "Carol <carol@example.net>");
  await send(room);
  await room.drain();
  expect(await statuses("carol@example.net")).toEqual(["done"]);
  expect(await statuses("ada@example.com")).toEqual(["done"]);
  expect((await room.owner.post("/v1/messages", { instruction: "x" })).status).toBe(429);
});

test.each([
  [
    "after",
    [BOB, "Ada <ada@example.com>", "Eve <eve@example.net>"],
    [
      "Mail of strangers has used its share of your Mailwright credits",
      "Your Mailwright credits are used up",
    ],
  ],
  ["before", ["Ada <ada@example.com>", BOB], ["Your Mailwright credits are used up"]],
] as const)(
  "own mail beyond the cap is told of on the day on which strangers used up their share: %s it",
  async (_, senders, subjects) => {
    await using room = await mailroom({ config: { plans: { team: { credits: 10 } } } });
    for (const sender of senders) {
      for (let count = 0; count < 12; count += 1) await send(room, sender);
      await room.drain();
    }
    const letters = await notices(room);
    const read = await Promise.all(letters.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
    expect(read.map(({ subject }) => subject)).toEqual([...subjects]);
    // Each letter counts the mails that it is about.
    if (subjects.length === 2) expect(read[0]?.text).toContain("4 mails came in since then");
    expect(read.at(-1)?.text).toContain(`${subjects.length === 2 ? 14 : 2} mails came in since then`);
    room.clock.advance("1d");
    await send(room);
    await room.drain();
    expect(await notices(room)).toHaveLength(subjects.length + 1);
  },
);
