import { describe, expect, test } from "bun:test";
import { hold, release } from "../../src/operation/admin/queue.ts";
import { create, toolRoom } from "../support/tool-room.ts";

const LEA = "Lea <lea@example.org>";
const OTHERS = ["someone@example.com"];

/** Lea was a listed sender when her mail came; `unlist` says when her owner takes her off. */
async function leaWrites(when: "never" | "before" | "while it waits", list: string[] = OTHERS) {
  const room = await toolRoom([[create({ title: "a" })]], {
    inbox: { allowlist_senders: ["lea@example.org", ...OTHERS] },
  });
  const unlist = async (): Promise<void> => {
    const { status } = await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: list });
    expect(status).toBe(200);
  };
  if (when === "before") await unlist();
  // What a restore does by itself (`HELD_BY_DEFAULT`), an operator on the page of the queue, and a lane that waits.
  await hold(room.app, ["route_message"]);
  const reply = await room.send({ from: LEA, subject: "Order", text: "@calendar Make it" });
  await room.drain();
  expect(room.tools.calls).toEqual([]);
  if (when === "while it waits") await unlist();
  await release(room.app, ["route_message"]);
  await room.drain();
  return { room, reply };
}

describe("a sender who is taken off the list while the mail waits", () => {
  test("one who is listed makes the call", async () => {
    const { room } = await leaWrites("never");
    await using _ = room;
    expect(room.tools.calls.map(({ name }) => name)).toEqual(["create_event"]);
  });

  test("one who was taken off before is refused", async () => {
    const { room, reply } = await leaWrites("before");
    await using _ = room;
    expect(reply).toStartWith("550");
    expect(room.tools.calls).toEqual([]);
  });

  test("has no tool of the owner called", async () => {
    const { room } = await leaWrites("while it waits");
    await using _ = room;
    expect(room.tools.calls).toEqual([]);
  });

  test("has no tool called where the inbox takes mail of strangers now either", async () => {
    const { room } = await leaWrites("while it waits", []);
    await using _ = room;
    expect(room.tools.calls).toEqual([]);
    const { steps } = (await room.activity())[0];
    expect(JSON.stringify(steps)).toContain("is no longer");
  });
});
