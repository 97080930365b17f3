import { isInsideAddress } from "./inside-address.ts";
import { isQuoted } from "./quoted.ts";
import { standsBetween } from "./stands-between.ts";
import type { Site } from "./tool.ts";
import { bareWord, wordsBefore, wordSet } from "./words.ts";

const MAX_BEFORE_CHARS = 200;
const MAX_BEHIND_CHARS = 30;
/** The part of a URL, or of a git address, before the repository's name. */
const URL_BEFORE = /(?:^|[^\w@.:/-])(?:https?:\/\/)?(?:www\.)?([a-z0-9.-]{1,100}(?::\d{1,5})?)\/$/;
const GIT_BEFORE = /git@([a-z0-9.-]{1,100}):$/;
/** What may follow the name in a URL: nothing but the pages that every project has. */
const URL_AFTER = /^(?:\.git)?(?![\w-]|\.\w)/;
const URL_AFTER_NESTED =
  /^(?:\.git)?\/?(?:(?![\w./-])|\.(?!\w)|(?<=\/)(?:-|issues|merge_requests|tree|blob|commits?|wikis)(?![\w-]))/;

/**
 * Returns whether a text names the repository `owner/name` (in lower case). The form alone is not enough, because many
 * pairs of words and beginnings of paths look like it.
 */
export function isNamedPath(id: string, trusted: string, site: Site | undefined): boolean {
  const inUrl = (at: number): boolean => {
    const before = trusted.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
    const [found, host] = URL_BEFORE.exec(before) ?? GIT_BEFORE.exec(before) ?? [];
    if (found === undefined || (site !== undefined && host !== site.host)) return false;
    return !isInsideAddress(trusted, at - found.trimStart().length);
  };
  const after = site?.nested === true ? URL_AFTER_NESTED : URL_AFTER;
  return (
    standsBetween(trusted, id, { before: /[^/:]/, after, accepts: inUrl }) ||
    standsBetween(trusted, id, {
      before: /[\w.@/\\-]/,
      after: /^(?![\w/\\-]|\.\w)/,
      accepts: (at) => !isInsideAddress(trusted, at) && isPointedAt(id, trusted, at),
    })
  );
}

// The words below are of the languages that most instructions are written in. Articles and prepositions alone name
// nothing: with them "about login/signup" would name a repository.

