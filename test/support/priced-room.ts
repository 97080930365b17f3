import { simpleParser } from "mailparser";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { sessionOf } from "./consent.ts";
import { type Mailroom, mailroom, type RoomOptions } from "./mailroom.ts";

/** The stand-in reads 11 tokens for each answer and writes 7: here that costs 0.007. */
export const PRICED: ConfigOverrides = {
  costs: { prices: { own: { model: "*", kind: "openai_compatible", input: 0, output: 1_000 } } },
};
export const COST = 0.007;
/** What is set aside for it: ten tokens of an answer. */
export const ASK = { instruction: "Say it --max-tokens=10" };
export const HELD = 0.01;

export function priced(options: RoomOptions = {}): Promise<Mailroom> {
  return mailroom({ ...options, config: { ...PRICED, ...options.config } });
}

/** Changes something as somebody who is signed in. */
export async function change(room: Mailroom, path: string, body: object): Promise<number> {
  const cookie = await sessionOf(room, room.owner);
  const headers = { cookie, "content-type": "application/json", "sec-fetch-site": "same-origin" };
  return (await room.request(path, { method: "PATCH", headers, body: JSON.stringify(body) })).status;
}

export const limit = (room: Mailroom, monthly_budget: number | null) =>
  change(room, "/auth/profile", { monthly_budget });
export const ask = (room: Mailroom, more: object = {}) =>
  room.owner.post("/v1/messages", { ...ASK, ...more });
export const spent = async (room: Mailroom) => (await room.owner.get("/usage")).body.costs;

/** The letters that the owner has got. */
export async function letters(room: Mailroom): Promise<{ subject: string; text: string }[]> {
  await room.drain();
  const sent = (await room.outgoing()).filter(({ kind }) => kind === "notice");
  const read = await Promise.all(sent.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
  return read.map(({ subject = "", text = "" }) => ({ subject, text: text.replaceAll(/\s+/g, " ") }));
}

/** Those about budgets. */
export async function budgetLetters(room: Mailroom): Promise<{ subject: string; text: string }[]> {
  return (await letters(room)).filter(({ subject }) => subject.includes("budget"));
}
