import type { App } from "../app.ts";
import { MAX_BODY_BYTES } from "../resources/contexts/contexts.ts";
import { textsOf } from "../resources/contexts/match.ts";
import type { Command } from "./command.ts";
import type { UsedContext } from "../resources/contexts/shapes.ts";
import { expandMacro, type Shelf } from "./fold-contexts.ts";
import type { RunInput } from "./input.ts";

/** A macro as a run is given it. */
export interface Macro extends UsedContext {
  text: string;
}

/** The macro that a command names; null where it names none. */
export async function macroOf(
  app: App,
  { macros }: Shelf,
  { macro }: Pick<Command, "macro">,
): Promise<Macro | null> {
  const card = macro === null ? undefined : macros.find(({ slug }) => slug === macro);
  if (!card) return null;
  const { id, slug } = card;
  const { text, version } = (await textsOf(app, [id], MAX_BODY_BYTES)).get(id) ?? { text: "", version: 0 };
  return { id, slug, version, text };
}

/** The instruction that words are, or the macro with them in it. Null where that is too long. */
export function instructionOf(macro: Macro | null, words: string): string | null {
  return macro === null ? words : expandMacro(macro.text, words);
}

/** What a macro says itself in a mail that has only a subject, which gives it the words beside; empty in any other one. */
export function macroWordsOf(macro: Macro | null, { names }: Pick<RunInput, "names">): string {
  return names ? "" : (instructionOf(macro, "") ?? "");
}
