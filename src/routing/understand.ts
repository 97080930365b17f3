import type { App } from "../app.ts";
import { planFeatures } from "../billing/plans.ts";
import { cardsOf, textsOf } from "../contexts/match.ts";
import { MAX_BODY_BYTES } from "../contexts/contexts.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { type Command, type Parsed, parseCommand } from "./command.ts";
import {
  expandMacro,
  type Folded,
  type FoldedContext,
  foldContexts,
  type Shelf,
  shelfOf,
} from "./fold-contexts.ts";
import type { RunInput } from "./input.ts";
import type { StepDraft } from "./steps.ts";
import { readSettings, type RunSettings } from "./settings.ts";

/** What a run is asked to do, all of it from trusted words. */
export interface Understanding {
  command: Command;
  /** The command, or what its macro stands for. */
  instruction: string;
  contexts: FoldedContext[];
  settings: RunSettings;
  steps: StepDraft[];
  /** Why it cannot be done. */
  refusal: { reason: string; error: string } | null;
}

/** What an instruction may be aimed at. */
const TARGETS = ["ai"];

/** Reads the instruction of a message: its command, its settings, and the standing documents it is done by. */
export async function understand(
  app: App,
  { message, inbox }: { message: MessageRow; inbox: InboxRow },
  input: RunInput,
): Promise<Understanding> {
  const shelf = await readShelf(app, message, inbox);
  const { unknown, ...parsed } = parseCommand(input.instruction, {
    mail: message.source !== "api",
    isContext: (slug) => shelf.nameable.some((card) => card.slug === slug),
    isMacro: (slug) => shelf.macros.some((card) => card.slug === slug),
  });
  const command = parsed.target === "ai" ? { ...parsed, target: null } : parsed;
  const expanded = await instructionOf(app, shelf, command);
  const refusal = refusalOf(parsed) ?? (expanded === null ? tooLong(parsed) : null);
  const instruction = expanded ?? "";
  const words = instruction === "" ? "" : `${instruction}\n${input.subject}`;
  const folded = refusal ? NOTHING : await foldContexts(app, shelf, { named: command.contexts, words });
  const { settings, warnings } = readSettings(command, message.authority);
  const steps: StepDraft[] = [
    ...folded.notes.map(({ name, sentence }) => ({ type: "context" as const, name, output: sentence })),
    ...[...unknownWarnings(unknown), ...warnings].map((output) => ({ type: "warning" as const, output })),
  ];
  return { command, instruction, contexts: folded.contexts, settings, steps, refusal };
}

const NOTHING: Folded = { contexts: [], notes: [] };

async function readShelf(app: App, message: MessageRow, inbox: InboxRow): Promise<Shelf> {
  const cards = await cardsOf(app.db, { user_id: message.user_id });
  if (cards.length === 0) return { inbox_id: inbox.id, standing: [], nameable: [], macros: [] };
  const [user] = await planOf(app.db, { id: message.user_id });
  // After a downgrade a macro is still there, and does nothing.
  const macros = user !== undefined && planFeatures(user.plan).includes("command_contexts");
  return shelfOf(cards, { authority: message.authority, inbox, macros });
}

const planOf = prepared((db, key: { id: string }) =>
  db.selectFrom("users").select("plan").where("id", "=", key.id),
);

function refusalOf({ target }: Pick<Parsed, "target">): Understanding["refusal"] {
  if (target === null || TARGETS.includes(target)) return null;
  const available = TARGETS.map((name) => `@${name}`).join(", ");
  return { reason: "unknown_target", error: `Unknown target @${target}. Available: ${available}.` };
}

function tooLong({ macro }: Pick<Parsed, "macro">): Understanding["refusal"] {
  const error = `The macro $${macro} is too long with its input in all the places it has for it.`;
  return { reason: "macro_too_long", error };
}

async function instructionOf(app: App, shelf: Shelf, { macro, command }: Command): Promise<string | null> {
  const card = macro === null ? undefined : shelf.macros.find(({ slug }) => slug === macro);
  if (!card) return command;
  const texts = await textsOf(app, [card.id], MAX_BODY_BYTES);
  return expandMacro(texts.get(card.id) ?? "", command);
}

function unknownWarnings(slugs: string[]): string[] {
  return slugs.map((slug) => `unknown context +${slug}: there is none of this name that may be used here.`);
}
