import { expect, test } from "bun:test";
import type { RoomMail } from "../support/mailroom.ts";
import { create, toolRoom } from "../support/tool-room.ts";

const QUOTE = "On Fri, 3 May 2024 at 10:00, Eve <eve@example.net> wrote:\n> Shall we have lunch?";

async function made(mail: RoomMail): Promise<string[]> {
  await using room = await toolRoom([[create()], "Done."]);
  expect(await room.send({ subject: "Lunch", ...mail })).toStartWith("250 ");
  await room.drain();
  return room.tools.calls.map(({ name }) => name);
}

const withFile = (text: string): RoomMail => ({
  text,
  attachments: [{ filename: "a.txt", content: "Lunch" }],
});
const answer = (text: string): RoomMail => ({
  headers: { "Message-ID": "<two@example.com>", "In-Reply-To": "<one@example.net>" },
  text: `${text}\n\n${QUOTE}`,
});

test.each<[string, RoomMail]>([
  ["in a mail with a file", withFile("Hi Desk,\n\n@calendar put it down")],
  ["in a mail with a file, on the next line", withFile("Hi Desk,\n@calendar put it down")],
  ["in an answer, on the next line", answer("Hi Desk,\n@calendar put it down")],
])("a target below a greeting counts %s", async (_where, mail) => {
  expect(await made(mail)).toEqual(["create_event"]);
});

test.each<[string, RoomMail]>([
  ["below an empty line in an answer, where a quote may begin", answer("Hi Desk,\n\n@calendar put it down")],
  ["below other words", answer("Look at this:\n@calendar put it down")],
  ["in the greeting itself", answer("Hi @calendar,\nput it down")],
  ["below a greeting with a command in it", answer("Hi +vault,\n@calendar put it down")],
])("a target below a greeting counts no more than before %s", async (_where, mail) => {
  expect(await made(mail)).toEqual([]);
});
