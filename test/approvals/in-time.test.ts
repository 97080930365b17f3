import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { purge } from "../support/purge.ts";
import { answer, answerTo, askOnce, type ApprovalRoom, approvalRoom, pressYes, read } from "./room.ts";

let room: ApprovalRoom;
beforeEach(async () => {
  room = await approvalRoom();
  // The room's clock is believed once it has been seen.
  room.app.calmNow();
});
afterEach(() => room[Symbol.asyncDispose]());

async function pause(paused: "keep" | null): Promise<void> {
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { paused })).status).toBe(200);
  room.clock.advance("1m");
  await room.drain();
}

describe("a yes that came in time counts", () => {
  test("though its run begins later", async () => {
    const { letter } = await askOnce(room);
    room.clock.advance("6d");
    room.clock.advance("22h");
    await pause("keep");
    expect(await room.send(answerTo(letter, "yes"))).toStartWith("250");
    room.clock.advance("4h");
    await room.drain();
    expect(room.tools.calls).toEqual([]);
    await pause(null);
    expect(room.tools.calls).toHaveLength(1);
  });

  test("though the clock is ahead by days as it comes, and right as its run begins or not", async () => {
    const { letter } = await askOnce(room);
    room.clock.leap("9d");
    await answer(room, letter, "yes");
    room.clock.leap("-9d");
    expect(room.tools.calls).toHaveLength(1);
  });

  test("for no longer than seven days, though the clock was ahead by a year when it was asked", async () => {
    room.clock.leap("365d");
    const { letter, approval } = await askOnce(room);
    room.clock.leap("-365d");
    room.clock.advance("30d");
    await answer(room, letter, "yes");
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "expired" });
  });
});

test("what the button has allowed waits while the inbox is paused, like the yes of a mail", async () => {
  const { approval } = await askOnce(room);
  await pause("keep");
  expect((await pressYes(room, approval)).status).toBe(202);
  await room.drain();
  expect(room.tools.calls).toEqual([]);
  await pause(null);
  expect(room.tools.calls).toHaveLength(1);
});

test("a request outlives the days for which its inbox keeps messages, and goes with its message then", async () => {
  const { owner, app } = room;
  expect((await owner.patch(`/inboxes/${room.inbox.id}`, { retention_days: 1 })).status).toBe(200);
  const days = async (count: number) => {
    for (let day = 0; day < count; day += 1) {
      room.clock.advance("1d");
      await room.drain();
    }
    await purge(room);
    await room.drain();
  };
  const { letter, approval } = await askOnce(room);
  await days(5);
  await answer(room, letter, "yes");
  expect(room.tools.calls).toHaveLength(1);
  expect(await read(owner, approval.id)).toMatchObject({ status: "done" });
  const other = (await askOnce(room)).approval;
  await days(9);
  expect((await owner.get(`/v1/approvals/${other.id}`)).status).toBe(404);
  expect(
    await app.db.selectFrom("messages").select("id").where("id", "=", other.message_id).execute(),
  ).toEqual([]);
});
