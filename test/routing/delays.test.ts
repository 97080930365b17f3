import { expect, test } from "bun:test";
import { endDelays } from "../../src/mail/sending/delays.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { pass, purge } from "../support/purge.ts";
import { plansOf } from "../support/query-plans.ts";
import { deliver } from "../support/smtp-client.ts";

/** The day on which the answer is handed over is 2026-01-15. */
const LAST_DAY = "2026-01-21";

test("a delay that is never heard of again ends after six days: the answer counts as sent, and says why", async () => {
  await using room = await mailroom();
  const to = await answered(room);
  room.clock.advance("4h");
  await report(room, to, "delayed", "4.4.1");
  const [waiting] = await room.activity();
  expect(waiting.reply_status).toBe("deferred");
  for (const words of ["has the mail", "goes on trying", "4.4.1", LAST_DAY, "another way"])
    expect(waiting.reply_error).toContain(words);
  await pass(room, 5);
  expect(await room.activity()).toMatchObject([{ reply_status: "deferred" }]);
  const changed: (string | null)[] = [];
  room.app.changes.listen(room.owner.user.id, (id) => changed.push(id));
  await pass(room, 1);
  expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
  const { body } = await room.owner.get(`/messages/${waiting.message_id}`);
  expect(body.reply).toMatchObject({
    status: "sent",
    response: expect.stringContaining("nothing more was heard"),
  });
  expect(changed).toEqual([waiting.message_id]);
});

test("what is heard after the end of a delay counts, but for another delay", async () => {
  await using room = await mailroom();
  const to = await answered(room);
  await report(room, to, "delayed", "4.4.1");
  await pass(room, 6);
  await report(room, to, "delayed", "4.4.1");
  expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
  await report(room, to, "failed", "4.4.7");
  expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
  await pass(room, 7);
  expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
});

test("the end of a delay leaves alone what waits here for its next attempt, and all else", async () => {
  await using room = await mailroom();
  const to = await answered(room);
  await report(room, to, "delayed", "4.4.1");
  await room.app.db.updateTable("outgoing_mails").set({ completed: null }).execute();
  await pass(room, 7);
  expect(await room.outgoing()).toMatchObject([{ status: "deferred", completed: null }]);
  expect(await room.activity()).toMatchObject([{ reply_status: "deferred" }]);
});

test("many delays end at once, and are found without a look at all mails", async () => {
  await using room = await mailroom();
  const to = await answered(room);
  await report(room, to, "delayed", "4.4.1");
  const [mail] = await room.outgoing();
  if (mail === undefined) throw new Error("nothing was sent");
  const more = Array.from({ length: 130 }, () => ({ ...mail, id: Bun.randomUUIDv7(), message_id: null }));
  for (const row of more) await room.app.db.insertInto("outgoing_mails").values(row).execute();
  room.clock.advance("6d");
  const { app } = room;
  const [look] = await plansOf(room, () => endDelays(app, app.db));
  expect(look?.lines.join()).toMatch(/SEARCH outgoing_mails USING .*INDEX outgoing_mails_delayed/);
  await purge(room);
  expect(new Set((await room.outgoing()).map(({ status }) => status))).toEqual(new Set(["sent"]));
});

async function answered(room: Mailroom): Promise<string> {
  await room.send({});
  await room.drain();
  return (await room.outgoing())[0]?.envelope_from ?? "";
}

async function report(room: Mailroom, to: string, action: string, status: string): Promise<void> {
  const said = await deliver(room.door, { from: "", to, raw: notification({ action, status }) });
  expect(said).toStartWith("250 ");
}
