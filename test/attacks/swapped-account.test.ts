import { expect, test } from "bun:test";
import { answer, ask, type ApprovalRoom, approvalRoom, newest, pressYes } from "../approvals/room.ts";
import { canonicalJson } from "../../src/lib/canonical-json.ts";
import { sha256 } from "../../src/lib/sha256.ts";
import { openToolbox } from "../../src/pipeline/toolbox.ts";
import { grantedColumns, newlyGrantedColumns } from "../../src/resources/connections/sealed.ts";
import type { Answer } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { create } from "../support/tool-room.ts";

const KEY = { credential: "workspace-of-ada-0001" };

async function save(room: ApprovalRoom, change: object): Promise<Answer> {
  const cookie = await sessionOf(room, room.owner);
  return room.request(`/connections/${room.connection.id}`, {
    method: "PATCH",
    headers: { "content-type": "application/json", cookie },
    body: JSON.stringify(change),
  });
}

const byKey = (room: ApprovalRoom, change: object): Promise<Answer> =>
  room.owner.patch(`/connections/${room.connection.id}`, change);

const SWAPS: [string, object][] = [
  ["credential", { credential: "workspace-of-eve-0001" }],
  ["credential by another name", { token: "workspace-of-eve-0001" }],
  ["headers", { headers: { Authorization: "Bearer workspace-of-eve-0001" } }],
  ["client secret", { config: { client_id: "eve", client_secret: "eve's" } }],
];

test.each(SWAPS)(
  "a key cannot change the %s of a connection while a call of it waits",
  async (_name, swap) => {
    await using room = await approvalRoom();
    await save(room, KEY);
    const [letter] = await ask(room, [create()], { text: "@calendar --ask Plan lunch." });
    const refused = await byKey(room, swap);
    expect([refused.status, refused.body.code]).toEqual([403, "session_required"]);
    expect((await byKey(room, { label: "Calendar" })).status).toBe(200);
    await answer(room, letter as NonNullable<typeof letter>, "yes");
    expect(room.tools.calls.length).toBe(1);
    // Nothing waits any more, and nothing is marked.
    expect((await byKey(room, swap)).status).toBe(200);
  },
);

test.each(SWAPS)(
  "a key cannot change the %s of a connection with marks, nor beside one",
  async (_name, swap) => {
    await using room = await approvalRoom();
    await save(room, { ...KEY, ask_tools: ["create_event"] });
    expect((await byKey(room, swap)).status).toBe(403);
    const base_url = `${room.tools.url}?as=another`;
    const { body: other } = await room.owner.post("/connections", {
      kind: "mcp",
      label: "Other",
      base_url,
      ...KEY,
    });
    expect((await room.owner.patch(`/connections/${other.id}`, swap)).status).toBe(403);
    expect((await byKey(room, KEY)).status).toBe(200);
    expect((await save(room, swap)).status).toBe(200);
  },
);

test.each(SWAPS)("a yes is not carried out with another %s, whoever changed it", async (name, swap) => {
  await using room = await approvalRoom();
  await save(room, KEY);
  await ask(room, [create()], { text: "@calendar --ask Plan lunch." });
  const approval = await newest(room.owner);
  expect((await save(room, swap)).status).toBe(200);
  await pressYes(room, approval);
  await room.drain();
  expect([name, room.tools.calls.length]).toEqual([name, 0]);
  expect((await room.newest()).result).toContain("has changed since you were asked");
});

test("a yes is carried out with the same secrets, also when they are entered again", async () => {
  await using room = await approvalRoom();
  await save(room, KEY);
  await ask(room, [create()], { text: "@calendar --ask Plan lunch." });
  const approval = await newest(room.owner);
  expect((await save(room, KEY)).status).toBe(200);
  expect((await save(room, { label: "Calendar" })).status).toBe(200);
  await pressYes(room, approval);
  await room.drain();
  expect(room.tools.calls.length).toBe(1);
});

/** How a request was named before secrets had an id. */
async function formerHash(room: ApprovalRoom, args: object): Promise<string> {
  const row = await room.app.db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", room.connection.id)
    .executeTakeFirstOrThrow();
  const box = await openToolbox(
    room.app,
    [{ name: "mcp:calendar", connection: row }],
    new AbortController().signal,
  );
  const tool = box.tools.find((offered) => offered.tool.name === "create_event")?.tool;
  const { target, name, parameters, read_only, destructive } = tool as NonNullable<typeof tool>;
  return sha256(
    canonicalJson([row.id, row.base_url, target, name, parameters, read_only, destructive, args]),
    "hex",
  );
}

test.each([
  ["is carried out", null, 1],
  ["is not, once the secrets are changed", { credential: "workspace-of-eve-0001" }, 0],
] as const)("a yes to a request from before the upgrade %s", async (_name, swap, calls) => {
  await using room = await approvalRoom();
  await save(room, KEY);
  // As the upgrade leaves what was there.
  await room.app.db.updateTable("connections").set({ secrets_id: null }).execute();
  await ask(room, [create()], { text: "@calendar --ask Plan lunch." });
  const approval = await newest(room.owner);
  expect(approval.hash).toBe(await formerHash(room, create().args as object));
  if (swap !== null) expect((await save(room, swap)).status).toBe(200);
  await pressYes(room, approval);
  await room.drain();
  expect(room.tools.calls.length).toBe(calls);
});

test("a refresh of tokens leaves the account the same, and another grant does not", async () => {
  await using room = await approvalRoom();
  const { app } = room;
  const rows = app.db.selectFrom("connections").selectAll().where("id", "=", room.connection.id);
  const row = await rows.executeTakeFirstOrThrow();
  const oauth = { refresh_token: "r", account: "", server: null, ended: false };
  const granted = { credential: "a", expires_at: null, oauth };
  const first = { ...row, ...newlyGrantedColumns(app, row, granted) };
  const refreshed = { ...first, ...grantedColumns(app, first, { ...granted, credential: "b" }) };
  expect(refreshed.secrets_id).toBe(first.secrets_id);
  expect(newlyGrantedColumns(app, refreshed, granted).secrets_id).not.toBe(first.secrets_id);
});
