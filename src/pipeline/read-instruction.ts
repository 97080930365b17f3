import type { App } from "../app.ts";
import { planFeatures } from "../resources/billing/plans.ts";
import type { UsedContext } from "../resources/contexts/shapes.ts";
import { cardsOf } from "../resources/contexts/match.ts";
import type { Target } from "../resources/connections/targets.ts";
import { aimOf, isTarget, powersFor, reachOf, type Refusal } from "./aim.ts";
import { remembered } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { closestName } from "../lib/closest-name.ts";
import type { Command, Parsed, ParseOptions } from "./command.ts";
import { instructionOf, macroOf, macroWordsOf } from "./macro.ts";
import { lessening, readTyped, type Typed } from "./read-typed.ts";
import {
  type Folded,
  type FoldedContext,
  foldContexts,
  goneContexts,
  type Shelf,
  shelfOf,
} from "./fold-contexts.ts";
import type { Powers } from "../trust/guard/guard.ts";
import type { RunInput } from "./input.ts";
import { type StepDraft, warningStep } from "./steps.ts";
import { ordersOf } from "./orders.ts";
import { type Ruled, underRules } from "./rules.ts";
import { isKnownFlag, readSettings, type RunSettings } from "./settings.ts";

/** What a run is asked to do. */
export interface Understanding {
  command: Command;
  /** The same without what rules add, which is for the owner alone to know. */
  as_typed: Command;
  /** The command, or the text of its macro; if there is neither, the instruction of the inbox. */
  instruction: string;
  /** Whether the instruction is the owner's standing one, of a rule or of the inbox. */
  is_standing: boolean;
  /** As `instruction`, but from the part of the command that is surely its author's. */
  sure: string;
  /** In a mail that has only a subject, what a macro says itself, without the words that it was given; else empty. */
  macro_words: string;
  contexts: FoldedContext[];
  /** These contexts and the macro, each with its version. */
  used: UsedContext[];
  settings: RunSettings;
  /** What the run may use of the tools of its inbox. */
  powers: Powers;
  targets: Target[];
  /** As the column of the message. */
  from_memory: boolean;
  /** The target that it names where words of others may stand, so that it does not count; null if there is none. */
  in_vain: NamedInVain | null;
  /** The words that mean something in an instruction of this account. */
  orders: string[];
  steps: StepDraft[];
  /** Why the run cannot be done. */
  refusal: Refusal;
}

export interface NamedInVain {
  target: string;
  /** Why it does not count, as a clause. */
  because: string;
}

/** Reads the instruction of a message: its command, its settings, and the standing documents it is done by. */
export async function readInstruction(
  app: App,
  { message, inbox }: { message: MessageRow; inbox: InboxRow },
  input: RunInput,
  ruled: Ruled,
): Promise<Understanding> {
  const shelf = await readShelf(app, message, inbox, ruled.do.context_ids);
  const gone = goneContexts(ruled.do, shelf);
  const reach = await reachOf(app, message, inbox);
  const isNamed = (name: string): boolean => isTarget(reach, name);
  const options: ParseOptions = {
    mail: message.source !== "api",
    ...(input.may_share ? { isTarget: isNamed } : {}),
    isContext: (slug) => shelf.nameable.some((card) => card.slug === slug),
    isMacro: (slug) => shelf.macros.some((card) => card.slug === slug),
  };
  const read: Read = (words, aims = true) => readTyped(words, input.filenames, { ...options, aims });
  const { own, all, ignored, idle_target } = readWords(input, read, isNamed);
  const { unknown, typed: _typed, ...parsed } = withAllowed(all, read(input.may_allow));
  const aim = aimOf(app, reach, parsed.target);
  const command = underRules({ ...parsed, target: aim.target }, ruled);
  const macro = await macroOf(app, shelf, command);
  const expanded = instructionOf(macro, command.command);
  const sure = instructionOf(macro, own.typed) ?? "";
  const refusal = aim.refusal ?? (expanded === null ? tooLong(parsed) : null);
  const more = input.subject === input.instruction ? "" : input.subject;
  const { instruction, standing } = askedFor((expanded ?? "") || more, inbox, ruled);
  // If no words are sure, the instruction chooses: all knowledge would go in otherwise. These words are the author's,
  // unless a shared post or a quote is among them.
  const words = [sure || instruction, ...(input.plain ? [input.subject] : [])].join("\n");
  const folded = refusal ? NOTHING : await foldContexts(app, shelf, { named: command.contexts, words });
  const { settings, warnings } = settingsOf(command, parsed, { authority: message.authority, ruled });
  const { withheld, ...granted } = await powersFor(app, message, { aim, settings, input });
  const steps: StepDraft[] = [
    ...ruled.steps,
    ...gone,
    ...standing,
    ...folded.notes.map(({ name, sentence }) => ({ type: "context" as const, name, output: sentence })),
    ...[...unknownWarnings(shelf, unknown), ...ignoredWarnings(ignored, input), ...warnings].map(warningStep),
    ...withheld,
  ];
  const { contexts } = folded;
  return {
    command,
    as_typed: parsed,
    instruction,
    is_standing: standing.length > 0,
    sure,
    macro_words: macroWordsOf(macro, input),
    contexts,
    used: usedOf(contexts, macro),
    settings,
    ...granted,
    in_vain: namedInVain(aimOf(app, reach, idle_target).target, input),
    orders: ordersOf(reach, await ownersShelf(app, message, inbox, shelf)),
    steps,
    refusal,
  };
}

