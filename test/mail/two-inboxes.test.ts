import { expect, test } from "bun:test";
import { sql } from "kysely";
import { mailroom, type Mailroom } from "../support/mailroom.ts";

const HEADERS = { "Message-ID": "<both@example.com>" };

async function states(room: Mailroom): Promise<unknown[]> {
  return room.app.db.selectFrom("messages").select(["inbox_id", "state"]).orderBy("id").execute();
}

test("a mail for two inboxes that cannot be kept for one of them is taken for neither, and once for both when it comes again", async () => {
  await using room = await mailroom();
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  const mail = { rcpt: [room.inbox.address, other.address], headers: HEADERS };
  await sql`create trigger no_room before insert on messages when new.inbox_id = ${sql.lit(other.id)}
    begin select raise(abort, 'no room'); end`.execute(room.app.db);
  expect(await room.send(mail)).toStartWith("451");
  expect(await states(room)).toEqual([]);
  for (const table of ["jobs", "raw_mails"] as const)
    expect([table, ...(await room.app.db.selectFrom(table).select("id").execute())]).toEqual([table]);
  await sql`drop trigger no_room`.execute(room.app.db);
  // The sender's server comes twice, as where the answer gets lost.
  for (let count = 0; count < 2; count += 1) expect(await room.send(mail)).toStartWith("250");
  await room.drain();
  expect(await states(room)).toEqual([
    { inbox_id: room.inbox.id, state: "done" },
    { inbox_id: other.id, state: "done" },
  ]);
  expect(room.model.requests).toHaveLength(2);
  expect(await room.app.db.selectFrom("raw_mails").selectAll().execute()).toHaveLength(1);
});
