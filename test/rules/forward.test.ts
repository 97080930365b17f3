import { describe, expect, test } from "bun:test";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { forgetNotices } from "../support/notices.ts";
import { pass } from "../support/purge.ts";
import { deliver } from "../support/smtp-client.ts";
import { type SinkOptions, startSmtpSink } from "../support/smtp-sink.ts";

const OWNER = "ada@example.com";
const SPAM = "554 5.7.1 message looks like spam";

const refusesForwards: SinkOptions = {
  reject_mail: (raw) => (raw.includes("forwards this mail") ? SPAM : undefined),
};

interface Forwards extends Mailroom {
  /** The mails that got out. */
  mails: { raw: Buffer; mail_from: string }[];
  shop(text?: string): Promise<string>;
  drainAll(): Promise<void>;
}

/** A room whose relay is a sink, with one rule that forwards everything. */
async function forwards(
  acts: object,
  { sink: options = {}, ...more }: Parameters<typeof mailroom>[0] & { sink?: SinkOptions } = {},
): Promise<Forwards> {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink(options));
  const outbound = { mode: "relay" as const, relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60] };
  const room = stack.use(await mailroom({ ...more, config: { outbound, ...more.config } }));
  const rules = [{ name: "Fwd", when: [], do: { forward_to: OWNER, ...acts } }];
  const answer = await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
  expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  await forgetNotices(room.app);
  const built = stack.move();
  return {
    ...room,
    mails: sink.mails,
    shop: (text = "Invoice 4711") => room.send({ from: "Shop <shop@example.net>", text }),
    async drainAll() {
      for (let times = 0; times < 4; times++) {
        await room.drain();
        room.clock.advance("10m");
      }
    },
    [Symbol.asyncDispose]: () => built.disposeAsync(),
  };
}

async function storyOf(room: Mailroom) {
  const { id } = await room.newest();
  return (await room.owner.get(`/messages/${id}`)).body;
}

async function isThere(room: Mailroom): Promise<boolean> {
  const { bytes } = await room.app.db.selectFrom("raw_mails").select("bytes").executeTakeFirstOrThrow();
  return bytes !== null;
}

function subjects({ mails }: Forwards): string[] {
  return mails.map(({ raw }) => /^Subject: (.*)$/m.exec(raw.toString())?.[1]?.trim() ?? "");
}

const outcome = (output: RegExp, more: object = {}) =>
  expect.arrayContaining([
    expect.objectContaining({ name: "forward", output: expect.stringMatching(output), ...more }),
  ]);