/** Nouns for a repository. */
const NOUNS = wordSet(
  "repo repos repository repositories repositorys project projects projekt projekte projekten repositorium dépôt dépôts depot projet projets repositorio repositorios proyecto proyectos repositório repositórios projeto projetos progetto progetti projecten",
);
const PLURALS = wordSet(
  "repos repositories repositorys projects projekte projekten dépôts projets repositorios proyectos repositórios projetos progetti projecten",
);
const CALLED = wordSet(
  "is are called named = : ist sind heißt heißen namens est sont s'appelle appelé es son llamado è sono chiamato é são chamado heet genaamd",
);
const AND = wordSet("and or und oder et ou y o e ed en of & + - * •");
const ITEM = /^[\w-][\w.-]{0,100}\/[\w./-]{1,150}$/;
/** A noun for a repository behind the name, or the number of an issue. */
const NOUN_BEHIND =
  /^(?:#\d|[\s-]{1,3}(?:repo|repository|project|projekt|(?:issue[\s-])?tracker|(?:issue|ticket|pr)\s#\d{1,10})(?![\p{L}\p{N}_/]))/u;

/** Nouns for what is filed in a repository, such as an issue. */
const ISSUES = wordSet(
  "issue issues ticket tickets pr prs request requests report vorgang anfrage demande incidencia solicitud segnalazione",
);
const NUMBER_NOUNS = wordSet("no. nr. no nr number nummer numéro numero número n° nº");
const FILING = wordSet(
  "file open create make add put post submit erstelle erstell lege leg öffne eröffne mach mache ouvre ouvrez ouvrir crée créez créer ajoute ajoutez abre abra abrir crea cree crear añade apri apra aprire creare cria crie criar maak",
);
const FILING_BEHIND = wordSet("anlegen erstellen eröffnen öffnen aufmachen an auf");
/**
 * Words that begin a new part of a sentence. Before any other word the pair could be an adjective: `in price/quantity
 * order`.
 */
const NEXT_PART = wordSet(
  "and or that which with without for about from as so please but if when where then to saying und oder mit ohne bitte dass für über als et ou avec pour que s'il y o con para por sobre e com per che en met voor over dat",
);
/** Pronouns and words for a mail as the object: `file this in acme/site`. */
const MATTER = wordSet(
  "it this that them these those all everything mail e-mail email mails message below above es das dies diese dieses ceci cela esto eso questo isso dit",
);
const MAILS = wordSet("mail e-mail email mails message nachricht");
/** Words that may stand between a verb and its object. */
const FILLERS = wordSet(
  "a an one two three another new separate short as each please me us bug pull merge ein eine einen neues neuen neue bitte mir uns dazu daraus davon hierzu als un une nouveau nouvelle una nuevo nueva nuovo nuova um uma novo nova een nieuw nieuwe",
);
const OBJECT: ReadonlySet<string> = new Set([...FILLERS, ...MATTER, ...ISSUES]);
/**
 * Articles that count only before a word for a mail. Anything else with a definite article may exist already and be
 * merely mentioned.
 */
const DEFINITE = wordSet("the my our his her der die das meine diese le la el il o a de het");
const INTO = wordSet("in into to at im dans en em no nel under unter");
const OF = wordSet("in of at on from von im aus de du dans en del di em do da van");

/** Returns whether the words around a name mark it as a repository. */
function isPointedAt(id: string, trusted: string, at: number): boolean {
  const end = at + id.length;
  const after = trusted.slice(end, end + MAX_BEHIND_CHARS);
  if (NOUN_BEHIND.test(after) || isQuoted(trusted, at, end)) return true;
  const start = Math.max(0, at - MAX_BEFORE_CHARS);
  const words = wordsBefore(trusted.slice(start, at));
  return (
    isBehindNoun(words) ||
    isListed(words) ||
    isNumbered(words) ||
    isFiledIn(words, after) ||
    isAllThatIsSaid(words, after)
  );
}

/**
 * Returns whether words end in a noun for a repository: `the repository`, `Repository:`, `GitHub-Projekt`, `repository
 * is`.
 */
function isBehindNoun(words: string[], nouns = NOUNS): boolean {
  const [last = "", one = ""] = words.toReversed();
  const noun = CALLED.has(last.replace(/(?<=.)[:=]$/, "")) ? one : last;
  return nouns.has(bareNoun(noun));
}

function bareNoun(word: string): string {
  const bare = bareWord(word).replace(/[:=]$/, "");
  return bare.slice(bare.lastIndexOf("-") + 1);
}

/** Returns whether words end in a list that begins with such a noun: `the repositories acme/app and`. */
function isListed(words: string[]): boolean {
  const head = words.findLastIndex((word) => !AND.has(word) && !ITEM.test(word.replace(/,$/, "")));
  const joined = AND.has(words.at(-1) ?? "") || words.at(-1)?.endsWith(",") === true;
  return joined && isBehindNoun(words.slice(0, head + 1), PLURALS);
}

/** Returns whether words end in the number of an issue and a preposition: `issue 12 in`, `#12 of`. */
function isNumbered(words: string[]): boolean {
  const [last = "", number = "", ...before] = words.toReversed();
  if (!OF.has(last)) return false;
  if (/^\(?#\d{1,10}\)?$/.test(number)) return true;
  const [one = "", two = ""] = before;
  return /^\d{1,10}$/.test(number) && ISSUES.has(NUMBER_NOUNS.has(one) ? two : one);
}

/** Returns whether words end in an order to file something: `file an issue in`, `open a ticket in`, `file this in`. */
function isFiledIn(words: string[], after: string): boolean {
  const [last = "", what = "", ...before] = words.toReversed();
  const issue = ISSUES.has(what);
  if (!INTO.has(last) || !(issue || MATTER.has(what))) return false;
  const next = nextWord(after);
  if (FILING_BEHIND.has(next)) return issue || isObjectOfFiling([what, ...before]);
  return (next === "" || NEXT_PART.has(next)) && isObjectOfFiling([what, ...before]);
}

/** Returns the word behind the name; empty at the end of a part of the sentence. */
function nextWord(after: string): string {
  return /^[>)\]*_]{0,5}\s{1,3}(\p{L}[^\s.,;:!?]{0,20})/u.exec(after)?.[1] ?? "";
}

/** Returns whether these words (the last one first) have a verb of filing with only its object behind it. */
function isObjectOfFiling(words: string[]): boolean {
  const verb = words.findIndex((word) => FILING.has(bareWord(word)));
  const isPart = (word: string, at: number): boolean =>
    OBJECT.has(word) || (DEFINITE.has(word) && MAILS.has(words[at - 1] ?? ""));
  return verb !== -1 && words.slice(0, verb).every(isPart);
}

/** Returns whether an instruction is only a target and the name: `@codehost-a acme/site`. */
function isAllThatIsSaid(words: string[], after: string): boolean {
  return /^@[\w:-]{1,130}$/.test(words.at(-1) ?? "") && /^[.\s]{0,5}(?:$|\n)/.test(after);
}
