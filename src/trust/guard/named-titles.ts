import { normalForm } from "../../lib/normal-form.ts";
import { isInsideAddress } from "./inside-address.ts";
import { isQuoted } from "./quoted.ts";
import { standsBetween } from "./stands-between.ts";
import { bareWord, wordsBefore, wordSet } from "./words.ts";

/** The texts of people with authority. */
export interface Written {
  /** The words for this run: the instruction, and the subject if it is part of it. */
  instruction: string;
  /** The instruction and the text that accompanies every run, such as contexts. */
  trusted_text: string;
}

/**
 * Returns whether a text names something by its title. Whoever shares a thing chooses its title, and could use common
 * words. So a title has to be in quotation marks, or written exactly, with its capitals, where the instruction says
 * where something goes. `others` are all other known titles.
 */
export function isTitleNamed(title: string, written: Written, others: string[] = []): boolean {
  if (isTitleQuoted(title, written)) return true;
  return isPointedAtAlone(composed(title), composed(written.instruction.slice(0, MAX_READ_CHARS)), [
    ...new Set(others.map(composed)),
  ]);
}

export function isTitleQuoted(title: string, { trusted_text }: Written): boolean {
  const wanted = composed(title).toLowerCase();
  const text = composed(trusted_text).toLowerCase();
  const quoted = (at: number): boolean =>
    isQuoted(text, at, at + wanted.length) && !isInsideAddress(text, at);
  return standsBetween(text, wanted, { before: /[.@-]/, after: /^/, accepts: quoted });
}

/** Returns whether two titles look the same to people. */
export function sameName(one: string | null, other: string): boolean {
  return one !== null && composed(one).toLowerCase() === composed(other).toLowerCase();
}

/** Returns whether one of two titles contains the other. */
export function overlaps(one: string, other: string): boolean {
  const [a, b] = [composed(one), composed(other)];
  return contains(a, b) || contains(b, a);
}

/** Returns whether a title contains these words, ignoring case. */
export function hasWords(title: string, words: string): boolean {
  return composed(title).toLowerCase().includes(composed(words).toLowerCase());
}

function composed(text: string): string {
  return normalForm("NFC", text.trim());
}

function contains(long: string, short: string): boolean {
  const wanted = short.toLowerCase();
  return long.length > short.length && standsBetween(long.toLowerCase(), wanted, WHOLE);
}

const PART = String.raw`[\p{L}\p{N}\p{M}_]`;
const NOT_BEFORE = new RegExp(String.raw`(?:${PART}|[.@-])$`, "u");
const NOT_GOING_ON = new RegExp(String.raw`^(?!${PART}|[.-]${PART})`, "u");
const WHOLE = { before: new RegExp(PART, "u"), after: NOT_GOING_ON };
const MAX_BEFORE_CHARS = 200;
const MAX_BEHIND_CHARS = 40;
/**
 * Characters of an instruction in which a title can be named, and characters that are read, for the words behind it.
 */
const MAX_POINTING_CHARS = 20_000;
const MAX_READ_CHARS = MAX_POINTING_CHARS + 5_000;
/** Occurrences of a title that are examined; a title that occurs more often counts as named. */
const MAX_POINTED = 200;

// The words below are of the languages that most instructions are written in.

/** A noun behind a title, maybe with a hyphen: `die Wochenplan-Seite`. */
const NOUN_BEHIND =
  /^[\s-]{1,3}(?:page|subpage|list|database|board|table|doc|document|wiki|seite|unterseite|liste|datenbank|tabelle|dokument|pagina|lijst|tabel)(?![\p{L}\p{N}\p{M}_])/iu;
