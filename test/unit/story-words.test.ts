import { describe, expect, test } from "bun:test";
import { errorWords, senderWords } from "../../src/dashboard/pages/activity/story-words.ts";
import { mailroom, type RoomMail } from "../support/mailroom.ts";

/** The words about the newest message of a room after this mail, as the dashboard shows them. */
async function wordsAfter(mail: RoomMail, options: Parameters<typeof mailroom>[0] = {}) {
  await using room = await mailroom(options);
  await room.send(mail);
  await room.drain();
  const [{ message_id }] = await room.activity();
  const { body } = await room.owner.get(`/messages/${message_id}`);
  return { sender: senderWords(body), error: errorWords(body), reason: body.reason };
}

describe("what the page of a message says of its sender", () => {
  test("of the owner's own automatic reply neither that the owner is on no list, nor a bare code", async () => {
    const { sender, error, reason } = await wordsAfter({
      text: "I am away",
      headers: { "Auto-Submitted": "auto-replied" },
    });
    expect(reason).toBe("auto_reply");
    expect(sender).toBe("The address is proven, but the mail was not worked on.");
    expect(error).toStartWith("It was left out, because a program answered by itself");
  });

  test("of a mail that was refused before it was judged, that nobody looked", async () => {
    const full = { config: { plans: { team: { storage_mb: 1 } } } };
    await using room = await mailroom(full);
    await room.owner.post("/v1/messages", { instruction: "Keep it", content: "x".repeat(499_000) });
    await room.app.db.updateTable("account_storage").set({ bytes: 2_000_000 }).execute();
    expect(await room.send({ text: "No room" })).toStartWith("452");
    const [{ message_id }] = await room.activity();
    const { body } = await room.owner.get(`/messages/${message_id}`);
    expect(senderWords(body)).toContain("before anybody looked who wrote it");
    expect(errorWords(body)).toContain("no room");
  });

  test("of mail that was judged, what came of that", async () => {
    expect(await wordsAfter({ text: "Hi" })).toMatchObject({
      sender: "That is you: your words are instructions.",
      error: null,
    });
    expect((await wordsAfter({ text: "Hi", from: "eve@example.net" })).sender).toContain("only content");
    const picky = { inbox: { allowlist_senders: ["bob@example.com"] } };
    expect(await wordsAfter({ text: "Hi", from: "eve@example.net" }, picky)).toMatchObject({
      sender: "The address is proven, but the mail was not worked on.",
      error: expect.stringContaining("listed senders only"),
    });
  });
});
