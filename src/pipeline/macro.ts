import type { App } from "../app.ts";
import { MAX_BODY_BYTES } from "../resources/contexts/contexts.ts";
import { textsOf } from "../resources/contexts/match.ts";
import type { Command } from "./command.ts";
import { expandMacro, type Shelf } from "./fold-contexts.ts";
import type { RunInput } from "./input.ts";

/** The instruction that a command is: its words, or its macro with these in it. Null where that is too long. */
export async function instructionOf(
  app: App,
  shelf: Shelf,
  { macro, command }: Command,
): Promise<string | null> {
  const card = macro === null ? undefined : shelf.macros.find(({ slug }) => slug === macro);
  if (!card) return command;
  const texts = await textsOf(app, [card.id], MAX_BODY_BYTES);
  return expandMacro(texts.get(card.id) ?? "", command);
}

/** What a macro says itself in a mail that has only a subject, which gives it the words beside; empty in any other one. */
export async function macroWordsOf(
  app: App,
  shelf: Shelf,
  { command, input }: { command: Command; input: RunInput },
): Promise<string> {
  if (input.names || command.macro === null) return "";
  return (await instructionOf(app, shelf, { ...command, command: "" })) ?? "";
}
