import type { Lacks } from "../ai/guard.ts";
import type { MessageRow } from "../db/schema.ts";
import { INTEGRATION_KINDS } from "../connections/kinds.ts";
import type { RunInput } from "./input.ts";
import { redactText } from "./redact.ts";

const MAX_PLACES = 3;
const MAX_CHOICES = 8;
const MAX_PLACE_CHARS = 80;
/** One address or name: others may have chosen it, and in more words than that they could speak for us. */
const PLACES = [
  /^[\w.+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i,
  /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i,
  /^\w[\w.-]*(?:\/\w[\w.-]*)*(?:#\d{1,10})?$/,
];
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
  /** The tool server that is the only reason for it; null where there is another one. Undefined before the first call. */
  beside: string | null | undefined;
  destroy: boolean;
  places: Set<string>;
  /** Where was read what a blocked call could have shown others. */
  sources: Set<string>;
  /** Ids of what has one title, and of which one is to be named. */
  choices: Set<string>;
  /** Whether the titles of the places, in quotation marks, would do as well. */
  titled: boolean;
  /** Whether there is a place besides that is not to be repeated. */
  elsewhere: boolean;
}

/** By target. */
export type Lacking = Map<string, LackingAt>;

export function noteLack(lacking: Lacking, target: string, lacks: Lacks & { beside: string | null }): void {
  const known = lacking.get(target) ?? nothingAt();
  known.target ||= lacks.target;
  if (lacks.target && known.beside !== null) known.beside = lacks.beside;
  known.destroy ||= lacks.destroy;
  notePlaces(known, target, lacks);
  lacking.set(target, known);
}

function notePlaces(
  known: LackingAt,
  target: string,
  { place, source, among = [], titled = false }: Lacks,
): void {
  known.titled ||= titled;
  const choices = among.filter(mayShow);
  if (choices.length > 0) addSome(known.choices, choices, MAX_CHOICES);
  else if (place !== null) notePlace(known, known.places, wordsOf(target, place));
  if (source !== undefined) notePlace(known, known.sources, wordsOf(target, source));
}

function notePlace(
  known: LackingAt,
  among: Set<string>,
  { place, words }: { place: string; words: string },
): void {
  if (mayShow(place)) addSome(among, [words], MAX_PLACES);
  else known.elsewhere = true;
}

/** What names a place. The name of a repository alone could be a pair of words. */
function wordsOf(target: string, place: string): { place: string; words: string } {
  const repository = target.startsWith("codehost-") && /^[^/:#]+(?:\/[^/:#]+)+$/.test(place);
  return { place, words: repository ? `repository ${place}` : place };
}

function addSome(known: Set<string>, places: string[], max: number): void {
  for (const place of places) if (known.size < max) known.add(`\`${place}\``);
}

function nothingAt(): LackingAt {
  const sets = { places: new Set<string>(), sources: new Set<string>(), choices: new Set<string>() };
  return { target: false, beside: undefined, destroy: false, ...sets, titled: false, elsewhere: false };
}

function mayShow(place: string): boolean {
  const plain = place.length <= MAX_PLACE_CHARS && PLACES.some((pattern) => pattern.test(place));
  return plain && redactText(place) === place;
}

/** How a sentence speaks of the message that it is about. */
interface Wording {
  /** Where the name of the target goes. */
  begin: string;
  /** What has to be there besides. */
  besides: string;
  /** Where a flag goes. */
  add: string;
  it: string;
  words: string;
}

const CALL: Wording = { begin: "Begin with", besides: "", add: "", it: "this call", words: "this call" };
const MAIL: Wording = { ...CALL, add: " to its first paragraph", it: "this mail", words: "its text" };

/** A message, and what of it was taken for the words of its author. */
interface Told {
  message: Pick<MessageRow, "source" | "subject">;
  input: Pick<RunInput, "allows_in" | "aims" | "apart" | "shared">;
}

/** In Markdown, sentences for each target: the words with which the same message would have been carried out. */
export function wordsLacking(lacking: Lacking, told: Told): string[] {
  const wording = told.message.source === "api" ? CALL : mailWording(told);
  return Array.from(lacking).flatMap(([target, at]) =>
    wordsFor(target, at, wording).concat(placesFor(at, wording)),
  );
}

function mailWording({ message, input }: Told): Wording {
  const { allows_in, aims, apart, shared } = input;
  // Its subject has the words that are asked for, or is where they would be put.
  const titled = (!aims && !apart) || message.subject?.trimStart().startsWith("@") === true;
  const begin = titled ? "Begin its text, not its subject, with" : "Begin its text with";
  return {
    ...MAIL,
    ...(titled || apart ? { begin } : {}),
    // Nothing but the target above an address, it could be a title again.
    ...(apart
      ? { besides: ` on a line of its own${titled && shared ? ", and words of your own," : ""}` }
      : {}),
    ...(apart ? { words: "its text, behind the last web address there," } : {}),
    ...(allows_in.behind_address ? { add: ` behind the last web address of its ${allows_in.part}` } : {}),
  };
}

/** What allows destruction is told only where the target is named: else the model may have been talked into it. */
function wordsFor(target: string, at: LackingAt, { begin, besides, add, it }: Wording): string[] {
  const thing = `your ${THINGS[target] ?? target.replace(/^mcp:/, "").replaceAll("-", " ")}`;
  if (at.target) {
    const deed = at.destroy ? ", and say what may be deleted or overwritten if you want that" : "";
    return [
      `${begin} \`@${shortName(target)}\`${besides} to let ${it} change ${thing}${deed}.${besideIt(at)}`,
    ];
  }
  if (!at.destroy) return [];
  return [`Add \`--allow-destructive\`${add} to let ${it} delete or overwrite something in ${thing}.`];
}

function besideIt({ beside }: LackingAt): string {
  return typeof beside !== "string"
    ? ""
    : ` It has to be named because \`@${shortName(beside)}\`, another tool server, is in the same run: what that one says of its tools could be behind the change.`;
}

function placesFor(
  { places, sources, choices, titled, elsewhere }: LackingAt,
  { it, words }: Wording,
): string[] {
  const named = [...places].join(" and ");
  return [
    ...(named === ""
      ? []
      : [
          `Name the place ${named} in ${words}${titled ? ", or its title in quotation marks," : ""} to let ${it} go there.`,
        ]),
    ...(sources.size === 0
      ? []
      : [
          `Name ${[...sources].join(" and ")} in ${words} if others may see what is in there: this run has read it, and was to write elsewhere.`,
        ]),
    ...(choices.size === 0
      ? []
      : [
          `Name the one that you mean in ${words}, since more than one has its title: ${[...choices].join(" or ")}.`,
        ]),
    ...(elsewhere ? [`Name the place that you mean in ${words}: a tool was to go to another one.`] : []),
  ];
}

/** Without its prefix, where that means nothing else. */
function shortName(target: string): string {
  const bare = target.replace(/^mcp:/, "");
  return bare === "ai" || INTEGRATION_KINDS.some((kind) => kind === bare) ? target : bare;
}