const NOUNS = wordSet(
  "page pages subpage list lists database databases board table doc document wiki seite unterseite liste datenbank tabelle dokument tableau données fiche página lista datos tabla tablero documento dados tabela quadro pagina bacheca tabella lijst tabel bord",
);
const CALLED = wordSet(
  "called named titled entitled namens genannt appelée appelé intitulée intitulé nommée nommé llamada llamado titulada titulado chiamata chiamato intitolata intitolato chamada chamado intitulada intitulado genaamd getiteld",
);
/** Prepositions of direction. */
const TOWARDS = wordSet(
  "to into onto below beneath in unter auf dans sous sur à a en bajo sobre sotto em sob naar aan op onder",
);
/** Prepositions that with an English article more often say where something is than where it goes. */
const WITHIN = wordSet("in on at under");
const ENGLISH = wordSet("the my our your his her their");
const THE = wordSet(
  "the my our your his her their den die das meinen meine mein unseren unsere unser deine deinen le la les l' mon ma mes notre nos ton ta votre vos el los las mi mis nuestro nuestra tu su lo il gli i mio mia nostro nostra meu minha nosso nossa de het mijn onze ons jouw",
);
/** Contractions of a preposition and an article. */
const TOWARDS_THE = wordSet(
  "ins aufs au aux al allo alla all' nel nello nella nell' sul sullo sulla sull' ao no na nos nas",
);
/** Verbs of writing, whose object goes where the next words say. */
const WRITING = wordSet(
  "add append save put write note keep store file record log post enter copy move insert",
);
/** Verbs of writing that never have a person as object. */
const FILING = wordSet("add append save file copy move insert");
const CHANGING = wordSet("update extend amend complete edit");
const ENDS_OF = wordSet("end top bottom beginning start");
/** The end of a title: no word follows that could belong to it. */
const ENDS =
  /^(?:['’]s)?(?:$|\s{0,5}\n|[.,;:!?)](?:\s|$)|\s{1,5}(?:[-–—]\s|(?:please|bitte|merci)(?!\p{L})))/iu;

/** Returns whether a text points at a title, and at no other title that could be meant as well. */
function isPointedAtAlone(title: string, text: string, others: string[]): boolean {
  if (!isWrittenAsTitle(title)) return false;
  const longer = others.filter((other) => contains(other, title));
  const isOne = (at: number): boolean =>
    at < MAX_POINTING_CHARS &&
    isOneAt(title, text, at) &&
    !isInsideAddress(text, at) &&
    !longer.some((other) => isPartOf(other, title, { text, at }));
  return pointsAt(text, title, isOne, false) && !others.some((other) => isPaddedOut(title, other, text));
}

/**
 * Returns whether a text has an occurrence of a title that `accepts` accepts; `many` if there are too many to examine.
 */
function pointsAt(text: string, title: string, accepts: (at: number) => boolean, many: boolean): boolean {
  return standsBetween(text, title, {
    before: /[.@-]/,
    after: /^/,
    accepts,
    most: { count: MAX_POINTED, stands: many },
  });
}

/** Returns whether a title begins with a capital: otherwise it looks like ordinary words. */
function isWrittenAsTitle(title: string): boolean {
  return /^[^\s\p{Lu}\p{Lt}]{0,100}[\p{Lu}\p{Lt}]/u.test(title);
}

/** Returns whether a title is another one plus common words, which an instruction naming the other contains anyway. */
function isPaddedOut(title: string, other: string, text: string): boolean {
  if (!contains(title, other) || !isWrittenAsTitle(other)) return false;
  const at = title.toLowerCase().indexOf(other.toLowerCase());
  const padding = title.slice(0, at) + title.slice(at + other.length);
  if (/[\p{Lu}\p{Lt}\p{N}]/u.test(padding)) return false;
  return pointsAt(text, other, (place) => isOneAt(other, text, place), true);
}

/** Returns whether an occurrence of a title is part of a longer title there. */
function isPartOf(long: string, title: string, { text, at }: { text: string; at: number }): boolean {
  const [lower, wanted] = [long.toLowerCase(), title.toLowerCase()];
  for (let from = lower.indexOf(wanted); from !== -1; from = lower.indexOf(wanted, from + 1))
    if (
      text
        .slice(Math.max(0, at - from))
        .slice(0, long.length)
        .toLowerCase() === lower
    )
      return true;
  return false;
}

function isOneAt(title: string, text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
  const after = text.slice(at + title.length, at + title.length + MAX_BEHIND_CHARS);
  const noun_behind = NOUN_BEHIND.test(after);
  if (NOT_BEFORE.test(before) || !(noun_behind || NOT_GOING_ON.test(after))) return false;
  const words = wordsBefore(before.toLowerCase().replaceAll("’", "'"));
  const several = /\s/.test(title);
  if (noun_behind) return several ? !beginsSentence(title, before) : leadOf(words) === "the";
  return isBehindNoun(title, words, after) || (several && isLedTo(title, words, after));
}

/**
 * Returns whether the only capital of a title may be that of a sentence, which may also begin behind a target or a
 * flag.
 */
function beginsSentence(title: string, before: string): boolean {
  if (/\s\p{Lu}/u.test(title)) return false;
  const words = before.trimEnd();
  const last = words.slice(words.search(/(?<!\S)\S+$/));
  return before.slice(words.length).includes("\n") || last === "" || /^[@+#$*•>-]|[.!?:;…]$/.test(last);
}

/** Returns whether a noun precedes a title: `the page Weekly plan`, `a list called Weekly plan`. */
function isBehindNoun(title: string, words: string[], after: string): boolean {
  const [last = "", one = ""] = words.toReversed();
  if (CALLED.has(last)) return NOUNS.has(one);
  if (last.endsWith(":")) return NOUNS.has(last.slice(0, -1)) && ENDS.test(after);
  if (!NOUNS.has(last) || !(TOWARDS.has(one) || leadOf(words.slice(0, -1)) !== null)) return false;
  return ENDS.test(after) || (/\s/.test(title) && !isProper(title));
}

/** Returns whether words of direction precede a title: `to the Weekly plan`, `add it to Weekly plan`. */
function isLedTo(title: string, words: string[], after: string): boolean {
  const lead = leadOf(words);
  return lead === "the" || (lead === "name" && ENDS.test(after) && !isProper(title));
}

/** Returns whether a title is written like the name of a person, town or company. */
function isProper(title: string): boolean {
  return title.split(/\s+/).every((word) => /^[\p{Lu}\p{Lt}\p{N}]/u.test(word));
}

/** Returns how the last words announce a destination: with an article, or directly a name; null if they do not. */
function leadOf(words: string[]): "the" | "name" | null {
  const last = words.at(-1) ?? "";
  if (TOWARDS_THE.has(last)) return "the";
  const english = ENGLISH.has(last) || /\p{L}'s$/u.test(last);
  if (!english && !THE.has(last)) return hasVerb(words, FILING) ? "name" : null;
  return isTowards(words.slice(0, -1), english) ? "the" : null;
}

function isTowards(words: string[], english: boolean): boolean {
  const [last = "", one = ""] = words.toReversed();
  if (english && WITHIN.has(last)) return hasVerb(words, WRITING);
  return TOWARDS.has(last) || CHANGING.has(bareWord(last)) || (last === "of" && ENDS_OF.has(one));
}

/** Returns whether a verb precedes the preposition, with at most two words between. */
function hasVerb(words: string[], verbs: ReadonlySet<string>): boolean {
  const [last = "", ...before] = words.toReversed();
  const at = before.findIndex((word) => verbs.has(bareWord(word)));
  const between = before.slice(0, Math.max(0, at));
  return (
    (TOWARDS.has(last) || WITHIN.has(last)) &&
    at !== -1 &&
    at < 3 &&
    between.every((word) => !/[.,;:!?]$/.test(word))
  );
}
