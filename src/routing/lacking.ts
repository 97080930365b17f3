import type { Lacks } from "../ai/guard.ts";
import type { MessageRow } from "../db/schema.ts";
import { INTEGRATION_KINDS } from "../connections/kinds.ts";
import { stripHiddenCharacters } from "../mail/hidden-characters.ts";
import { redactText } from "./redact.ts";

const MAX_PLACES = 3;
/** What people call an integration. */
const THINGS: Record<string, string> = {
  notes: "notes",
  "codehost-a": "code host",
  "codehost-b": "code host",
  sheets: "sheets",
};

/** What an instruction did not say of one target, all blocked calls to it taken together. */
interface LackingAt {
  target: boolean;
  destroy: boolean;
  /** Whether anything else than that was blocked. */
  write: boolean;
  places: Set<string>;
}

/** By target. */
export type Lacking = Map<string, LackingAt>;

export function noteLack(lacking: Lacking, target: string, { place, ...lacks }: Lacks): void {
  const known = lacking.get(target) ?? { target: false, destroy: false, write: false, places: new Set() };
  known.target ||= lacks.target;
  known.destroy ||= lacks.destroy;
  known.write ||= lacks.target && !lacks.destroy;
  if (place !== null && known.places.size < MAX_PLACES) known.places.add(asCode(place));
  lacking.set(target, known);
}

/** In Markdown, a sentence for each target: the words with which the same message would have been carried out. */
export function wordsLacking(lacking: Lacking, { source }: Pick<MessageRow, "source">): string[] {
  const message = source === "api" ? "this call" : "this mail";
  return Array.from(lacking).flatMap(([target, at]) =>
    wordsFor(target, at, message).concat(placesFor(at, message)),
  );
}

function wordsFor(target: string, at: LackingAt, message: string): string[] {
  if (!at.target && !at.destroy) return [];
  const flag = "--allow-destructive";
  const words = at.target ? [`@${shortName(target)}`, ...(at.destroy ? [flag] : [])] : [flag];
  const thing = `your ${THINGS[target] ?? target.replace(/^mcp:/, "").replaceAll("-", " ")}`;
  const deed = at.destroy ? `${at.write ? "change, " : ""}delete or overwrite something in` : "change";
  return [`${at.target ? "Begin with" : "Add"} \`${words.join(" ")}\` to let ${message} ${deed} ${thing}.`];
}

function placesFor({ places }: LackingAt, message: string): string[] {
  if (places.size === 0) return [];
  return [`Name the place ${[...places].join(" and ")} in ${message} to let it go there.`];
}

/** Without its prefix, where that means nothing else. */
function shortName(target: string): string {
  const bare = target.replace(/^mcp:/, "");
  return bare === "ai" || INTEGRATION_KINDS.some((kind) => kind === bare) ? target : bare;
}

/** Others may have chosen it. */
function asCode(place: string): string {
  const shown = redactText(stripHiddenCharacters(place).text);
  return `\`${shown.replaceAll("`", "'").replaceAll(/\s+/g, " ").trim()}\``;
}
