import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { purge } from "../support/purge.ts";
import {
  answer,
  answerTo,
  askOnce,
  type ApprovalRoom,
  approvalRoom,
  killedAt,
  lastMail,
  type Letter,
  pressYes,
  read,
} from "./room.ts";

let room: ApprovalRoom;
beforeEach(async () => {
  room = await approvalRoom();
});
afterEach(() => room[Symbol.asyncDispose]());

type Asked = Awaited<ReturnType<typeof askOnce>>;

const WAYS: [string, (asked: Asked) => Promise<unknown>][] = [
  ["by its button", ({ approval }) => pressYes(room, approval)],
  ["by mail", ({ letter }) => room.send(answerTo(letter, "yes"))],
];

/** Has the run of a message given up: nobody can read any more what its job is for. */
async function giveUp(): Promise<void> {
  await room.app.db
    .updateTable("jobs")
    .set({ payload: "{" })
    .where("kind", "=", "route_message")
    .where("status", "=", "pending")
    .execute();
  await room.drain();
}

/** What the owner was mailed since. */
async function told(before: number): Promise<Letter> {
  expect(await room.outgoing()).toHaveLength(before + 1);
  return lastMail(room);
}

describe.each(WAYS)("a yes %s", (_how, say) => {
  test("whose run is given up is told of, and can be said again", async () => {
    const asked = await askOnce(room);
    const before = (await room.outgoing()).length;
    await say(asked);
    await giveUp();
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, asked.approval.id)).toMatchObject({ status: "pending", run_id: null });
    const { text, to } = await told(before);
    expect(to).toBe("ada@example.com");
    expect(text).toContain("Nothing was called, and nothing was charged. The request waits as it did");
    await answer(room, asked.letter, "yes");
    expect(room.tools.calls).toHaveLength(1);
    expect(await read(room.owner, asked.approval.id)).toMatchObject({ status: "done" });
  });

  test.each<[string, string | null, string, string]>([
    ["was not answered", null, "unknown", "It may or may not have been done"],
    ["was answered", "created 9", "done", "It is done, once."],
  ])(
    "whose run is given up once its call %s says what is known of it",
    async (_what, heard, status, words) => {
      const asked = await askOnce(room);
      const before = (await room.outgoing()).length;
      await say(asked);
      await killedAt(room, asked.approval, (await room.newest()).id, heard);
      await giveUp();
      expect(await read(room.owner, asked.approval.id)).toMatchObject({ status });
      expect((await told(before)).text).toContain(words);
      await answer(room, asked.letter, "yes");
      expect(room.tools.calls).toEqual([]);
    },
  );

  test("that is cancelled is no yes any more: the request waits, and a key that tries it again has nothing called", async () => {
    const asked = await askOnce(room);
    await say(asked);
    const { id } = await room.newest();
    expect((await room.owner.post(`/messages/${id}/cancel`)).status).toBe(200);
    expect(await read(room.owner, asked.approval.id)).toMatchObject({ status: "pending" });
    expect((await room.owner.post(`/messages/${id}/retry`)).status).toBe(202);
    await room.drain();
    expect(room.tools.calls).toEqual([]);
    expect((await lastMail(room)).text).toContain("Your yes was cancelled before it was done");
    await answer(room, asked.letter, "yes");
    expect(room.tools.calls).toHaveLength(1);
  });
});

test("a rule that takes the authority of texts takes none of the button", async () => {
  const { approval } = await askOnce(room);
  const rules = [{ name: "Read only", when: [], do: { authority: "stranger" } }];
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules })).status).toBe(200);
  await pressYes(room, approval);
  await room.drain();
  expect(room.tools.calls).toHaveLength(1);
});

test.each<["approved" | "called", string]>([
  ["approved", "pending"],
  ["called", "unknown"],
])("a request that an older version has left as %p is looked at within the hour", async (state, status) => {
  const { approval } = await askOnce(room);
  await room.app.db
    .updateTable("approvals")
    .set({ state, run_id: approval.message_id, decided_at: room.app.now() })
    .where("id", "=", approval.id)
    .execute();
  expect(await read(room.owner, approval.id)).toMatchObject({ status: "approved" });
  const before = (await room.outgoing()).length;
  await purge(room);
  expect(await read(room.owner, approval.id)).toMatchObject({ status });
  if (status === "pending") expect((await told(before)).subject).toBe("Calls of tools wait for your yes");
});