const NO_TARGET = { target: null };

function usedOf(contexts: FoldedContext[], macro: UsedContext | null | undefined): UsedContext[] {
  return [...contexts, ...(macro ? [macro] : [])].map(({ id, slug, version }) => ({ id, slug, version }));
}

/**
 * The settings of a command; what it does not choose, a rule may. `typed`: the command in the words of its author. Tags that a rule
 * gives are not told to the model, which would tell them to whoever asks.
 */
function settingsOf(
  command: Command,
  { options: typed, tags }: Pick<Command, "options" | "tags">,
  { authority, ruled: { do: acts, by } }: { authority: MessageRow["authority"]; ruled: Ruled },
): ReturnType<typeof readSettings> {
  const isByRule = (name: string) => by[name] !== undefined && !Object.hasOwn(typed, name);
  const options = ["attach", "format"].filter(isByRule).map((name) => [name, by[name]]);
  const { settings, warnings } = readSettings({ ...command, tags }, authority, Object.fromEntries(options));
  const { connection_id = null, model = null } = acts;
  const by_rule = {
    ...settings.by_rule,
    ...(settings.connection === null ? { connection: by["connection_id"] } : {}),
    ...(settings.model === null ? { model: by["model"] } : {}),
    ...(typed["reply"] === undefined ? { reply: by["answer"] } : {}),
  };
  const chosen = { connection: settings.connection ?? connection_id, model: settings.model ?? model };
  return { settings: { ...settings, ...chosen, by_rule: defined(by_rule) }, warnings };
}

