import { expect, test } from "bun:test";
import type { ServedTool } from "../support/tool-server.ts";
import { freshId } from "../support/mailroom.ts";
import { toolRoom, type Wanted } from "../support/tool-room.ts";

const PAGE = "https://x.example.org/concert";
const text = { type: "string" };
const FETCH: ServedTool = {
  name: "fetch",
  annotations: { readOnlyHint: true },
  inputSchema: {
    type: "object",
    properties: {
      url: text,
      format: { enum: ["markdown", "html"] },
      max_length: { type: "integer" },
      prompt: text,
    },
  },
  run: () => "A concert.",
};
const SAVE: ServedTool = {
  name: "save",
  inputSchema: { type: "object", properties: { url: text, title: text, text } },
  run: () => "saved",
};
const call = (name: string, args: Record<string, unknown>): Wanted => ({ name: `calendar__${name}`, args });

async function deskWith(tool: ServedTool, wanted: Wanted[]) {
  const room = await toolRoom([wanted, "Done."], { served: [tool] });
  return { room, made: () => room.tools.calls.map(({ args }) => args) };
}

test("a page that is to be summed up is fetched, with its format and length and the words of the mail", async () => {
  const args = { url: PAGE, format: "markdown", max_length: 20_000, prompt: "in three lines" };
  const { room, made } = await deskWith(FETCH, [call("fetch", args)]);
  await using _ = room;
  await room.send({ subject: "A page", text: `Sum up ${PAGE} in three lines.` });
  await room.drain();
  expect(made()).toEqual([args]);
});

test("what the model adds beside the address is told to nobody, and the model is told why", async () => {
  const { room, made } = await deskWith(FETCH, [call("fetch", { url: PAGE, prompt: "the key is 4711" })]);
  await using _ = room;
  await room.send({ subject: "A page", text: `Sum up ${PAGE} in three lines.` });
  await room.drain();
  expect(made()).toEqual([]);
  const told = room.model.requests.at(-1)?.body?.messages.at(-1)?.content;
  expect(told).toContain("with more than that address (`prompt`)");
});

const SCOPE = { targets: ["mcp:calendar"], autonomous: ["mcp:calendar"] };

test("an inbox that saves links at once saves one with the words that it was shared with", async () => {
  const args = { url: PAGE, title: "A concert in May", text: "" };
  const { room, made } = await deskWith(SAVE, [call("save", args)]);
  await using _ = room;
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { scope: SCOPE });
  await room.send({ subject: "A concert in May", text: PAGE });
  await room.drain();
  expect(made()).toEqual([args]);
});

test("an inbox that saves links at once saves one as part of a note with the words that it was shared with", async () => {
  const args = { title: "Concerts", text: `A concert is on, see ${PAGE}.` };
  const { room, made } = await deskWith(SAVE, [call("save", args)]);
  await using _ = room;
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { scope: SCOPE });
  await room.send({ subject: "A concert in May", text: PAGE });
  await room.drain();
  expect(made()).toEqual([args]);
});

test("with words of the model's it does once the owner asks for it", async () => {
  const args = { url: PAGE, title: "A concert that you will like" };
  const { room, made } = await deskWith(SAVE, [call("save", args)]);
  await using _ = room;
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { scope: SCOPE });
  await room.send({ subject: "A concert in May", text: PAGE });
  await room.drain();
  expect(made()).toEqual([]);
  expect(JSON.stringify(JSON.parse((await room.newest()).steps))).toContain(
    "Answer this mail with `@calendar`",
  );

  const again = await deskWith(SAVE, [call("save", args)]);
  await using __ = again.room;
  const headers = { ...freshId().headers, "In-Reply-To": "<one@example.net>" };
  await again.room.send({ subject: "Re: A concert", text: `${PAGE}\n\n@calendar`, headers });
  await again.room.drain();
  expect(again.made()).toEqual([args]);
});

const REPLY: ServedTool = {
  name: "reply",
  inputSchema: { type: "object", properties: { message_id: text, body: text } },
};

/** A mail that answers one, as forwards and answers are, with what the model then wants to write. */
async function replies(said: string, body: string) {
  const { room, made } = await deskWith(REPLY, [call("reply", { message_id: "m4", body })]);
  await using _ = room;
  const headers = { ...freshId().headers, "In-Reply-To": "<one@example.net>" };
  await room.send({ subject: "Re: Offer", text: said, headers });
  await room.drain();
  return made();
}

test("a tool writes what is no order here, and an order that its owner gives as text", async () => {
  expect(
    await replies("@calendar Answer mail m4 kindly.", "Thank you, see you at 10:30 in the office."),
  ).toHaveLength(1);
  const told = "@calendar Answer mail m4: begin your mails with @calendar.";
  expect(await replies(told, "Begin your mails with @calendar.")).toHaveLength(1);
  expect(await replies("@calendar Answer mail m4 kindly.", "@calendar Thank you")).toEqual([]);
});
