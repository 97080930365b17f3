import { expect, test } from "bun:test";
import { mailroom } from "../support/mailroom.ts";

const LISTED = "bob@example.com";

test.each(['["bob@exam', "{}", "null"])(
  "an inbox whose list of senders is damaged (%s) says so, takes its owner's mail, and is mended by a new list",
  async (stored) => {
    await using room = await mailroom({ inbox: { allowlist_senders: [LISTED] } });
    const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
    await room.app.db
      .updateTable("inboxes")
      .set({ allowlist_senders: stored })
      .where("id", "=", room.inbox.id)
      .execute();
    const { status, body } = await room.owner.get("/inboxes");
    expect(status).toBe(200);
    expect(body).toMatchObject([
      { id: room.inbox.id, allowlist_senders: [], problem: expect.stringContaining("Set allowlist_senders") },
      { id: other.id, problem: null },
    ]);
    expect(await room.send({ text: "Mail of the owner" })).toStartWith("250");
    // Neither let in by an empty list, nor sent away for good.
    for (const from of [LISTED, "eve@example.org"])
      expect(await room.send({ from, text: `Mail of ${from}` })).toStartWith("451");
    const mended = await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: [LISTED] });
    expect(mended).toMatchObject({ status: 200, body: { allowlist_senders: [LISTED], problem: null } });
    expect(await room.send({ from: LISTED, text: "Mail of Bob" })).toStartWith("250");
    expect(await room.send({ from: "eve@example.org", text: "Mail of Eve" })).toStartWith("550");
  },
);
