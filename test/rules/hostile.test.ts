import { describe, expect, spyOn, test } from "bun:test";
import { mailroom, type Mailroom, READS_ANYBODY } from "../support/mailroom.ts";

/** Made comparable, each becomes eighteen characters. */
const LONG = "\uFDFA";
/** The most characters that this thread makes comparable for one mail. */
const FEW = 20_000;

/** Counts the characters that this thread normalises while something is done. */
async function normalisedIn(work: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const { normalize } = String.prototype;
  using _ = spyOn(String.prototype, "normalize").mockImplementation(function (this: string, form?: string) {
    count += this.length;
    return normalize.call(this, form);
  });
  await work();
  return count;
}

async function roomWith(field: object, count: number): Promise<Mailroom> {
  const room = await mailroom({ inbox: READS_ANYBODY });
  const rules = Array.from({ length: count / 10 }, (_, rule) => ({
    name: `R${rule}`,
    match: "any",
    when: Array.from({ length: 10 }, (__, at) => ({ ...field, contains: [`word${rule}x${at}`] })),
    do: { keep: true },
  }));
  const answer = await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules });
  expect(answer.status).toBe(200);
  return room;
}

const ENCODED = `=?utf-8?B?${Buffer.from(LONG.repeat(14)).toString("base64")}?=`;

describe("a mail that was made to take long is not made comparable in this thread, once for each word,", () => {
  for (const [what, field, count, mail] of [
    ["its text", { field: "text" }, 200, { text: LONG.repeat(60_000) }],
    [
      "its header",
      { field: "header", name: "X-Any" },
      500,
      { text: "x", headers: { "X-Any": Array.from({ length: 300 }, () => ENCODED).join("\r\n ") } },
    ],
  ] as const)
    test(what, async () => {
      await using room = await roomWith(field, count);
      const headers = { "Message-ID": "<a@b>", ...("headers" in mail ? mail.headers : {}) };
      const from = "Eve <eve@example.net>";
      expect(await room.send({ from, text: mail.text, headers })).toStartWith("250");
      expect(await normalisedIn(() => room.drain())).toBeLessThan(FEW);
      expect((await room.newest()).state).toBe("done");
      const tried = await normalisedIn(() => room.owner.post(`/inboxes/${room.inbox.id}/rules/try`, {}));
      expect(tried).toBeLessThan(FEW);
    });

  test("with a word in it that is found all the same", async () => {
    await using room = await roomWith({ field: "text" }, 200);
    await room.send({ text: `${"hello ".repeat(2_000)} Word19x9 and more` });
    await room.drain();
    expect(await room.newest()).toMatchObject({ state: "skipped", reason: "kept_by_rule" });
    const { body } = await room.owner.post(`/inboxes/${room.inbox.id}/rules/try`, {});
    expect(body.items).toMatchObject([{ becomes: "kept", rules: ["R19"] }]);
  });
});
