import { expect, test } from "bun:test";
import { toolRoom, type ToolRoom } from "../support/tool-room.ts";
import type { ServedTool } from "../support/tool-server.ts";

const tool = (name: string, arg: string, more: Partial<ServedTool>): ServedTool => ({
  name,
  inputSchema: { type: "object", properties: { [arg]: { type: "string" } }, required: [arg] },
  ...more,
});
const READS = { readOnlyHint: true };
const MESSAGE_ID = "<CAB+x7@mail.example.net>";
const UID = "abc123@example.net";
const SERVED = [
  tool("search", "q", {
    annotations: READS,
    run: () => JSON.stringify([{ message_id: MESSAGE_ID, uid: UID, subject: "Lunch" }]),
  }),
  tool("read", "message_id", { annotations: READS, run: () => "Lunch at one?" }),
  tool("open", "uri", { annotations: READS, run: () => "Milk, bread" }),
  tool("archive", "uid", { annotations: { destructiveHint: false }, run: () => "archived" }),
];
const search = { name: "mail__search", args: { q: "Bob" } };
const read = { name: "mail__read", args: { message_id: MESSAGE_ID } };
const archive = { name: "mail__archive", args: { uid: UID } };

async function called(room: ToolRoom, text: string): Promise<string[]> {
  await room.send({ subject: "Bob", text });
  await room.drain();
  return room.tools.calls.map(({ name }) => name);
}

test("the ids that a tool server has just given go back to it", async () => {
  await using room = await toolRoom([[search], [read], [archive], "Done."], {
    label: "Mail",
    served: SERVED,
  });
  expect(await called(room, "@mail Find the last mail of Bob, read it and archive it.")).toEqual([
    "search",
    "read",
    "archive",
  ]);
});

test("no id goes to a tool server that has not given it, as in this run", async () => {
  const rounds = [[search], "Done.", [read, archive], "Done."];
  await using room = await toolRoom(rounds, { label: "Mail", served: SERVED });
  expect(await called(room, "@mail Find the last mail of Bob.")).toEqual(["search"]);
  expect(await called(room, "@mail Read it and archive it.")).toEqual(["search"]);
  const [{ result }] = await room.activity();
  expect(result).toContain(`Name the place`);
});

test("a note of the server's own is opened by its URI", async () => {
  const rounds = [[{ name: "mail__open", args: { uri: "note://groceries" } }], "Milk and bread."];
  await using room = await toolRoom(rounds, { label: "Mail", served: SERVED });
  expect(await called(room, "What is on my list of groceries?")).toEqual(["open"]);
});
