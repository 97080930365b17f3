import { expect, test } from "bun:test";
import { create, toolRoom } from "../support/tool-room.ts";

const FIRST = { "Message-ID": "<one@example.com>" };
const ANSWER = { "Message-ID": "<two@example.com>", "In-Reply-To": "<one@example.com>" };
const ORDER = "Add lunch, see https://example.com/recipe";
const AGAIN = /^Do now what was asked for before in this conversation\./;

async function answered(text: string, inbox = {}) {
  await using room = await toolRoom(
    [[create({ title: "Lunch" })], "Not done.", [create({ title: "Lunch" })], "Done."],
    {
      inbox,
    },
  );
  await room.send({ subject: "Lunch", text: ORDER, headers: FIRST });
  await room.drain();
  expect(room.tools.calls).toEqual([]);
  await room.send({ subject: "Re: Lunch", text, headers: ANSWER });
  await room.drain();
  return {
    asked: room.model.requests[2]?.body?.messages.findLast(({ role }) => role === "user")?.content ?? "",
    calls: room.tools.calls.map(({ args }) => args["title"]),
  };
}

test.each([
  "@calendar",
  "@calendar\n\nOn Fri, 3 May 2024 at 10:00, Desk <desk@mw.test> wrote:\n> Answer this mail with `@calendar`",
])("an answer of nothing but the target (%j) has done what was asked for before", async (text) => {
  const { asked, calls } = await answered(text);
  expect(asked).toMatch(AGAIN);
  expect(calls).toEqual(["Lunch"]);
});

test("an answer of nothing but the target has it done where mail without words has an instruction of the inbox", async () => {
  expect((await answered("@calendar", { default_instruction: "Sum it up." })).asked).toMatch(AGAIN);
});

test.each(["Thank you.", "@calendar Make a note of it"])(
  "an answer in words (%j) is what it says",
  async (text) => {
    expect((await answered(text)).asked).not.toMatch(AGAIN);
  },
);

test("a first mail of nothing but the target has nothing before it", async () => {
  await using room = await toolRoom(["Hello."]);
  await room.send({ subject: "", text: "@calendar" });
  await room.drain();
  expect(room.model.requests[0]?.body?.messages.at(-1)?.content).toStartWith("Read the material below");
});
