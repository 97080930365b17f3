import { type AskedCall, type Going, goingOf, type Objection, tooMuch, WHERE } from "../trust/guard/guard.ts";
import type { Besides } from "../trust/guard/besides.ts";
import type { Judgement } from "../trust/guard/tells.ts";
import type { Tool } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { ReadFor } from "../files/reader.ts";
import { workOnText } from "./text-work.ts";

/**
 * Returns why a call must not be made, or what it tells others. If only the place stands in the way, what is said depends on
 * whether its title is the only one of that name.
 */
export async function judgeCall(
  app: App,
  asked: AskedCall,
  { from, signal }: { from: ReadFor; signal: AbortSignal },
): Promise<Judgement> {
  const going = goingOf(asked);
  const first = app.guard.objectionTo(asked);
  const judged = first === WHERE ? await judgeByPlaces(app, going, from) : { objection: first, tells: null };
  const { objection } = judged;
  if (objection !== null && (objection.lacks === null || objection.lacks.place === null)) return judged;
  try {
    const by_title = await objectionToTitle(app, asked.tool, { going, from, signal });
    return by_title === null ? judged : { objection: by_title, tells: null };
  } catch (error) {
    if (!signal.aborted) throw error;
    return judged;
  }
}

/** Returns what no consent lifts in a call that the guard objects to, and the places in it that nobody has named. */
export async function objectionToConsent(
  app: App,
  asked: AskedCall,
  { from, signal }: { from: ReadFor; signal: AbortSignal },
): Promise<Besides> {
  const { tool } = asked;
  const going = goingOf(asked);
  const found = await workOnText(app, "besides", going, from);
  if (found === undefined) return { objection: tooMuch(tool.name), unnamed: [] };
  found.objection ??= await objectionToMails(app, going, { mails: found.mails, from });
  if (found.objection !== null) return found;
  try {
    return { ...found, objection: await objectionToTitle(app, tool, { going, from, signal }) };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { ...found, objection: tooMuch(tool.name) };
  }
}

async function judgeByPlaces(app: App, going: Going, from: ReadFor): Promise<Judgement> {
  const found = await workOnText(app, "places", going, from);
  if (found === undefined) return { objection: tooMuch(going.tool.name), tells: null };
  const { mails, tells } = found;
  const objection = found.objection ?? (await objectionToMails(app, going, { mails, from }));
  return { objection, tells: objection === null ? tells : null };
}

/** Returns the objection to an order that a mail has which a tool is given as a whole, once it is read as mail is here. */
async function objectionToMails(
  app: App,
  { tool, unseen, by_owner, orders, numbers }: Going,
  { mails, from }: { mails: string[]; from: ReadFor },
): Promise<Objection | null> {
  if (mails.length === 0) return null;
  const going = { tool, args: {}, unseen, by_owner, orders, numbers };
  const objection = await workOnText(app, "mailed", { going, mails }, from);
  return objection === undefined ? tooMuch(tool.name) : objection;
}

/**
 * Returns why a call must not go to a place that the instruction names by its title alone: others can share something
 * of the same title, and what the model has found need not be all. Null if there is only one such place. Rejects only
 * when `signal` aborts.
 */
async function objectionToTitle(
  app: App,
  { name, titled }: Tool,
  { going, from, signal }: { going: Going; from: ReadFor; signal: AbortSignal },
): Promise<Objection | null> {
  if (titled === undefined) return null;
  for (const id of titled.args.map((argument) => going.args[argument])) {
    if (typeof id !== "string") continue;
    const wanted = await workOnText(app, "title", { id, going }, from);
    if (wanted === undefined) return tooMuch(name);
    if (wanted === null) continue;
    const { title, words } = wanted;
    const { ok, text, places: found = [] } = await titled.called(words, signal);
    const lacks = { target: false, destroy: false, place: id };
    if (!ok) return { reason: `${name} was to go to "${title}". ${text}`, lacks };
    const alike = await workOnText(app, "alike", { title, places: [...found, ...going.places], going }, from);
    if (alike === undefined) return tooMuch(name);
    if (alike.ids.length > 1)
      return { reason: manyCalled(name, title, { ...alike, text }), lacks: { ...lacks, among: alike.ids } };
  }
  return null;
}

function manyCalled(
  name: string,
  title: string,
  { ids, many, text }: { ids: string[]; many: boolean; text: string },
): string {
  const why = many ? "more than one has that title" : "another one is called almost so";
  const list = text
    .split("\n")
    .filter((line) => ids.some((id) => line.includes(id)))
    .join("\n");
  return `${name} was to go to "${title}", and ${why}. Name the one that is meant in the instruction, by its id or address:\n${list}`;
}
