import { expect } from "bun:test";
import { simpleParser } from "mailparser";
import { beginCall, endCall, UNKNOWN } from "../../src/pipeline/tool-journal.ts";
import { take } from "../../src/resources/approvals/approvals.ts";
import { sessionOf } from "../support/consent.ts";
import type { Answer, Caller } from "../support/app.ts";
import type { Mailroom, RoomMail } from "../support/mailroom.ts";
import { CREATE, EVENTS, type Round, toolRoom, type ToolRoom } from "../support/tool-room.ts";
import type { ServedTool } from "../support/tool-server.ts";

export interface ApprovalRoom extends ToolRoom {
  /** What the model answers next, one round after the other; then words. */
  rounds: Round[];
}

/** A room with a calendar, whose model can be told what to answer at any time. */
export async function approvalRoom(
  options: Parameters<typeof toolRoom>[1] & { served?: ServedTool[] } = {},
): Promise<ApprovalRoom> {
  const rounds: Round[] = [];
  const next = (): Round => rounds.shift() ?? "That is all.";
  const room = await toolRoom(
    Array.from({ length: 1_000 }, () => next),
    {
      served: [EVENTS, CREATE],
      ...options,
    },
  );
  return { ...room, rounds };
}

export interface Letter {
  subject: string;
  /** Its words, however their lines are broken, and its lines as they are. */
  text: string;
  lines: string;
  to: string;
  reply_to: string;
  id: string;
}

/** The letters about requests that were sent since, or of all time. */
export async function letters(room: Mailroom, after = 0): Promise<Letter[]> {
  const raws = (await room.outgoing())
    .map(({ raw }) => Buffer.from(raw ?? ""))
    .filter((raw) => raw.includes("Subject: Waits for your yes"));
  const all: Letter[] = [];
  for (const raw of raws.slice(after)) all.push(await readMail(raw));
  return all;
}

export async function lastMail(room: Mailroom): Promise<Letter> {
  const mail = (await room.outgoing()).at(-1);
  return readMail(Buffer.from(mail?.raw ?? ""));
}

async function readMail(raw: Buffer): Promise<Letter> {
  const { text: lines = "" } = await simpleParser(raw);
  const text = raw.toString();
  const field = (name: string): string =>
    new RegExp(`^${name}:((?:.|\r\n[ \t])*)`, "im").exec(text)?.[1]?.replaceAll(/\r\n/g, "").trim() ?? "";
  return {
    subject: field("Subject"),
    to: field("To"),
    reply_to: /<?([^<>\s]+@[^<>\s]+?)>?$/.exec(field("Reply-To"))?.[1] ?? "",
    id: field("Message-ID"),
    text: lines.replaceAll(/\s+/g, " "),
    lines,
  };
}

/** A mail in answer to a letter. */
export function answerTo(
  { reply_to, id, subject }: Letter,
  text: string,
  more: Partial<RoomMail> = {},
): RoomMail {
  const headers = { "In-Reply-To": id, References: id, "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` };
  return {
    to: reply_to,
    rcpt: reply_to,
    subject: `Re: ${subject}`,
    text,
    ...more,
    headers: { ...headers, ...more.headers },
  };
}

/** Answers a letter, and has the answer worked on. */
export async function answer(
  room: Mailroom,
  letter: Letter,
  text: string,
  more: Partial<RoomMail> = {},
): Promise<string> {
  room.clock.advance("1s");
  const reply = await room.send(answerTo(letter, text, more));
  await room.drain();
  return reply;
}

/** Sends a mail in whose run the model wants these calls, and returns the letters about them. */
export async function ask(
  room: ApprovalRoom,
  calls: Round,
  mail: RoomMail = { subject: "Lunch", text: "Plan a lunch.", headers: { "In-Reply-To": "<x@example.org>" } },
): Promise<Letter[]> {
  room.clock.advance("1h");
  const before = (await letters(room)).length;
  room.tools.calls.length = 0;
  room.rounds.push(calls, "It waits.");
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>`, ...mail.headers };
  expect(await room.send({ ...mail, headers })).toStartWith("250");
  await room.drain();
  return letters(room, before);
}

/** Asks for one event, and returns the letter and the request. */
export async function askOnce(room: ApprovalRoom, args: Record<string, unknown> = { title: "Lunch" }) {
  const [letter] = await ask(room, [{ name: "calendar__create_event", args }]);
  if (letter === undefined) throw new Error("no letter");
  const approval = await newest(room.owner);
  return { letter, approval };
}

export async function newest(owner: Caller) {
  const { status, body } = await owner.get("/v1/approvals");
  expect(status).toBe(200);
  return body.items[0];
}

export async function read(owner: Caller, id: string) {
  return (await owner.get(`/v1/approvals/${id}`)).body;
}

const STEP = { type: "tool_call" as const, server: "mcp:calendar", name: "create_event", arguments: {} };

/** What a run leaves that was killed once it had noted its call, or once it had noted the answer as well. */
export async function killedAt(
  { app }: Mailroom,
  { id, hash }: { id: string; hash: string },
  message_id: string,
  heard: string | null,
): Promise<void> {
  const entry = { message_id, fingerprint: hash };
  await beginCall(app, entry, {
    step: { ...STEP, output: UNKNOWN.text },
    granted: () => Promise.resolve(true),
    async alongside(tx) {
      await take(app, tx, { id, run_id: message_id, from: ["pending", "approved"], state: "called" });
    },
  });
  if (heard === null) return;
  await endCall(app, new AbortController().signal, entry, {
    ok: true,
    text: heard,
    files: [],
    step: { ...STEP, output: heard },
  });
}

/** Presses the button of the page of a request. */
export async function pressYes(
  room: ApprovalRoom,
  { id, hash }: { id: string; hash: string },
): Promise<Answer> {
  const cookie = await sessionOf(room, room.owner);
  return room.request(`/v1/approvals/${id}/approve`, {
    method: "POST",
    headers: { cookie, "content-type": "application/json" },
    body: JSON.stringify({ hash }),
  });
}
