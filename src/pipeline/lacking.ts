import type { Lacks } from "../trust/guard/guard.ts";
import type { MessageRow } from "../db/schema.ts";
import { INTEGRATION_KINDS, INTEGRATIONS } from "../config/integrations.ts";
import type { RunInput } from "./input.ts";
import { codeHostCalled } from "../trust/target-names.ts";
import { redactText } from "../trust/shown/redact.ts";
import { saysItAnswers } from "../mail/reading/thread-fields.ts";
import { hasReplyMark } from "../trust/own-words/subject-mark.ts";
import { holdsAddress } from "../trust/own-words/shared-page.ts";

const MAX_PLACES = 3;
const MAX_CHOICES = 8;
const MAX_PLACE_CHARS = 80;
/**
 * What may be repeated to the sender: one address or name. Others may have chosen it, and with more words than that
 * they could speak in our name.
 */
const PLACES = [
  /^[\w.+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+$/i,
  /^https?:\/\/[a-z0-9.-]+(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i,
  /^\w[\w.-]*(?:\/\w[\w.-]*)*(?:#\d{1,10})?$/,
];
/** What people call each integration. */
const THINGS: Record<string, string> = Object.fromEntries(
  Object.entries(INTEGRATIONS).map(([kind, { noun }]) => [kind, noun]),
);

/** What an instruction did not say of one target, all blocked calls to it taken together. */
interface LackingAt {
  target: boolean;
  /**
   * The tool server because of which alone the calls were blocked; null where there was another reason as well.
   * Undefined before the first call.
   */
  beside: string | null | undefined;
  destroy: boolean;
  places: Set<string>;
  /** Where the data was read that a blocked call could have shown others. */
  sources: Set<string>;
  /** Whether a blocked call could have shown others something found by a search, which may come from anywhere. */
  searched: boolean;
  /** Ids of places that share one title; the instruction has to name one of them. */
  choices: Set<string>;
  /** Whether to name the places by their titles, in quotation marks, would do as well. */
  titled: boolean;
  /** Whether there is one more place, which must not be repeated to the sender. */
  elsewhere: boolean;
}

/** What was lacking, by target. */
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
  { place, source, among = [], titled = false, searched = false }: Lacks,
): void {
  known.titled ||= titled;
  known.searched ||= searched;
  const choices = among.filter(mayShow);
  if (choices.length > 0) addSome(known.choices, choices, MAX_CHOICES);
  else if (place !== null) notePlace(known, known.places, namingWords(target, place));
  if (source !== undefined) notePlace(known, known.sources, namingWords(target, source));
}

function notePlace(
  known: LackingAt,
  among: Set<string>,
  { place, words }: { place: string; words: string },
): void {
  if (mayShow(place)) addSome(among, [words], MAX_PLACES);
  else known.elsewhere = true;
}

/**
 * The words that name a place. The name of a repository alone could be a pair of words, so it gets the word before it.
 */
function namingWords(target: string, place: string): { place: string; words: string } {
  const repository = target.startsWith("codehost-") && /^[^/:#]+(?:\/[^/:#]+)+$/.test(place);
  return { place, words: repository ? `repository ${place}` : place };
}

function addSome(known: Set<string>, places: string[], max: number): void {
  for (const place of places) if (known.size < max) known.add(`\`${place}\``);
}

function nothingAt(): LackingAt {
  const sets = { places: new Set<string>(), sources: new Set<string>(), choices: new Set<string>() };
  const flags = { target: false, destroy: false, searched: false, titled: false, elsewhere: false };
  return { ...flags, ...sets, beside: undefined };
}

function mayShow(place: string): boolean {
  const plain = place.length <= MAX_PLACE_CHARS && PLACES.some((pattern) => pattern.test(place));
  return plain && redactText(place) === place;
}

/**
 * How a sentence speaks of the message that it is about. A pair is the text before and behind what has to be written.
 */
interface Wording {
  it: string;
  target: [string, string];
  flag: [string, string];
  place: [string, string];
  /** As `place`, for a web address. */
  site: [string, string];
  words: string;
  /** A sentence behind that which asks for the target. */
  because?: string;
}

const CALL: Wording = {
  it: "this call",
  target: ["Begin with", ""],
  flag: ["Add", ""],
  place: ["Name the place", " in this call"],
  site: ["Name the place", " in this call"],
  words: "this call",
};
const MAIL: Wording = {
  it: "this mail",
  target: ["Begin with", ""],
  flag: ["Add", " to its first paragraph"],
  place: ["Name the place", " in its text"],
  site: ["Name the place", " in its text"],
  words: "its text",
};
/**
 * The wording if a program may have shared a page: such a program begins a mail, so that an answer is surely written by
 * its author.
 */
const SHARED_PAGE: Wording = {
  it: "it",
  target: ["Answer this mail with", ""],
  flag: ["Answer this mail with", ""],
  place: ["Answer this mail with the place", ""],
  site: ["Answer this mail with", ""],
  words: "an answer to this mail",
};
const AT_END = "Put the web address at the end of a line and";
const PUT = `${AT_END}, after an empty line,`;
/** The wording if only what stands below a web address in an answer is surely its author's. */
const BELOW_ADDRESS: Wording = {
  it: "this mail",
  target: [PUT, " on a line of its own below it"],
  // The first paragraph of the text ends at an empty line.
  flag: [AT_END, " right below it, in its first paragraph,"],
  place: [`${PUT} the place`, " below it"],
  site: ["Put", " at the end of a line, below any other web address and above all that you want of it,"],
  words: "its text, below the last web address there,",
};

const LEAVE_OUT =
  "Leave out the web address below your words (a signature may have one of a site without `https://`) and";
/** The wording if such an address stands in a signature, or in what looks like a quote. */
const ABOVE_ADDRESS: Wording = {
  ...MAIL,
  target: [`${LEAVE_OUT} begin with`, ""],
  flag: [`${LEAVE_OUT} add`, ""],
  place: [`${LEAVE_OUT} name the place`, " in its text"],
  site: [`${LEAVE_OUT} name the place`, " in its text"],
};

const ABOVE = "Write all that you want above the quoted text and";
/** The wording if words stand below a quote whose end only its marks show. */
const ABOVE_QUOTE: Wording = {
  ...MAIL,
  target: [`${ABOVE} begin with`, ""],
  flag: [`${ABOVE} add`, " to its first paragraph"],
  place: [`${ABOVE} name the place`, " there"],
  site: [`${ABOVE} name the place`, " there"],
  words: "its text, above the quoted one,",
};

/** A message, and which part of it was taken for the words of its author. */
interface Told {
  message: Pick<MessageRow, "source" | "subject">;
  input: Pick<RunInput, "names" | "may_share" | "headers">;
}

/** The words with which the same message would have been carried out: in Markdown, sentences for each target. */
export function wordsLacking(lacking: Lacking, told: Told): string[] {
  const wording = told.message.source === "api" ? CALL : withMark(mailWording(told), told);
  return Array.from(lacking).flatMap(([target, at]) =>
    wordsFor(target, at, wording).concat(placesFor(at, wording)),
  );
}

function mailWording({ message, input: { names, may_share } }: Told): Wording {
  // A new mail with an address in its text would not count its target either, so the sender is told to answer.
  if (may_share === "page" || (!names && holdsAddress(message.subject ?? ""))) return SHARED_PAGE;
  if (may_share === "below") return ABOVE_ADDRESS;
  if (may_share === "quote") return ABOVE_QUOTE;
  if (may_share === "answer") return BELOW_ADDRESS;
  // The subject holds the words that are asked for, or is where the sender would put them.
  const titled = !names || message.subject?.trimStart().startsWith("@") === true;
  return titled ? { ...MAIL, target: ["Begin its text, not its subject, with", ""] } : MAIL;
}

/** A mark that a person has typed is not told from that of a program, so the mail counts as an answer or a forward. */
function withMark(wording: Wording, { message, input: { headers } }: Told): Wording {
  const typed = headers !== null && !saysItAnswers(headers) && hasReplyMark(message.subject ?? "");
  return typed ? { ...wording, because: MARKED } : wording;
}

const MARKED =
  " Its subject begins as that of an answer or a forward does, so words of others may be in it: without that mark a new mail of your words alone needs no name.";

/**
 * The sentences for one target. The flag that allows destruction is told only if the target was named: else others may
 * have talked the model into the call.
 */
function wordsFor(
  target: string,
  at: LackingAt,
  { target: [begin, behind], flag, it, because = "" }: Wording,
): string[] {
  const thing = `your ${THINGS[target] ?? thingCalled(target)}`;
  if (at.target) {
    const deed = at.destroy ? ", and say what may be deleted or overwritten if you want that" : "";
    return [
      `${begin} \`@${shortName(target)}\`${behind} to let ${it} change ${thing}${deed}.${besideIt(at)}${because}`,
    ];
  }
  if (!at.destroy) return [];
  return [
    `${flag[0]} \`--allow-destructive\`${flag[1]} to let ${it} delete or overwrite something in ${thing}.`,
  ];
}

function besideIt({ beside }: LackingAt): string {
  return typeof beside !== "string"
    ? ""
    : ` It has to be named because \`@${shortName(beside)}\`, another tool server, is in the same run: what that one says of its tools could be behind the change.`;
}

function placesFor(
  { places, sources, searched, choices, titled, elsewhere }: LackingAt,
  { it, place, site, words }: Wording,
): string[] {
  const named = [...places].join(" and ");
  const [name, behind] = holdsAddress(named) ? site : place;
  return [
    ...(named === ""
      ? []
      : [
          `${name} ${named}${behind}${titled ? ", or its title in quotation marks," : ""} to let ${it} go there.`,
        ]),
    ...(sources.size === 0
      ? []
      : [
          `Name ${[...sources].join(" and ")} in ${words} if others may see what is in there: this run has read it, and would then have written elsewhere.`,
        ]),
    ...(searched
      ? [
          `Name the repository to search in ${words}: this run has searched in others, or followed a link to one, and would then have written where others can read.`,
        ]
      : []),
    ...(choices.size === 0
      ? []
      : [
          `Name the one that you mean in ${words}, since more than one has its title: ${[...choices].join(" or ")}.`,
        ]),
    ...(elsewhere ? [`Name the place that you mean in ${words}: a tool was to go to another one.`] : []),
  ];
}

/** What a tool server is called, behind "your": its owner may have named it "My notes". */
function thingCalled(target: string): string {
  return target
    .replace(/^mcp:/, "")
    .replaceAll("-", " ")
    .replace(/^(?:my|our|your|the) (?=.)/, "");
}

/** The name by which people call it: that of a code host, or that of a tool server without its prefix if it names nothing else. */
function shortName(target: string): string {
  const bare = target.replace(/^mcp:/, "");
  const is_taken = bare === "ai" || INTEGRATION_KINDS.some((kind) => kind === bare);
  return codeHostCalled(target) ?? (is_taken ? target : bare);
}
