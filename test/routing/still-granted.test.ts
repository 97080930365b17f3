import { expect, test } from "bun:test";
import type { Answer } from "../support/app.ts";
import { create, list, toolRoom, type ToolRoom } from "../support/tool-room.ts";

const LEA = "lea@example.org";

/** A run whose model is asked once before `take`, then writes; gives the calls that the tool server got. */
async function callsAfter(take: (room: ToolRoom) => Promise<Answer>, from = "Ada <ada@example.com>") {
  const taken = Promise.withResolvers<ToolRoom>();
  await using room = await toolRoom([
    async () => {
      expect((await take(await taken.promise)).status).toBeLessThan(300);
      return [list()];
    },
    [create()],
    "Done.",
  ]);
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: [LEA] });
  taken.resolve(room);
  await room.send({ from, text: "@calendar Put lunch into it" });
  await room.drain();
  return room.tools.calls.map((one) => (one as { name?: string }).name);
}

test.each<[string, Record<string, unknown>]>([
  ["every target", { scope: { targets: [] } }],
  ["that target", { scope: { targets: ["notes"] } }],
  ["the tool server", { mcp_connection_ids: [] }],
])("what an inbox has lost while a run goes on is not used by it any more: %s", async (_, change) => {
  const calls = await callsAfter((room) => room.owner.patch(`/inboxes/${room.inbox.id}`, change));
  expect(calls).toEqual(["list_events"]);
});

test("what an inbox has is not used by the run of a sender who has been taken off the list meanwhile", async () => {
  const from = `Lea <${LEA}>`;
  const change = { allowlist_senders: ["bob@example.org"] };
  expect(await callsAfter((room) => room.owner.patch(`/inboxes/${room.inbox.id}`, change), from)).toEqual([
    "list_events",
  ]);
});

test("another change of the inbox stops no run", async () => {
  const change = { label: "Office" };
  expect(await callsAfter((room) => room.owner.patch(`/inboxes/${room.inbox.id}`, change))).toEqual([
    "list_events",
    "create_event",
  ]);
});
