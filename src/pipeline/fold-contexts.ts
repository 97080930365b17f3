import type { App } from "../app.ts";
import {
  bestMatches,
  type ContextCard,
  type ContextText,
  fittingIds,
  textsOf,
} from "../resources/contexts/match.ts";
import { listedIn } from "../resources/contexts/scope.ts";
import type { UsedContext } from "../resources/contexts/shapes.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { type StepDraft, warningStep } from "./steps.ts";

/**
 * The most characters that all standing documents of one run may have together; knowledge is cut before instructions.
 */
const MAX_CONTEXT_CHARS = 48_000;
const MAX_MATCHES = 3;
/**
 * The most characters of a macro with its input: a macro may be long, but not name its input so often that the result
 * explodes.
 */
const MAX_EXPANDED_CHARS = 500_000;

/** A standing document as the model gets it. */
export interface FoldedContext extends UsedContext {
  title: string;
  text: string;
}

export interface Folded {
  contexts: FoldedContext[];
  /** One note for each context: that the model was given it, that it was cut, or left out. */
  notes: { name: "context" | "context_truncated"; sentence: string }[];
}

/** The shelf: all standing documents (contexts and macros) that a run may be told of. */
export interface Shelf {
  inbox_id: string;
  /** Documents of the inbox that the sender may be answered from, in the order of their creation. */
  standing: ContextCard[];
  /** Documents that `+slug` may name. */
  nameable: ContextCard[];
  /** Macros that `$slug` may invoke. */
  macros: ContextCard[];
  /** Documents that a rule of the inbox works by, whoever wrote the message. */
  ruled: ContextCard[];
}

/**
 * Which contexts a message can have at all. The documents of an inbox are the enabled ones that it lists and, unless it
 * chooses its documents itself, those for every inbox. A stranger's mail gets only those that the inbox lists: its
 * owner attached these to be answered from, and a model that can be talked into telling its instructions has nothing
 * else to tell. The owner may name any of the account's documents, also one that is for other inboxes.
 */
export function shelfOf(
  cards: readonly ContextCard[],
  {
    authority,
    inbox,
    macros,
    context_ids = [],
  }: {
    authority: MessageRow["authority"];
    inbox: InboxRow;
    macros: boolean;
    context_ids?: string[] | undefined;
  },
): Shelf {
  const inbox_id = inbox.id;
  const listed = new Set(listedIn(inbox));
  const enabled = cards.filter((card) => card.enabled === 1);
  const attached = enabled.filter((card) => listed.has(card.id));
  const ruled = documents(enabled.filter((card) => context_ids.includes(card.id)));
  if (authority !== "owner" && authority !== "listed")
    return { inbox_id, standing: documents(attached), nameable: [], macros: [], ruled };
  const comesAlong = (card: ContextCard) => inbox.every_context === 1 && card.every_inbox === 1;
  const own = enabled.filter((card) => listed.has(card.id) || comesAlong(card));
  const nameable = authority === "owner" ? enabled : own;
  return {
    inbox_id,
    standing: documents(own),
    nameable: documents(nameable),
    macros: macros ? nameable.filter((card) => card.kind === "command") : [],
    ruled,
  };
}

function documents(cards: ContextCard[]): ContextCard[] {
  return cards.filter((card) => card.kind !== "command");
}

/**
 * Chooses the contexts of a run (decision F): every instruction; of the knowledge, the documents that a rule or `named` lists
 * or, if there are none, the best matches of the trusted words. If there are no trusted words, all that is attached goes in,
 * because words of others choose nothing.
 */
export async function foldContexts(
  app: App,
  shelf: Shelf,
  wanted: { named: string[]; words: string },
): Promise<Folded> {
  const asked = shelf.nameable.filter((card) => wanted.named.includes(card.slug));
  const named = [...new Set([...shelf.ruled, ...asked])];
  const instructions = new Set([...shelf.standing, ...named].filter(isInstruction));
  const told = named.filter((card) => !isInstruction(card));
  const knowledge = told.length > 0 ? told : await knowledgeFor(app, shelf, wanted.words);
  const chosen = [...instructions, ...knowledge];
  const ids = await fittingIds(
    app,
    chosen.map(({ id }) => id),
    MAX_CONTEXT_CHARS,
  );
  const texts = await textsOf(app, ids, MAX_CONTEXT_CHARS + 1);
  return withinBudget(chosen, texts);
}

function isInstruction({ kind }: ContextCard): boolean {
  return kind === "instruction";
}

async function knowledgeFor(app: App, { inbox_id, standing }: Shelf, words: string): Promise<ContextCard[]> {
  const knowledge = standing.filter((card) => !isInstruction(card));
  if (words.trim() === "") return knowledge;
  return bestMatches(app, knowledge, { inbox_id, words, count: MAX_MATCHES });
}

/** Returns these contexts with their texts, in this order, cut where all of them together would be too long. */
export function withinBudget(
  chosen: Pick<ContextCard, "id" | "slug" | "title">[],
  texts: Map<string, ContextText>,
): Folded {
  const folded: Folded = { contexts: [], notes: [] };
  let room = MAX_CONTEXT_CHARS;
  for (const { id, slug, title } of chosen) {
    const { text: whole, version } = texts.get(id) ?? NO_TEXT;
    // A surrogate pair that was cut in the middle is no character: its first half goes.
    const text = (whole ?? "").slice(0, room).replace(/[\ud800-\udbff]$/, "");
    room -= text.length;
    if (text !== "") folded.contexts.push({ id, slug, version, title, text });
    folded.notes.push(noteOf({ slug, version }, text, whole));
  }
  return folded;
}

const NO_TEXT = { text: undefined, version: 0 };

function noteOf(
  { slug, version }: Pick<UsedContext, "slug" | "version">,
  text: string,
  whole: string | undefined,
): Folded["notes"][number] {
  const which = version > 1 ? `${slug} (version ${version})` : slug;
  if (text === whole) return { name: "context", sentence: `Context ${which} was given to the model.` };
  const cause = `the contexts of a run have at most ${MAX_CONTEXT_CHARS} characters together`;
  const what = text === "" ? "was left out" : "was cut";
  return { name: "context_truncated", sentence: `Context ${which} ${what}: ${cause}.` };
}

/**
 * The instruction that a macro stands for: it is trusted, and not read for commands again. Null if it would be too
 * long.
 */
export function expandMacro(body: string, input: string): string | null {
  const places = body.split(PLACE).length - 1;
  if (body.length + places * input.length > MAX_EXPANDED_CHARS) return null;
  if (places === 0) return [body, input].filter((part) => part.trim() !== "").join("\n\n");
  return body.replaceAll(PLACE, () => input);
}

const PLACE = "{{input}}";

/** Says that a rule gives a context which is not there any more, or switched off. */
export function goneContexts(
  { context_ids = [] }: { context_ids?: string[] },
  { ruled }: Shelf,
): StepDraft[] {
  const there = new Set(ruled.map(({ id }) => id));
  return context_ids.every((id) => there.has(id)) ? [] : [{ ...warningStep(GONE_CONTEXT), to_strangers: "" }];
}

const GONE_CONTEXT =
  "A context that a rule gives to this message is switched off, is a macro, or is not there any more, so it was worked on without. Mend that, or take the context out of the rule.";
