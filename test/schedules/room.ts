import { expect } from "bun:test";
import { planAllDue } from "../../src/resources/schedules/plan.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";

/** A Wednesday, 08:00 in UTC. */
const START = Date.UTC(2026, 6, 15, 8);

export async function roomAt(options: Parameters<typeof mailroom>[0] = {}): Promise<Mailroom> {
  const room = await mailroom(options);
  room.clock.leap(`${Math.round((START - 3_600_000 - room.clock.now()) / 1_000)}s`);
  // A leap is believed once it has been seen to stay for an hour.
  room.app.calmNow();
  room.clock.advance("1h");
  room.app.calmNow();
  return room;
}

/** Sets the clock to another time, which is believed by the end. */
export async function leapForGood(room: Mailroom, span: string): Promise<void> {
  room.clock.leap(span);
  for (let minute = 0; minute <= 60; minute += 10) await pass(room, "10m");
  await room.app.write((tx) => planAllDue(room.app, tx));
}

export async function schedules(room: Mailroom) {
  const { status, body } = await room.owner.get("/v1/schedules");
  expect(status).toBe(200);
  return body;
}

interface Answered {
  subject: string;
  text: string;
  reply_to: string;
  id: string;
  to: string;
}

export async function lastAnswer(room: Mailroom): Promise<Answered> {
  const mail = (await room.outgoing()).at(-1);
  const raw = Buffer.from(mail?.raw ?? "").toString();
  const parsed = await room.app.parser.parse(Buffer.from(raw), {
    form: undefined,
    account: "x",
    strangers: false,
  });
  if (!parsed.ok) throw new Error(parsed.message);
  const field = (name: string): string => new RegExp(`^${name}: *(.*)$`, "im").exec(raw)?.[1] ?? "";
  return {
    subject: field("Subject"),
    reply_to: /<?([^<>\s]+@[^<>\s]+)>?$/.exec(field("Reply-To"))?.[1] ?? "",
    id: field("Message-ID"),
    to: mail?.envelope_to ?? "",
    text: parsed.mail.new_text,
  };
}

export async function pass(room: Mailroom, span: string): Promise<void> {
  room.clock.advance(span);
  await room.drain();
}

/** Answers the last mail of the server, or an earlier one. */
export async function answer(
  room: Mailroom,
  text: string,
  more: { from?: string } = {},
  to?: Answered,
): Promise<void> {
  const { reply_to, id, subject } = to ?? (await lastAnswer(room));
  const headers = { "In-Reply-To": id, References: id, "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  const sent = await room.send({ to: reply_to, rcpt: reply_to, subject, text, headers, ...more });
  expect(sent).toStartWith("250");
  await room.drain();
}
