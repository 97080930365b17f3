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
      {
        id: room.inbox.id,
        allowlist_senders: [],
        problem: expect.stringContaining("Write the list under “Who may write” anew"),
      },
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

test.each([
  ["scope", '{"targets"', "uses no tool"],
  ["mcp_connection_ids", "[1", "uses none"],
])("an inbox whose %s is damaged (%s) says so", async (column, stored, words) => {
  await using room = await mailroom();
  await room.app.db
    .updateTable("inboxes")
    .set({ [column]: stored })
    .execute();
  const { body } = await room.owner.get(`/inboxes/${room.inbox.id}`);
  expect(body.problem).toContain(words);
});

const RULES = [{ name: "Invoices", when: [{ field: "subject", contains: ["invoice"] }], do: { skip: true } }];

test.each(['[{"name":"Inv', "{}", "[7]", "null"])(
  "mail for an inbox whose rules are damaged (%s) waits until they are set anew, and then they count",
  async (stored) => {
    await using room = await mailroom({ inbox: { rules: RULES } });
    await room.app.db.updateTable("inboxes").set({ rules: stored }).execute();
    const path = `/inboxes/${room.inbox.id}`;
    expect((await room.owner.get(path)).body).toMatchObject({
      rules: [],
      problem: expect.stringContaining("Write them anew"),
    });
    expect(await room.send({ subject: "Your invoice", text: "Pay" })).toStartWith("250");
    expect(
      await room.send({ subject: "Lunch", text: "When?", headers: { "Message-ID": "<2@x.test>" } }),
    ).toStartWith("250");
    for (let count = 0; count < 3; count += 1) {
      await room.drain();
      room.clock.advance("11m");
    }
    expect((await room.activity()).map(({ status }) => status)).toEqual(["received", "received"]);
    expect(room.model.requests).toEqual([]);
    expect(await room.owner.patch(path, { rules: RULES })).toMatchObject({
      status: 200,
      body: { problem: null },
    });
    await room.drain();
    expect((await room.activity()).map(({ subject, status, reason }) => [subject, status, reason])).toEqual([
      ["Lunch", "done", null],
      ["Your invoice", "rejected", "rule"],
    ]);
    expect(room.model.requests).toHaveLength(1);
  },
);
