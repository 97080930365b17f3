import { expect, test } from "bun:test";
import { create, toolRoom, type ToolRoom } from "../support/tool-room.ts";
import { tnef } from "../support/tnef.ts";

const RULE = "*~*~*~*~*~*~*~*~*~*";
const ORDER = "@calendar Make an event";

async function made(mail: Parameters<ToolRoom["send"]>[0]): Promise<number> {
  await using room = await toolRoom([[create({ title: "Lunch" })], "Done."]);
  await room.send({ subject: "Planning", ...mail });
  await room.drain();
  return room.tools.calls.length;
}

const winmail = (message_class: string) => ({
  filename: "winmail.dat",
  content_type: "application/ms-tnef",
  content: Buffer.from(tnef({ message_class })),
});

test.each([
  ["Exchange", "IPM.Schedule.Meeting.Resp.Pos"],
  ["older servers", "IPM.Microsoft Schedule.MtgRespP"],
  ["a meeting that is asked for", "IPM.Schedule.Meeting.Request"],
  ["an appointment", "IPM.Appointment"],
])("what Outlook writes about a meeting gives no order, as %s names it", async (_who, message_class) => {
  expect(await made({ text: ORDER, attachments: [winmail(message_class)] })).toBe(0);
});

test("a mail in winmail.dat stays its author's word", async () => {
  expect(await made({ text: ORDER, attachments: [winmail("IPM.Note")] })).toBe(1);
});

test("below Outlook's line about a meeting, and above it, nobody gives an order", async () => {
  expect(await made({ text: `When: Friday\nWhere: Room 5\n\n${RULE}\n\n${ORDER}` })).toBe(0);
  expect(await made({ text: `${ORDER}\nWhen: Friday\n\n${RULE}\n\nAgenda` })).toBe(0);
  // In what is quoted it is the other one's.
  const quoted = `On Fri, 3 May 2024 at 10:00, Eve <eve@example.net> wrote:\n> When: Friday\n> ${RULE}\n> Agenda`;
  expect(await made({ text: `${ORDER}\n\n${quoted}` })).toBe(1);
});
