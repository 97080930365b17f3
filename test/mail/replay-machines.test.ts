import { describe, expect, test } from "bun:test";
import { rawMail } from "../support/mails.ts";
import { pass } from "../support/purge.ts";
import { ADA, altered, BOB, signedRoom, type SignedRoom, straight } from "../support/signed-room.ts";

const ADDRESS = "ada@example.com";
const AUTO = "Auto-Submitted: auto-generated";
const LIST = "List-Id: <forms.example.com>";
const A_DAY = { inbox: { retention_days: 1 } };
const BULK = { inbox: { retention_days: 1, inbound_policy: { process_bulk: true } } };

/** Nobody has been obeyed; what a machine sent may have been read as anybody's mail is. */
async function expectNoOrder(t: SignedRoom): Promise<void> {
  await t.drain();
  for (const { body } of t.model.requests)
    expect(body?.messages.at(-1)?.content).toMatch(/^Read the material/);
}

describe("what a machine sent in the owner's name", () => {
  const marks: [string, string, string][] = [
    ["Auto-Submitted", AUTO, ADDRESS],
    ["Auto-Submitted of an answer", "Auto-Submitted: auto-replied", ADDRESS],
    ["List-Id", LIST, ADDRESS],
    ["List-Unsubscribe", "List-Unsubscribe: <mailto:leave@example.com>", ADDRESS],
    ["Precedence", "Precedence: bulk", ADDRESS],
    ["X-Auto-Response-Suppress", "X-Auto-Response-Suppress: All", ADDRESS],
    ["X-Autoreply", "X-Autoreply: yes", ADDRESS],
    ["the count of our answers", "X-Mailwright-Hop: 5", ADDRESS],
    ["an envelope without a sender", "X-Mailer: form", ""],
    ["an envelope of a mail system", "X-Mailer: form", "mailer-daemon@example.com"],
  ];

  test.each(marks)("is not obeyed without its mark: %s", async (_what, mark, mail_from) => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    expect(await straight(t, altered(raw, mark), mail_from)).toStartWith("250");
    expect(await t.newest()).toMatchObject({ state: "skipped" });
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toEqual([]);
    expect(await t.activity()).toHaveLength(1);
    expect(await t.newest()).toMatchObject({ state: "skipped", duplicates: 1 });
  });

  test.each(marks)(
    "is not obeyed after its message was deleted either: %s",
    async (_what, mark, mail_from) => {
      await using t = await signedRoom(A_DAY);
      const raw = await t.signed();
      await straight(t, altered(raw, mark), mail_from);
      await pass(t, 3);
      expect(await t.activity()).toEqual([]);
      expect(await t.again(raw)).toStartWith("250");
      await t.drain();
      expect(t.model.requests).toEqual([]);
      expect(await t.activity()).toMatchObject([{ reason: "duplicate", mails: 1 }]);
    },
  );

  test.each([false, true])("is anybody's mail in an inbox that reads such, deleted: %p", async (deleted) => {
    await using t = await signedRoom(BULK);
    const raw = await t.signed();
    await straight(t, altered(raw, LIST));
    await t.drain();
    expect(await t.newest()).toMatchObject({ state: "done", authority: "stranger" });
    if (deleted) await pass(t, 3);
    expect(await t.again(raw)).toStartWith("250");
    await expectNoOrder(t);
    expect(t.model.requests).toHaveLength(1);
  });

  test("is not obeyed where it came by others the first time, and a field that is not signed goes with its mark", async () => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    expect(await t.again(altered(altered(raw, "Reply-To: visitor@example.net"), AUTO))).toStartWith("250");
    expect(await t.newest()).toMatchObject({ state: "skipped", vouched: 0 });
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toEqual([]);
  });

  test("is known also where others have used up the rows of the hour", async () => {
    await using t = await signedRoom(A_DAY);
    const rows = { limit: 200, window_seconds: 3_600 };
    while (t.app.limiter.take(`skipped:${t.inbox.id}:proven`, rows).ok);
    const raw = await t.signed();
    await t.again(altered(altered(raw, "Reply-To: visitor@example.net"), AUTO));
    expect(await t.newest()).toMatchObject({ mails: 1, sender: null });
    await t.again(raw);
    await t.drain();
    expect(t.model.requests).toEqual([]);
  });

  test("is skipped for a mark that nobody signed", async () => {
    await using t = await signedRoom();
    await t.again(altered(await t.signed(), AUTO));
    expect(await t.newest()).toMatchObject({ state: "skipped", reason: "auto_submitted", vouched: 1 });
  });
});

describe("what somebody else did keeps no mail of the owner's out:", () => {
  const obeyed = async (t: SignedRoom) => {
    expect(await t.instruction()).toStartWith("Say hello.");
    expect(await t.newest()).toMatchObject({ state: "done", authority: "owner" });
  };

  test("a copy with a mark, where her own server brings the mail", async () => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    await t.again(altered(raw, AUTO));
    await straight(t, raw);
    await obeyed(t);
  });

  test("a copy with a mark that has been deleted, where her own server brings the mail", async () => {
    await using t = await signedRoom(BULK);
    const raw = await t.signed();
    await t.again(altered(raw, LIST));
    await t.drain();
    await pass(t, 3);
    await straight(t, raw);
    await obeyed(t);
  });

  test("a machine's mail of hers, and then another one", async () => {
    await using t = await signedRoom();
    await straight(t, altered(await t.signed(), AUTO));
    await t.again(await t.signed());
    await obeyed(t);
  });

  test("a stranger's mail with a mark and the same Message-ID", async () => {
    await using t = await signedRoom(BULK);
    const headers = { "Message-ID": "<same@example.com>" };
    await t.again(altered(await t.signed({ from: BOB, headers }), LIST));
    await t.drain();
    await t.again(await t.signed({ headers }));
    await obeyed(t);
  });

  test("a forgery with a mark", async () => {
    await using t = await signedRoom(BULK);
    const headers = { "Message-ID": "<same@example.com>" };
    await t.again(rawMail({ from: ADA, to: t.inbox.address, headers: { ...headers, "List-Id": "<x>" } }));
    await t.again(
      rawMail({
        from: ADA,
        to: t.inbox.address,
        headers: { ...headers, "Auto-Submitted": "auto-generated" },
      }),
    );
    await t.again(await t.signed({ headers }));
    await obeyed(t);
  });

  test("a forgery of a stranger's mail with a mark keeps out none of the stranger's", async () => {
    await using t = await signedRoom(BULK);
    const headers = { "Message-ID": "<same@example.org>" };
    await t.again(rawMail({ from: BOB, to: t.inbox.address, headers: { ...headers, "List-Id": "<x>" } }));
    await t.drain();
    await t.again(await t.signed({ from: BOB, headers }));
    await t.drain();
    expect(await t.newest()).toMatchObject({ state: "done", authority: "stranger", vouched: 1 });
  });

  test("a cap that was reached, for what is sent again below it", async () => {
    await using t = await signedRoom({ config: { limits: { replies_per_sender_hour: 1 } } });
    await t.again(await t.signed());
    const raw = await t.signed();
    await t.again(raw);
    expect(await t.newest()).toMatchObject({ state: "skipped", reason: "loop_cap" });
    t.clock.advance("61m");
    await t.again(raw);
    await obeyed(t);
  });
});
