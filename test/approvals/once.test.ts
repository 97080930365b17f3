import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sessionOf } from "../support/consent.ts";
import { answer, askOnce, type ApprovalRoom, approvalRoom, killedAt, lastMail, read } from "./room.ts";

let room: ApprovalRoom;
beforeAll(async () => {
  room = await approvalRoom();
});
afterAll(() => room[Symbol.asyncDispose]());

describe("a yes whose run is done again after a kill", () => {
  test.each<[string, string | null, string, string]>([
    [
      "in the middle of the call does not make it again, and says so",
      null,
      "unknown",
      "may or may not have been done",
    ],
    ["behind the call tells what came of it, and does not make it again", "created 9", "done", "created 9"],
  ])("%s", async (_what, heard, status, words) => {
    const { letter, approval } = await askOnce(room);
    const { reply_to, id, subject } = letter;
    const headers = { "In-Reply-To": id, "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
    await room.send({ to: reply_to, rcpt: reply_to, subject: `Re: ${subject}`, text: "yes", headers });
    await killedAt(room, approval, (await room.newest()).id, heard);
    await room.drain();
    expect(room.tools.calls).toEqual([]);
    expect((await lastMail(room)).text).toContain(words);
    expect(await read(room.owner, approval.id)).toMatchObject({ status });
    await answer(room, letter, "yes");
    expect(room.tools.calls).toEqual([]);
    expect(await room.app.db.selectFrom("tool_calls").selectAll().execute()).toEqual([]);
  });
});

test("of a yes by mail and one by the button at once, one counts", async () => {
  for (let turn = 0; turn < 3; turn += 1) {
    const { letter, approval } = await askOnce(room, { title: `Lunch ${turn}` });
    const { reply_to, id, subject } = letter;
    const mail = (nth: number) =>
      room.send({
        to: reply_to,
        rcpt: reply_to,
        subject: `Re: ${subject}`,
        text: "yes",
        headers: { "In-Reply-To": id, "Message-ID": `<${turn}.${nth}.at-once@example.com>` },
      });
    const cookie = await sessionOf(room, room.owner);
    const button = () =>
      room.request(`/v1/approvals/${approval.id}/approve`, {
        method: "POST",
        headers: { cookie, "content-type": "application/json" },
        body: JSON.stringify({ hash: approval.hash }),
      });
    await Promise.all([mail(1), button(), mail(2), button()]);
    await room.drain();
    expect(room.tools.calls).toHaveLength(1);
    expect(await read(room.owner, approval.id)).toMatchObject({ status: "done" });
  }
});

test("a no and a yes at once do one of both, and say which", async () => {
  const { letter, approval } = await askOnce(room);
  const cookie = await sessionOf(room, room.owner);
  const pressed = room.request(`/v1/approvals/${approval.id}/refuse`, {
    method: "POST",
    headers: { cookie, "content-type": "application/json" },
    body: "{}",
  });
  await Promise.all([answer(room, letter, "yes"), pressed]);
  const { status } = await read(room.owner, approval.id);
  expect(room.tools.calls).toHaveLength(status === "done" ? 1 : 0);
  expect(["done", "refused"]).toContain(status);
});

test("a tool server that cannot be reached costs no consent: the same yes counts once it is back", async () => {
  const { letter, approval } = await askOnce(room);
  const { url } = room.tools;
  const { db } = room.app;
  const to = (base_url: string) =>
    db.updateTable("connections").set({ base_url }).where("kind", "=", "mcp").execute();
  await to("http://127.0.0.1:9/mcp");
  room.clock.advance("20m");
  await answer(room, letter, "yes");
  expect((await lastMail(room)).text).toContain("Nothing was called, so that you can still allow it");
  expect(await read(room.owner, approval.id)).toMatchObject({ status: "pending", run_id: null });
  await to(url);
  room.clock.advance("20m");
  await answer(room, letter, "yes");
  expect(room.tools.calls).toHaveLength(1);
});

test("the answer of a call that came while the disk could not be written is stored once it can", async () => {
  const { letter, approval } = await askOnce(room);
  const { app, tools } = room;
  const { write } = app;
  const run = tools.tools.find(({ name }) => name === "create_event")?.run;
  const served = tools.tools;
  let refused = 0;
  tools.tools = served.map((tool) =>
    tool.name === "create_event"
      ? {
          ...tool,
          async run(args) {
            // What is written next is the answer.
            app.write = () => {
              app.write = write;
              refused += 1;
              return Promise.reject(
                Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" }),
              );
            };
            return run?.(args) ?? "";
          },
        }
      : tool,
  );
  try {
    await answer(room, letter, "yes");
  } finally {
    app.write = write;
    tools.tools = served;
  }
  expect(refused).toBe(1);
  expect(room.tools.calls).toHaveLength(1);
  expect(await read(room.owner, approval.id)).toMatchObject({ status: "done" });
});

test.each<[string, (inbox: string, letter: string) => string[]]>([
  ["of the letter first", (inbox, letter) => [letter, inbox]],
  ["of the inbox first", (inbox, letter) => [inbox, letter]],
])("a yes to both addresses, that %s, counts", async (_which, order) => {
  const { letter, approval } = await askOnce(room);
  const both = order(room.inbox.address, letter.reply_to);
  await answer(room, letter, "yes", { to: both.join(", "), rcpt: both });
  expect(await read(room.owner, approval.id)).toMatchObject({ status: "done" });
  expect(room.tools.calls).toHaveLength(1);
});
