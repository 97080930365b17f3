import { expect, test } from "bun:test";
import { type ApprovalRoom, approvalRoom } from "../approvals/room.ts";
import type { Answer } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { CREATE, EVENTS } from "../support/tool-room.ts";

const ALLOW = ["127.0.0.1", "localhost", "::1"];
const DELETE = { name: "delete_event", run: () => "deleted" };
const READ = { name: "read_salaries", annotations: { readOnlyHint: true }, run: () => "9" };

interface Room extends ApprovalRoom {
  /** What somebody who is signed in changes of a connection. */
  save(id: string, change: object): Promise<Answer>;
}

async function markedRoom(ask_tools: string[]): Promise<Room> {
  const config = { egress: { allow: ALLOW } };
  const room = await approvalRoom({ served: [EVENTS, CREATE, DELETE, READ], config });
  const cookie = await sessionOf(room, room.owner);
  const save = (id: string, change: object): Promise<Answer> =>
    room.request(`/connections/${id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json", cookie },
      body: JSON.stringify(change),
    });
  expect((await save(room.connection.id, { ask_tools })).status).toBe(200);
  return { ...room, save };
}

/** What a key does to reach the server of the marked connection by another one. */
async function otherConnection(room: ApprovalRoom, base_url: string): Promise<string> {
  const made = await room.owner.post("/connections", { kind: "mcp", label: "Other", base_url });
  expect(made.status).toBe(201);
  const mcp_connection_ids = [room.connection.id, made.body.id];
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { mcp_connection_ids })).status).toBe(200);
  return made.body.id;
}

async function callsOf(room: ApprovalRoom, name: string): Promise<string[]> {
  room.tools.calls.length = 0;
  room.rounds.push([{ name: `other__${name}`, args: {} }], "Done.");
  const sent = room.owner.post("/v1/messages", { instruction: "@other --allow-destructive Do it." });
  await room.drain();
  await sent;
  return room.tools.calls.map((call) => call.name);
}

const SPELLINGS: [string, (url: string) => string][] = [
  ["another path", (url) => `${url}?as=another`],
  ["an IPv4 address in an IPv6 one", (url) => url.replace("127.0.0.1", "[::ffff:127.0.0.1]")],
  ["the same in hexadecimal", (url) => url.replace("127.0.0.1", "[::ffff:7f00:1]")],
  ["the name of this machine", (url) => url.replace("127.0.0.1", "localhost")],
  ["that name in capitals, with a dot", (url) => url.replace("127.0.0.1", "LOCALHOST.")],
  ["one number", (url) => url.replace("127.0.0.1", "2130706433")],
];

test.each(SPELLINGS)("a marked server is asked about by %s too", async (_name, spelt) => {
  await using room = await markedRoom(["delete_event", "read_salaries"]);
  const id = await otherConnection(room, spelt(room.tools.url));
  expect(await callsOf(room, "delete_event")).toEqual([]);
  expect(await callsOf(room, "read_salaries")).toEqual([]);
  // The spelling alone is enough: somebody who is signed in has confirmed the connection.
  expect((await room.save(id, {})).body.unconfirmed).toBe(false);
  expect(await callsOf(room, "delete_event")).toEqual([]);
  expect(await callsOf(room, "create_event")).toEqual(["create_event"]);
});

test("whatever a key connects is asked about once something is marked, until somebody who is signed in saves it", async () => {
  await using room = await markedRoom(["delete_event"]);
  // As by a second name of the machine, or a proxy: nothing that is compared tells that it leads there.
  using proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) =>
      fetch(room.tools.url, { method: request.method, headers: forwarded(request), body: request.body }),
  });
  const id = await otherConnection(room, `http://127.0.0.1:${proxy.port}/mcp`);
  expect(await callsOf(room, "delete_event")).toEqual([]);
  expect(await callsOf(room, "create_event")).toEqual([]);
  expect(await callsOf(room, "read_salaries")).toEqual(["read_salaries"]);
  expect((await room.owner.patch(`/connections/${id}`, { label: "Other" })).body.unconfirmed).toBe(true);
  expect(await callsOf(room, "create_event")).toEqual([]);
  expect((await room.save(id, {})).body.unconfirmed).toBe(false);
  expect(await callsOf(room, "create_event")).toEqual(["create_event"]);
});

test("a connection of a person's that a key has had lead elsewhere is not called unasked", async () => {
  await using room = await markedRoom(["delete_event"]);
  const id = await otherConnection(room, "http://127.0.0.1:1/mcp");
  await room.save(id, {});
  const spelt = room.tools.url.replace("127.0.0.1", "[::ffff:7f00:1]");
  const moved = await room.owner.patch(`/connections/${id}`, { base_url: spelt });
  expect([moved.status, moved.body.unconfirmed]).toEqual([200, true]);
  expect(await callsOf(room, "create_event")).toEqual([]);
});

test("without any mark, what a key connects is called unasked", async () => {
  await using room = await markedRoom([]);
  await otherConnection(room, `${room.tools.url}?as=another`);
  expect(await callsOf(room, "create_event")).toEqual(["create_event"]);
});

function forwarded({ headers }: Request): Headers {
  const sent = new Headers(headers);
  sent.delete("host");
  return sent;
}
