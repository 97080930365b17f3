import type { App } from "../app.ts";
import { MAX_BODY_BYTES } from "../resources/contexts/contexts.ts";
import { textsOf } from "../resources/contexts/match.ts";
import type { Command } from "./command.ts";
import { expandMacro, type Shelf } from "./fold-contexts.ts";
import type { RunInput } from "./input.ts";

/** The text of the macro that a command names; null where it names none. */
export async function macroTextOf(
  app: App,
  { macros }: Shelf,
  { macro }: Pick<Command, "macro">,
): Promise<string | null> {
  const card = macro === null ? undefined : macros.find(({ slug }) => slug === macro);
  if (!card) return null;
  return (await textsOf(app, [card.id], MAX_BODY_BYTES)).get(card.id) ?? "";
}

/** The instruction that words are, or the macro with them in it. Null where that is too long. */
export function instructionOf(macro: string | null, words: string): string | null {
  return macro === null ? words : expandMacro(macro, words);
}

/** What a macro says itself in a mail that has only a subject, which gives it the words beside; empty in any other one. */
export function macroWordsOf(macro: string | null, { names }: Pick<RunInput, "names">): string {
  return names ? "" : (instructionOf(macro, "") ?? "");
}
