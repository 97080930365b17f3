import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { answer, ask, type ApprovalRoom, approvalRoom, lastMail, type Letter, letters } from "./room.ts";

let room: ApprovalRoom;
beforeEach(async () => {
  room = await approvalRoom();
});
afterEach(() => room[Symbol.asyncDispose]());

const five = (what: string) =>
  [1, 2, 3, 4, 5].map((nth) => ({ name: "calendar__create_event", args: { title: `${what} ${nth}` } }));

/** Has five more calls wanted in a thread, within the same hour. */
async function askInThread(): Promise<Letter[]> {
  const before = (await letters(room)).length;
  const { reply_to: rcpt, id } = await lastMail(room);
  room.rounds.push(five("Dinner"), "It waits.");
  expect(await write(rcpt, "Plan a dinner as well.", { "In-Reply-To": id })).toStartWith("250");
  return letters(room, before);
}

async function write(rcpt: string, text: string, headers: Record<string, string> = {}): Promise<string> {
  const id = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  const said = await room.send({
    to: rcpt,
    rcpt,
    subject: "Re: Lunch",
    text,
    headers: { ...id, ...headers },
  });
  await room.drain();
  return said;
}

async function statuses(): Promise<string[]> {
  const { body } = await room.owner.get("/v1/approvals");
  return body.items.map(({ status }: { status: string }) => status);
}

describe("answers to requests that wait", () => {
  test.each([
    ["yes", "done", 10],
    ["no", "refused", 0],
  ])(
    "all count, ten %p within an hour too, and use up no turn of the thread",
    async (word, status, calls) => {
      for (const letter of await ask(room, five("Lunch")))
        expect(await answer(room, letter, word)).toStartWith("250");
      for (const letter of await askInThread()) expect(await answer(room, letter, word)).toStartWith("250");
      expect(await statuses()).toEqual(Array(10).fill(status));
      expect(room.tools.calls).toHaveLength(calls);
      const { reply_to } = await lastMail(room);
      expect(await write(reply_to, "Thanks. What is left to plan?")).toStartWith("250");
      expect(await room.newest()).toMatchObject({ state: "done", model: "stand-in" });
    },
  );

  test.each<[string, Record<string, string>]>([
    ["mail that a machine may have written", { "X-Loop": "ada@example.com" }],
    ["what comes behind an answer", {}],
  ])("are no way round the caps on loops for %s", async (what, headers) => {
    const asked = await ask(room, five("Lunch"));
    const [letter] = asked;
    const late = what.startsWith("what") && letter !== undefined;
    if (late) await answer(room, letter, "no");
    const before = (await room.activity()).length;
    for (const one of late ? Array<Letter>(5).fill(letter) : asked)
      await answer(room, one, "I am away.", { headers, subject: "Away" });
    const taken = (await room.activity()).slice(0, -before).map(({ reason }) => reason);
    expect(taken).toEqual(["loop_cap", "loop_cap", null, null, null]);
  });
});
