import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { recountStorage, storedBytes } from "../../src/db/account-storage.ts";
import { approvalsAfter } from "../../src/resources/approvals/view.ts";
import type { Answer } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { create, list } from "../support/tool-room.ts";
import {
  answer,
  ask,
  askOnce,
  type ApprovalRoom,
  approvalRoom,
  lastMail,
  letters,
  newest,
  read,
} from "./room.ts";

let room: ApprovalRoom;
let cookie: string;
beforeAll(async () => {
  room = await approvalRoom();
  cookie = await sessionOf(room, room.owner);
});
afterAll(() => room[Symbol.asyncDispose]());

function press(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Answer> {
  return room.request(path, {
    method: "POST",
    headers: { cookie, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

const approve = ({ id, hash }: { id: string; hash: string }): Promise<Answer> =>
  press(`/v1/approvals/${id}/approve`, { hash });

describe("the button of the page", () => {
  test("has exactly this call made once, and its outcome mailed in the thread of the letter", async () => {
    const { letter, approval } = await askOnce(room, { title: "Lunch" });
    const allowed = await approve(approval);
    expect([allowed.status, allowed.body.status]).toEqual([202, "approved"]);
    expect(allowed.headers.get("location")).toBe(`/v1/messages/${allowed.body.run_id}`);
    expect(await approve(approval)).toMatchObject({ status: 409, body: { code: "conflict" } });
    await room.drain();
    expect(room.tools.calls).toEqual([{ name: "create_event", args: { title: "Lunch" } }]);
    expect(await read(room.owner, approval.id)).toMatchObject({
      status: "done",
      run_id: allowed.body.run_id,
    });
    const outcome = await lastMail(room);
    expect(outcome.to).toBe("ada@example.com");
    expect(outcome.text).toContain("created 7");
    const raw = Buffer.from((await room.outgoing()).at(-1)?.raw ?? "").toString();
    expect(raw).toContain(`In-Reply-To: ${letter.id}`);
    expect(await room.newest()).toMatchObject({
      source: "api",
      credits_charged: 1,
      approval_id: approval.id,
    });
    expect((await approve(approval)).body.detail).toContain("A consent is good for one call");
  });

  test("refuses for good", async () => {
    const { letter, approval } = await askOnce(room);
    expect((await press(`/v1/approvals/${approval.id}/refuse`)).body.status).toBe("refused");
    expect((await approve(approval)).status).toBe(409);
    await answer(room, letter, "yes");
    expect(room.tools.calls).toEqual([]);
  });

  test("is for a person: a key that can run cannot approve, nor can a page of another site", async () => {
    const { approval } = await askOnce(room);
    for (const what of ["approve", "refuse"]) {
      const path = `/v1/approvals/${approval.id}/${what}`;
      const byKey = await room.owner.post(path, { hash: approval.hash });
      expect([byKey.status, byKey.body.code]).toEqual([403, "session_required"]);
      const foreign = await press(path, { hash: approval.hash }, { "sec-fetch-site": "cross-site" });
      expect([foreign.status, foreign.body.code]).toEqual([403, "cross_origin"]);
      expect((await room.request(path, { headers: { cookie } })).status).toBe(405);
    }
    expect(room.tools.calls).toEqual([]);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
  });

  test("allows what its page has shown, and nothing else", async () => {
    const { approval } = await askOnce(room, { title: "Lunch" });
    const other = await askOnce(room, { title: "Dinner" });
    const crossed = await approve({ id: approval.id, hash: other.approval.hash });
    expect([crossed.status, crossed.body.errors[0].path]).toEqual([422, "body.hash"]);
  });

  test("of somebody else finds nothing", async () => {
    const { approval } = await askOnce(room);
    const bob = await room.as(`bob-${Date.now()}@example.com`);
    expect((await bob.get(`/v1/approvals/${approval.id}`)).status).toBe(404);
    expect((await bob.get("/v1/approvals")).body.items).toEqual([]);
    const headers = { cookie: await sessionOf(room, bob) };
    const stolen = await press(`/v1/approvals/${approval.id}/approve`, { hash: approval.hash }, headers);
    expect(stolen.status).toBe(404);
  });
});

describe("what is looked at again after a yes", () => {
  test.each<[string, () => unknown, string]>([
    [
      "another schema of the tool",
      () => {
        room.tools.tools = room.tools.tools.map((tool) =>
          tool.name === "create_event"
            ? { ...tool, inputSchema: { type: "object", properties: { title: { type: "string" } } } }
            : tool,
        );
      },
      "has changed since you were asked",
    ],
    [
      "a tool that is gone",
      () => {
        room.tools.tools = room.tools.tools.filter(({ name }) => name !== "create_event");
      },
      "There is no tool of this name at @calendar any more",
    ],
    [
      "a server taken from the inbox",
      () => room.owner.patch(`/inboxes/${room.inbox.id}`, { mcp_connection_ids: [] }),
      "is not that of @calendar any more",
    ],
    [
      "a target taken from its scope",
      () => room.owner.patch(`/inboxes/${room.inbox.id}`, { scope: { targets: [], autonomous: [] } }),
      "may not be used in this inbox any more",
    ],
    [
      "another address of the connection",
      () =>
        room.app.db
          .updateTable("connections")
          .set({ base_url: `${room.tools.url}?other` })
          .where("id", "=", room.connection.id)
          .execute(),
      "has changed since you were asked",
    ],
    [
      "other arguments on the disk",
      () => room.app.db.updateTable("approvals").set({ arguments: '{"title":"Eve"}' }).execute(),
      "has changed since you were asked",
    ],
  ])("%s: nothing is called, and it says why", async (_what, change, words) => {
    const { letter, approval } = await askOnce(room);
    const served = room.tools.tools;
    await change();
    room.clock.advance("20m");
    await answer(room, letter, "yes");
    expect(room.tools.calls).toEqual([]);
    expect((await lastMail(room)).text).toContain(words);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
    room.tools.tools = served;
    const restored = { mcp_connection_ids: [room.connection.id], scope: null };
    await room.owner.patch(`/inboxes/${room.inbox.id}`, restored);
    const { base_url } = { base_url: room.tools.url };
    await room.app.db.updateTable("connections").set({ base_url }).where("kind", "=", "mcp").execute();
    room.clock.advance("20m");
  });

  test("what a tool has said of itself since, within the minutes for which its list is kept", async () => {
    const { letter, approval } = await askOnce(room);
    const served = room.tools.tools;
    room.tools.tools = served.map((tool) => ({ ...tool, annotations: { destructiveHint: true } }));
    await answer(room, letter, "yes");
    room.tools.tools = served;
    expect(room.tools.calls).toEqual([]);
    expect((await lastMail(room)).text).toContain("has changed since you were asked");
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending" });
    room.clock.advance("20m");
  });

  test("an account without credits: the request waits as it did", async () => {
    const { approval } = await askOnce(room);
    const { app, owner } = room;
    const plan = app.config.plans.team;
    const kept = plan.credits;
    Object.assign(plan, { credits: 1 });
    const plain = await approve(approval);
    Object.assign(plan, { credits: kept });
    expect([plain.status, plain.body.code]).toEqual([429, "rate_limited"]);
    expect(await read(owner, approval.id)).toMatchObject({ status: "pending", run_id: null });
    expect((await approve(approval)).status).toBe(202);
    await room.drain();
    expect(room.tools.calls).toHaveLength(1);
  });
});

describe("a tool that is marked", () => {
  const mark = (ask_tools: string[], headers: Record<string, string>): Promise<Answer> =>
    room.request(`/connections/${room.connection.id}`, {
      method: "PATCH",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ ask_tools }),
    });

  test.each([["*"], ["create_event"]])("as %p is asked about though its target is named", async (name) => {
    expect((await mark([name], { cookie })).body.ask_tools).toEqual([name]);
    const [letter] = await ask(room, [list(), create()], { text: "@calendar Plan lunch." });
    expect(room.tools.calls.map((call) => call.name)).toEqual(["list_events"]);
    expect(letter?.text).toContain("You are asked because you have marked this tool");
    expect(await newest(room.owner)).toMatchObject({ cause: "marked" });
    await mark([], { cookie });
  });

  test("is marked by a key as well, which cannot take the mark away", async () => {
    const key = { "x-api-key": room.owner.key };
    expect((await mark(["create_event"], key)).status).toBe(200);
    expect((await mark(["create_event", "*"], key)).status).toBe(200);
    const taken = await mark(["*"], key);
    expect([taken.status, taken.body.code]).toEqual([403, "session_required"]);
    expect((await mark([], { cookie })).body.ask_tools).toEqual([]);
  });

  test("is asked about by another connection to the same server too, which a key has made", async () => {
    const path = `/connections/${room.connection.id}`;
    const { owner, tools } = room;
    await mark(["create_event"], { cookie });
    const base_url = `${tools.url}?as=another`;
    const made = await owner.post("/connections", { kind: "mcp", label: "Other", base_url });
    expect(made.status).toBe(201);
    const attach = async (mcp_connection_ids: string[]): Promise<void> =>
      expect((await owner.patch(`/inboxes/${room.inbox.id}`, { mcp_connection_ids })).status).toBe(200);
    await attach([room.connection.id, made.body.id]);
    const wanted = [{ ...create(), name: "other__create_event" }];
    const [letter] = await ask(room, wanted, { text: "@other Plan lunch." });
    expect(letter?.text).toContain("You are asked because you have marked this tool");
    expect(room.tools.calls).toEqual([]);
    // Without its connection the mark would be gone.
    for (const { status, body } of [
      await owner.delete(path),
      await owner.patch(path, { base_url: "http://127.0.0.1:9/mcp" }),
    ])
      expect([status, body.code]).toEqual([403, "session_required"]);
    await mark([], { cookie });
    expect(await ask(room, wanted, { text: "@other Plan lunch." })).toEqual([]);
    expect(room.tools.calls.map((call) => call.name)).toEqual(["create_event"]);
    await attach([room.connection.id]);
    expect((await owner.delete(`/connections/${made.body.id}`)).status).toBe(204);
  });

  test("may be one that only reads; what it answers is mailed", async () => {
    await mark(["list_events"], { cookie });
    const [letter] = await ask(room, [list("Friday")], { text: "What is on Friday?" });
    await mark([], { cookie });
    if (letter === undefined) throw new Error("no letter");
    expect(room.tools.calls).toEqual([]);
    await answer(room, letter, "yes");
    expect((await lastMail(room)).text).toContain("Lunch on Friday");
  });
});

test("--ask has every change asked about, also where the plain word would do", async () => {
  const [letter] = await ask(room, [create()], { text: "@calendar --ask Plan lunch." });
  expect(room.tools.calls).toEqual([]);
  expect(letter?.text).toContain("You are asked because the instruction says --ask.");
  expect(await newest(room.owner)).toMatchObject({ cause: "flag" });
});

test("a call over HTTP hears that it waits, and the owner is mailed", async () => {
  room.clock.advance("1h");
  const before = (await letters(room)).length;
  room.rounds.push([create()], "It waits.");
  const called = await room.owner.post("/v1/messages", { instruction: "Do it", content: "Make an event." });
  expect(called.body.result).toContain("Not done yet, as it waits for your yes");
  expect(await letters(room, before)).toHaveLength(1);
});

test.each([["--private"], ["--dry-run"]])("a run with %s asks nobody", async (flag) => {
  expect(await ask(room, [create()], { text: `@calendar --ask ${flag} Plan lunch.` })).toEqual([]);
  expect(room.tools.calls).toEqual([]);
  room.rounds.length = 0;
});

test("what its owner was shown is kept, and counts for the account; of one from before it is worked out", async () => {
  const { app, owner } = room;
  const { approval } = await askOnce(room, { title: "Lunch", day: "Monday" });
  const of = (id: string) => app.db.selectFrom("approvals").selectAll().where("id", "=", id);
  const stored = await of(approval.id).executeTakeFirstOrThrow();
  expect([approval.shown, stored.shown]).toEqual(["title: Lunch\nday: Monday", "title: Lunch\nday: Monday"]);
  const before = await storedBytes(app.db, { user_id: owner.user.id });
  await recountStorage(app, owner.user.id);
  expect(await storedBytes(app.db, { user_id: owner.user.id })).toEqual(before);
  await app.db.updateTable("approvals").set({ shown: null }).where("id", "=", approval.id).execute();
  expect((await read(owner, approval.id)).shown).toBe("title: Lunch\nday: Monday");
});

test("the list is paged, and told by status", async () => {
  for (let nth = 0; nth < 4; nth += 1) await askOnce(room);
  const first = (await room.owner.get("/v1/approvals?limit=2")).body;
  expect(first.items).toHaveLength(2);
  const second = (await room.owner.get(`/v1/approvals?limit=2&cursor=${first.next_cursor}`)).body;
  expect(second.items[0].id < first.items[1].id).toBe(true);
  for (const status of ["pending", "done", "refused", "expired"]) {
    const { items } = (await room.owner.get(`/v1/approvals?status=${status}`)).body;
    expect(items.every((item: { status: string }) => item.status === status)).toBe(true);
  }
});

test("goes with its message, and its bytes count for the account", async () => {
  const { app, owner } = room;
  const stored = async () =>
    (await app.db.selectFrom("account_storage").select("bytes").executeTakeFirstOrThrow()).bytes;
  const { approval } = await askOnce(room, { title: "x".repeat(5_000) });
  const before = await stored();
  await app.db.deleteFrom("approvals").where("id", "=", approval.id).execute();
  expect(before - (await stored())).toBeGreaterThan(5_000);
  const other = (await askOnce(room)).approval;
  expect((await owner.delete(`/messages/${other.message_id}`)).status).toBe(204);
  expect((await owner.get(`/v1/approvals/${other.id}`)).status).toBe(404);
  room.clock.advance("1h");
  await room.drain();
  expect(await app.db.selectFrom("approvals").select("id").where("id", "=", other.id).execute()).toEqual([]);
});

test("is part of the export", async () => {
  const { approval } = await askOnce(room, { title: "Exported" });
  const { body } = await room.owner.get("/v1/approvals?limit=1");
  expect(body.items[0].id).toBe(approval.id);
  const views = await approvalsAfter(room.app, room.owner.user, { after: "", limit: 100 });
  expect(views.at(-1)).toMatchObject({ id: approval.id, arguments: { title: "Exported" } });
});
