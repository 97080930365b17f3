import { describe, expect, test } from "bun:test";
import { addressIn } from "../support/mailroom.ts";
import { ADA, altered, BOB, signedRoom, type SignedRoom, straight } from "../support/signed-room.ts";

const FEW = { plans: { team: { inbound_per_hour: 3 } }, limits: { inbound_per_sender_hour: 3 } };
const READS_BULK = { inbound_policy: { process_bulk: true } };

const SENDERS: [who: string, from: string, inbox: Record<string, unknown>, authority: string][] = [
  ["the owner", ADA, {}, "owner"],
  ["a listed sender", BOB, { allowlist_senders: ["bob@example.org"] }, "listed"],
  ["a stranger who is proven", BOB, {}, "stranger"],
];

/** Fields of machines, which anybody can write above a mail that somebody else has signed. */
const MARKS: [what: string, field: string][] = [
  ["an automatic answer", "Auto-Submitted: auto-replied"],
  ["a notice", "Auto-Submitted: auto-generated"],
  ["a list", "List-Id: <forms.example.com>"],
  ["bulk mail", "Precedence: bulk"],
  ["a loop", "X-Mailwright-Hop: 5"],
];

/** Makes the same mail each time, or another one. */
type Mails = (n: number) => Promise<Buffer>;

async function replay(t: SignedRoom, times: number, mails: Mails): Promise<void> {
  for (let n = 0; n < times; n += 1) expect(await t.again(await mails(n))).toMatch(/^(?:250|451)/);
  await t.drain();
}

describe.each(SENDERS)("copies of the mail of %s that somebody marked as", (_who, from, inbox, authority) => {
  const signed = (t: SignedRoom, text: string) => t.signed({ from, text });
  const direct = (t: SignedRoom, raw: Buffer) => straight(t, raw, addressIn(from));
  const expectTaken = async (t: SignedRoom, sending: Promise<string>) => {
    expect(await sending).toStartWith("250");
    await t.drain();
    expect(await t.newest()).toMatchObject({ authority, vouched: 1, state: "done", reason: null });
  };
  const expectNextTaken = async (t: SignedRoom) => {
    await expectTaken(t, t.again(await signed(t, "The next one.")));
    await expectTaken(t, direct(t, await signed(t, "And one more.")));
  };

  test.each(MARKS)("%s, and 20 others of it, keep out neither it nor the next one", async (_what, mark) => {
    await using t = await signedRoom({ config: FEW, inbox });
    const raw = await signed(t, "The real one.");
    await replay(t, 1, async () => altered(raw, mark));
    const others = [`X-Copy: 1\r\n${mark}`, "Reply-To: ada@example.com", "X-Copy: 2"];
    await replay(t, 20, async (n) => altered(raw, others[n % others.length]));
    await expectTaken(t, direct(t, raw));
    await expectNextTaken(t);
  });

  test.each(MARKS)(
    "%s, of mails that come for the first time, count as none of theirs",
    async (_what, mark) => {
      await using t = await signedRoom({ config: FEW, inbox });
      await replay(t, 8, async (n) => altered(await signed(t, `${n}`), mark));
      await expectNextTaken(t);
      await replay(t, 8, async (n) => altered(await signed(t, `later ${n}`), mark));
      await expectTaken(t, t.again(await signed(t, "The third.")));
      expect(await t.again(await signed(t, "Beyond the limit."))).toStartWith("451");
    },
  );

  test.each(MARKS)("%s, where such is read, count as none of theirs", async (_what, mark) => {
    await using t = await signedRoom({ config: FEW, inbox: { ...inbox, ...READS_BULK } });
    await replay(t, 8, async (n) => altered(await signed(t, `${n}`), mark));
    await expectNextTaken(t);
  });

  test("each of them, 40 times, of old mails that were worked on, keep the next one from nothing", async () => {
    await using t = await signedRoom({ config: FEW, inbox });
    const old = [await signed(t, "one"), await signed(t, "two"), await signed(t, "three")];
    for (const raw of old) await expectTaken(t, t.again(raw));
    t.clock.advance("61m");
    const copy = (n: number) => altered(old[n % 3] as Buffer, MARKS[n % MARKS.length]?.[1]);
    await replay(t, 40, async (n) => copy(n));
    // The first of each leaves a row, which counts the others.
    expect(await t.activity()).toHaveLength(6);
    await expectNextTaken(t);
  });

  test.each(["", "mailer-daemon@example.com"])(
    "a bounce, from <%s>, count as none of theirs",
    async (mail_from) => {
      await using t = await signedRoom({ config: FEW, inbox });
      const raw = await signed(t, "The real one.");
      for (let n = 0; n < 20; n += 1)
        expect(await t.send({ raw: n < 10 ? raw : await signed(t, `${n}`), mail_from })).toStartWith("250");
      await expectTaken(t, direct(t, raw));
      await expectNextTaken(t);
    },
  );
});

test("what a sender's own machine sends, and is left out, counts as none of the sender's", async () => {
  await using t = await signedRoom({ config: FEW });
  for (let n = 0; n < 8; n += 1)
    await straight(t, altered(await t.signed({ text: `${n}` }), "Auto-Submitted: auto-generated"));
  expect(await straight(t, await t.signed())).toStartWith("250");
});

test("mail of machines that is read meets a limit of its own, by inbox and by sender", async () => {
  await using t = await signedRoom({ config: FEW, inbox: READS_BULK });
  const news = async (from: string, n: number) =>
    t.again(altered(await t.signed({ from, text: `${n}` }), "List-Id: <news.example.org>"));
  for (let n = 0; n < 3; n += 1) expect(await news(BOB, n)).toStartWith("250");
  expect(await news(BOB, 3)).toStartWith("451");
  expect(await news(ADA, 3)).toStartWith("451");
  await t.drain();
  expect(await t.activity()).toHaveLength(3);
});

test("a flood that is left out puts off no mail of machines that is read", async () => {
  await using t = await signedRoom({ config: FEW, inbox: READS_BULK });
  await replay(t, 8, async (n) => altered(await t.signed({ text: `${n}` }), "X-Mailwright-Hop: 5"));
  const news = altered(await t.signed({ from: BOB }), "List-Id: <news.example.org>");
  expect(await t.again(news)).toStartWith("250");
});