describe("a mail that a rule forwards", () => {
  for (const acts of [{ skip: true }, { keep: true }, {}])
    test(`that is refused is kept, says so and tells its owner (${JSON.stringify(acts)})`, async () => {
      await using room = await forwards(acts, { sink: refusesForwards });
      expect(await room.shop()).toStartWith("250");
      await room.drainAll();
      const story = await storyOf(room);
      expect(story.steps).toEqual(
        outcome(/^It was not forwarded to ada@example\.com: .*looks like spam/, {
          type: "warning",
          status: "error",
        }),
      );
      expect(JSON.stringify(story.steps)).not.toContain("was forwarded to");
      expect(await isThere(room)).toBe(true);
      expect(story.raw_available).toBe(true);
      expect(subjects(room)).toContain("A mail was not forwarded to you");
      if ("skip" in acts) {
        expect(story).toMatchObject({
          reason: "kept_by_rule",
          error: expect.stringContaining("could not be forwarded"),
        });
        const again = await room.owner.post(`/messages/${story.message_id}/retry`);
        expect(again.status).toBe(202);
      }
      expect((await room.owner.get("/admin/queue?state=dead")).body.items).toEqual([]);
    });

  test("that is left out as well is forgotten once it has been handed over, and not before", async () => {
    let down = true;
    await using room = await forwards(
      { skip: true },
      { sink: { reject_mail: () => (down ? "451 4.3.0 not now" : undefined) } },
    );
    await room.shop();
    await room.drain();
    let story = await storyOf(room);
    expect([await isThere(room), story.reason]).toEqual([true, "kept_by_rule"]);
    expect(story.steps).toEqual(outcome(/^It is being forwarded .*not now/));
    down = false;
    room.clock.advance("2m");
    await room.drain();
    story = await storyOf(room);
    expect([await isThere(room), story.reason, story.error]).toEqual([
      false,
      "rule",
      "skipped: Your rule “Fwd” left it out.",
    ]);
    expect(story.steps).toEqual(outcome(/^It was forwarded to ada@example\.com\.$/, { type: "context" }));
    expect(story.reply).toBeNull();
    expect(subjects(room)).toEqual(["Fwd: Hello"]);
    expect(room.mails[0]?.raw.toString()).toContain("message.eml");
  });

  test("does not become the answer of its message", async () => {
    await using room = await forwards({}, { sink: refusesForwards });
    await room.send({ text: "Say hello" });
    await room.drainAll();
    const story = await storyOf(room);
    expect(story).toMatchObject({ status: "done", reply_status: "sent", reply_error: null });
    expect(story.reply).toMatchObject({ to: OWNER, status: "sent" });
  });

  test("that comes back later, when it has been forgotten here, is kept for the operator", async () => {
    await using room = await forwards({ skip: true });
    await room.shop();
    await room.drain();
    expect(await isThere(room)).toBe(false);
    room.clock.advance("2d");
    const raw = notification({ action: "failed", status: "5.7.1" });
    await deliver(room.door, { from: "", to: room.mails[0]?.mail_from ?? "", raw });
    await room.drainAll();
    const story = await storyOf(room);
    expect(story.steps).toEqual(outcome(/^It was not forwarded .*can send the letter again/));
    expect(subjects(room)).toEqual(["Fwd: Hello", "A mail was not forwarded to you"]);
    const { items } = (await room.owner.get("/admin/queue?state=dead")).body;
    expect(items).toMatchObject([{ kind: "send_mail" }]);
    expect((await room.owner.post(`/admin/queue/${items[0].id}/retry`)).status).toBe(204);
    await room.drain();
    expect(subjects(room)).toEqual(["Fwd: Hello", "A mail was not forwarded to you", "Fwd: Hello"]);
    expect((await storyOf(room)).steps).toEqual(outcome(/^It was forwarded to ada@example\.com\.$/));
  });

  test("is kept where its owner has another address by now, before and after it was queued", async () => {
    await using room = await forwards({ skip: true }, { sink: { reject_mail: () => "451 4.3.0 not now" } });
    await room.shop();
    await room.drain();
    const moved = { email: "ada@new.example" };
    await room.app.db.updateTable("users").set(moved).where("email", "=", OWNER).execute();
    room.clock.advance("2m");
    await room.drainAll();
    expect((await storyOf(room)).steps).toEqual(outcome(/not the proven address of this account any more/));
    await room.shop("Another one");
    await room.drainAll();
    expect((await storyOf(room)).steps).toEqual(outcome(/not the proven address of this account any more/));
    const mails = await room.app.db.selectFrom("raw_mails").select("bytes").execute();
    expect(mails.filter(({ bytes }) => bytes === null)).toEqual([]);
    const letters = async () =>
      (await room.outgoing()).filter(({ raw }) =>
        raw?.toString().includes("A mail was not forwarded to you"),
      );
    expect(await letters()).toHaveLength(1);
    room.clock.advance("1d");
    await room.drain();
    expect(await letters()).toHaveLength(2);
  });

  test("that is too large for that is kept", async () => {
    await using room = await forwards({ skip: true });
    const content = "x".repeat(76).concat("\r\n").repeat(220_000);
    const attachments = [{ filename: "big.bin", content_type: "application/octet-stream", content }];
    expect(await room.send({ from: "Shop <shop@example.net>", text: "Invoice", attachments })).toStartWith(
      "250",
    );
    await room.drainAll();
    const story = await storyOf(room);
    expect(story).toMatchObject({ reason: "kept_by_rule", raw_available: true });
    expect(story.steps).toEqual(outcome(/larger than 15 MB/));
    expect(subjects(room)).toEqual(["A mail was not forwarded to you"]);
  });

  test("is forwarded once, however often it is tried", async () => {
    await using room = await forwards({ keep: true });
    await room.shop();
    await room.drain();
    const { message_id } = await storyOf(room);
    expect((await room.owner.post(`/messages/${message_id}/retry`)).status).toBe(202);
    await room.drain();
    expect(subjects(room).filter((subject) => subject.startsWith("Fwd:"))).toEqual(["Fwd: Hello"]);
    expect((await storyOf(room)).steps).toEqual(outcome(/forwarded to ada@example\.com before/));
  });

  test("leaves a letter for a week where it is left out, in which it may come back, however long mail is kept", async () => {
    for (const outbound of [{}, { mode: "capture" as const }]) {
      await using room = await forwards({ skip: true }, { config: { outbound, retention: { raw_days: 0 } } });
      await room.shop();
      await room.drain();
      const held = async () => (await room.outgoing()).map(({ kind, raw }) => [kind, raw !== null]);
      await pass(room, 6);
      expect(await held()).toEqual([["forward", true]]);
      await pass(room, 2);
      expect(await held()).toEqual([["forward", false]]);
    }
  });

  test("keeps the letter of what is kept itself for as long as that", async () => {
    await using room = await forwards({ keep: true }, { config: { retention: { raw_days: 0 } } });
    await room.shop();
    await room.drain();
    await pass(room, 8);
    expect((await room.outgoing()).map(({ kind, raw }) => [kind, raw !== null])).toEqual([["forward", true]]);
  });

  test("leaves nothing in a letter where it was private", async () => {
    await using room = await forwards({ options: { private: true } });
    await room.send({ text: "Say hello" });
    await room.drainAll();
    const mails = await room.outgoing();
    expect(mails.map(({ kind, status, raw }) => [kind, status, raw])).toEqual([
      ["forward", "sent", null],
      ["reply", "sent", null],
    ]);
  });
});