/** The members that are there. */
function defined(members: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

/** What a mail asks for; if it asks for nothing, what a rule or else its inbox asks for, with the step that says so. */
function askedFor(
  own_words: string,
  { default_instruction }: InboxRow,
  { do: acts }: Ruled,
): Pick<Understanding, "instruction"> & { standing: StepDraft[] } {
  if (own_words !== "") return { instruction: own_words, standing: [] };
  if (acts.instruction !== undefined) return { instruction: acts.instruction, standing: [BY_RULE] };
  if (default_instruction === null) return { instruction: "", standing: [] };
  return { instruction: default_instruction, standing: [BY_INBOX] };
}

/**
 * Says that the instruction of the inbox was followed. It is plain text: no word in it is a command or names a tool or a
 * context, whoever wrote the mail.
 */
const BY_INBOX: StepDraft = {
  type: "context",
  name: "default_instruction",
  output: "Its own words ask for nothing, so the instruction of the inbox was followed.",
};

/** The same of the instruction of a rule. */
const BY_RULE: StepDraft = {
  type: "context",
  name: "default_instruction",
  output: "Its own words ask for nothing, so the instruction of a rule was followed.",
};

type Read = (words: string, aims?: boolean) => Typed;

/**
 * Reads an instruction by the command grammar. `all` is the whole of it, `own` the part that is surely its author's,
 * and `ignored` are the commands before that part, which do not count. From words that may be a stranger's only those
 * flags count that make the run do less.
 */
function readWords(
  { instruction, sure, names }: RunInput,
  read: Read,
  isNamed: (target: string) => boolean,
): { own: Typed; all: Typed; ignored: string[]; idle_target: string | null } {
  const own = read(sure, names);
  const given = instruction.slice(0, instruction.length - sure.length);
  if (given === "") return { own, all: own, ignored: [], idle_target: null };
  const idle = read(given, false);
  const gap = /^\s*/.exec(sure)?.[0] ?? "";
  const all: Typed = {
    ...own,
    command: `${given}${gap}${own.command}`.trim(),
    options: { ...lessening(idle.options), ...own.options },
    raw: instruction,
  };
  const { target: first } = own.target === null ? read(given) : NO_TARGET;
  const idle_target = first !== null && isNamed(first) ? first : null;
  const ignored = [
    ...(idle_target === null ? [] : [`@${idle_target}`]),
    ...(idle.macro === null ? [] : [`$${idle.macro}`]),
    ...idle.contexts.map((slug) => `+${slug}`),
    ...Object.entries(idle.options)
      .filter(([name]) => name !== ALLOW && !Object.hasOwn(all.options, name) && isKnownFlag(name))
      .map(([name, value]) => (value === false ? `--no-${name}` : `--${name}`)),
  ];
  return { own, all, ignored, idle_target };
}

function ignoredWarnings(ignored: string[], input: RunInput): string[] {
  if (ignored.length === 0) return [];
  const named = ignored.map((token) => `\`${token}\``).join(", ");
  const { may_be, mend } = doubtAbout(input);
  return [`Left out, as it may ${may_be}: ${named}. ${mend}`];
}

function namedInVain(target: string | null, input: RunInput): NamedInVain | null {
  return target === null ? null : { target, because: `it may ${doubtAbout(input).may_be}` };
}

function doubtAbout({ may_share }: RunInput): Doubtful {
  return DOUBTFUL[may_share ?? "file"];
}

interface Doubtful {
  may_be: string;
  mend: string;
}

const OF_A_PAGE = {
  may_be: "stand in what this mail shares with the web address in it",
  mend: "Answer this mail with what you want of it.",
};
/** By reason of doubt, what commands may be that are not surely their author's, and where they would count. */
const DOUBTFUL: Record<NonNullable<RunInput["may_share"]> | "file", Doubtful> = {
  page: OF_A_PAGE,
  below: OF_A_PAGE,
  answer: {
    ...OF_A_PAGE,
    mend: "Put the web address at the end of a line and, after an empty line, what you want of it below.",
  },
  quote: {
    may_be: "stand in what this mail quotes",
    mend: "Write all that you want above the quoted text.",
  },
  file: { may_be: "be the title of a file", mend: "Write what you want of it in the text of the mail." },
};

const ALLOW = "allow-destructive";

/** The instruction without the flag that allows destruction, unless that stands where it may. */
function withAllowed(parsed: Typed, { options }: Parsed): Typed {
  if (parsed.options[ALLOW] === options[ALLOW]) return parsed;
  const kept = Object.entries(parsed.options).filter(([name]) => name !== ALLOW);
  return { ...parsed, options: Object.fromEntries(kept) };
}

const NOTHING: Folded = { contexts: [], notes: [] };

async function readShelf(
  app: App,
  message: MessageRow,
  inbox: InboxRow,
  context_ids: string[] | undefined,
): Promise<Shelf> {
  const cards = await cardsOf(app.db, { user_id: message.user_id });
  if (cards.length === 0) return { inbox_id: inbox.id, standing: [], nameable: [], macros: [], ruled: [] };
  const [user] = await planOf(app.db, { id: message.user_id });
  // After a downgrade of the plan a macro still exists, but does nothing.
  const macros = user !== undefined && planFeatures(user.plan).includes("command_contexts");
  return shelfOf(cards, { authority: message.authority, inbox, macros, context_ids });
}

/** The shelf that the owner would have, in whose name the words of a tool may come back, whoever has asked for them. */
async function ownersShelf(app: App, message: MessageRow, inbox: InboxRow, shelf: Shelf): Promise<Shelf> {
  if (message.authority !== "listed") return shelf;
  return readShelf(app, { ...message, authority: "owner" }, inbox, undefined);
}

const planOf = remembered((db, key: { id: string }) =>
  db.selectFrom("users").select("plan").where("id", "=", key.id),
);

function tooLong({ macro }: Pick<Parsed, "macro">): Refusal {
  const error = `The macro $${macro} is too long with its input in all the places it has for it.`;
  return { reason: "macro_too_long", error };
}

/** For more unknown names no nearest one is looked for: each is compared with all there are. */
const MAX_SUGGESTED = 5;

/** Warnings about names of no context or macro, each with the nearest name that the sender may use. */
function unknownWarnings({ nameable, macros }: Shelf, tokens: string[]): string[] {
  return tokens.map((token, nth) => {
    const [sigil = ""] = token;
    const [what, cards] = sigil === "$" ? ["macro", macros] : ["context", nameable];
    const known = nth < MAX_SUGGESTED ? cards.map(({ slug }) => slug) : [];
    const near = closestName(token.slice(1), known);
    const meant = near === undefined ? "" : ` Did you mean ${sigil}${near}?`;
    return `Unknown ${what} ${token}: there is none of this name that may be used here.${meant}`;
  });
}
