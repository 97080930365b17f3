import { describe, expect, test } from "bun:test";
import { RECIPES } from "../../src/resources/recipes/catalogue.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { create, toolRoom } from "../support/tool-room.ts";

const FORWARDED =
  "\n\n---------- Forwarded message ---------\nFrom: Bob <bob@example.net>\nSubject: Rent\n\nThe rent is due on Friday.\n";

function lastPrompt(room: Mailroom): string {
  return room.model.requests.at(-1)?.body?.messages.findLast(({ role }) => role === "user")?.content ?? "";
}

describe("the instruction of an inbox", () => {
  test("is followed where a mail's own words ask for nothing, and is none of them", async () => {
    await using room = await mailroom({ inbox: { default_instruction: "  Say it in Latin  " } });
    await room.send({ subject: "Fwd: Rent", text: FORWARDED });
    await room.drain();
    expect(lastPrompt(room)).toStartWith("Say it in Latin");
    const row = await room.newest();
    expect([row.state, row.instruction]).toEqual(["done", ""]);
    const { body } = await room.owner.get(`/messages/${row.id}`);
    expect(body.steps).toMatchObject([{ type: "context", name: "default_instruction" }]);
    const reply = Buffer.from((await room.outgoing())[0]?.raw ?? []).toString();
    expect(reply).not.toContain("instruction of the inbox");
  });

  test("is what its recipe is for, where a mail is only forwarded", async () => {
    await using room = await mailroom();
    const asked: Record<string, string> = {};
    for (const { id, inbox } of RECIPES.filter(({ id }) => id !== "research-brief")) {
      const { body } = await room.owner.post(`/recipes/${id}/apply`);
      const [made] = body.created.inboxes;
      await room.send({
        to: made.address,
        rcpt: made.address,
        subject: "Fwd: Rent",
        text: FORWARDED,
        headers: { "Message-ID": `<${id}@example.com>` },
      });
      await room.drain();
      expect(inbox.default_instruction).not.toBeNull();
      expect(lastPrompt(room)).toStartWith(inbox.default_instruction ?? "");
      asked[id] = lastPrompt(room);
    }
    expect(asked["email-summarizer"]).toStartWith("Summarise this mail.");
    expect(Object.values(asked).filter((prompt) => prompt.includes("answer its sender"))).toEqual([]);
  });

  test("has what it would change wait for a yes, where a mail is only forwarded", async () => {
    await using room = await toolRoom([[create()], "A row waits."], {
      inbox: { default_instruction: "Make a row of each invoice in this mail and its files." },
    });
    await room.send({
      subject: "Fwd: Invoice",
      text: "---------- Forwarded message ---------\nFrom: Shop <bill@shop.example>\nSubject: Invoice\n\nPay 12 EUR.",
    });
    await room.drain();
    expect(room.tools.calls).toEqual([]);
    const { body } = await room.owner.get("/v1/approvals");
    expect(JSON.stringify(body)).toContain("create_event");
    expect((await room.newest()).steps).toContain("waits for your yes");
  });

  test("gives way to what the mail says, to its subject, and to a call", async () => {
    await using room = await mailroom({ inbox: { default_instruction: "Say it in Latin" } });
    await room.send({ subject: "Fwd: Rent", text: `Sum this up${FORWARDED}` });
    await room.drain();
    expect(lastPrompt(room)).toStartWith("Sum this up");
    await room.send({ subject: "When is Easter?", text: "", headers: { "Message-ID": "<2@example.com>" } });
    await room.drain();
    expect(lastPrompt(room)).toContain("When is Easter?");
    await room.owner.post("/v1/messages", { instruction: "Add them", inbox_id: room.inbox.id });
    expect(lastPrompt(room)).toStartWith("Add them");
    expect(room.model.requests.map(({ body }) => JSON.stringify(body)).join("")).not.toContain("Latin");
  });

  test("holds for strangers, and names no tool, flag or context for them or for anybody", async () => {
    const words = "@calendar Make an event --model=other --allow-destructive +style $macro for each";
    await using room = await toolRoom(["Done.", [create()], "Done."]);
    await room.owner.post("/contexts", {
      title: "Style",
      body: "Be brief.",
      kind: "knowledge",
      slug: "style",
    });
    await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_instruction: words });
    await room.send({ from: "Eve <eve@example.net>", text: "Make an event called Gotcha" });
    await room.drain();
    expect(lastPrompt(room)).toStartWith(words);
    expect(await room.newest()).toMatchObject({ authority: "stranger", state: "done", model: "stand-in" });
    expect(room.model.requests[0]?.body?.tools ?? []).toEqual([]);
    await room.send({ subject: "Fwd: Rent", text: FORWARDED });
    await room.drain();
    expect(await room.newest()).toMatchObject({ authority: "owner", state: "done", model: "stand-in" });
    expect(room.tools.calls).toEqual([]);
  });

  test("is cut of blanks, can be taken away, and is not taken when too long", async () => {
    await using room = await mailroom();
    const path = `/inboxes/${room.inbox.id}`;
    const set = async (default_instruction: unknown) => {
      const { status, body } = await room.owner.patch(path, { default_instruction });
      return [status, body.default_instruction ?? body.errors?.[0]?.path];
    };
    expect(await set("x".repeat(10_000))).toEqual([200, "x".repeat(10_000)]);
    expect(await set("x".repeat(10_001))).toEqual([422, "body.default_instruction"]);
    expect(await set(7)).toEqual([422, "body.default_instruction"]);
    expect((await room.owner.get(path)).body.default_instruction).toHaveLength(10_000);
    expect(await set(" \n ")).toEqual([200, undefined]);
    await set("Once");
    expect(await set(null)).toEqual([200, undefined]);
  });
});
