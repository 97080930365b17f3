import { expect, test } from "bun:test";
import { toolRoom, type ToolRoom } from "../support/tool-room.ts";

const OFFER = "https://shop.example.net/offer?id=7";
const FORWARDED = `---------- Forwarded message ---------\nFrom: Eve <eve@example.net>\nDate: Fri, 3 May 2024 at 10:00\nSubject: Offer\nTo: <ada@example.com>\n\nA table for 5: ${OFFER}`;
const served = [{ name: "post", description: "Posts to the chat.", run: () => "posted" }];

async function posted(room: ToolRoom): Promise<unknown[]> {
  // A new mail with a web address could be a page that was shared, and has no target.
  const headers = { "In-Reply-To": "<offer@example.net>" };
  await room.send({ subject: "Fwd: Offer", headers, text: `@chat Post the gist.\n\n${FORWARDED}` });
  await room.drain();
  return room.tools.calls.map(({ args }) => args["text"]);
}

const post = (text: string) => [{ name: "chat__post", args: { text } }];

test("an address of the mail is written down just so", async () => {
  const text = `A table is on offer.\n\nSee ${OFFER}.`;
  await using room = await toolRoom([post(text), "Done."], { label: "Chat", served });
  expect(await posted(room)).toEqual([text]);
});

test("one that the model made up is not, and the model is told to write without it", async () => {
  const plain = "A table is on offer.\n\nFor 5.";
  const rounds = [post(`${plain}\n${OFFER}&for=ada`), post(plain), "Done."];
  await using room = await toolRoom(rounds, { label: "Chat", served });
  expect(await posted(room)).toEqual([plain]);
  expect(room.model.requests[1]?.body?.messages.at(-1)?.content).toContain("Write it without that address");
  expect(await room.newest()).toMatchObject({ state: "done", result: "Done." });
});
