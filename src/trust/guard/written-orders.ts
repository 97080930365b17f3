import type { Going, Objection } from "./guard.ts";
import { asRead } from "./as-read.ts";
import { withoutAsides, withoutTemplateMarks } from "./asides.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { orderInPieces } from "./order-pieces.ts";
import { togetherIn } from "./packed/together.ts";
import { mayBeProse } from "./prose.ts";

/** Commands as the grammar defines them, also with two dashes changed by a mail program. */
const TOKEN =
  /(?<![\p{L}\p{N}_.@+$-])(?:@[a-z][a-z0-9_-]{0,63}(?::[a-z][a-z0-9_-]{0,63})?|[$+][a-z][a-z0-9-]{0,63}|(?:--|[\u2013\u2014])[a-z][a-z-]{0,40})/giu;
/** A word with a sign before it, in a text of letters, digits and such signs alone. */
const BARE_TOKEN =
  /(?<![\p{L}\p{N}@+$-])(?:[@$+]|--|[\u2013\u2014])[a-z][a-z0-9-]{0,130}(?![\p{L}\p{N}-])/giu;
/** What a word of the grammar is not made of: marks between its letters are markup, which a program takes out. */
const NO_LETTERS = /[^\p{L}\p{N}\s@+$\u2013\u2014-]/gu;
const TAG = /<[^<>]*>/g;
/** An element with its words, which a sheet of style, or its name, may hide. */
const ELEMENT = /<[a-z][^<>]*>[^<>]*<\/[a-z][a-z0-9]*\s*>/gi;
/** How deep such elements may be in each other. */
const DEPTH = 3;
const COMMENT_BEGINS = "<!--";
const COMMENT_ENDS = "-->";
/** Where a link leads in Markdown by a name, and inserted text there. */
const LEADS = /\]\[[^[\]\n]*\]|\+\+/g;
/** Where a link begins to lead somewhere. */
const LEADS_TO = "](";
/** What a template, or a program of another markup, takes for its own. */
const ASIDE = /\{[^{}]*\}|\[[^[\]]*\]/g;
/** What switches between sets of letters, and is none (ISO 2022). */
// oxlint-disable-next-line no-control-regex -- that is how it begins.
const SWITCH = /\u001b[ -/]*[0-~]/g;
/** An encoded character, and a line that goes on, in quoted-printable (RFC 2045 §6.7). */
const QUOTED_PRINTABLE = /=(?:[ \t]*\r?\n|([0-9a-f]{2}))/gi;

/** The word that ends a schedule, as the first line of an answer to one of its mails. */
export const STOP = "stop";
const STOP_LINE = /^\W{0,3}stop\W{0,3}$/i;

/** Whether the first line of a text is the word that ends a schedule. */
export function beginsWithStop(text: string): boolean {
  const [first = ""] = text.trim().split("\n", 1);
  return STOP_LINE.test(first.trim());
}

const MEANT = "Write that word into what you ask for if it is meant as text.";
/** What a listed sender asks for, or an API key, makes no order theirs that would be the owner's. */
const OTHERS_MEANT = "If it is meant as text, the owner of the inbox may ask for it, by a mail or signed in.";

/**
 * Returns the objection to words in a call that would give an order, should they come back in a mail. Texts that stand
 * `apart`, such as readings of one text, make none together.
 */
export function objectionToOrder(
  {
    tool: { name },
    args,
    unseen,
    by_owner,
    orders,
  }: Pick<Going, "args" | "unseen" | "by_owner" | "orders"> & {
    tool: Pick<Going["tool"], "name">;
  },
  { apart = false } = {},
): Objection | null {
  const order = unseen ? commandIn(args, orders, { apart }) : undefined;
  if (order === undefined) return null;
  const reason = `${name} was to write \`${order}\`, which is an order in a mail of yours: should the text come back here in your name, as an answer to a mail of this server does, it would be carried out. ${by_owner ? MEANT : OTHERS_MEANT}`;
  return { reason, lacks: null, unseen: true };
}

/**
 * Returns a word in a tool's arguments that would be a command (`@office`, `--allow-destructive`) in a mail from the
 * owner; undefined if there is none. A tool that replies to a mail by its id may reply to one from this server, and its
 * reply comes from the owner's own address and mail server.
 */
export function commandIn(
  args: Record<string, unknown>,
  orders: string[],
  { apart = false } = {},
): string | undefined {
  if (orders.length === 0) return undefined;
  const known: Known = {
    whole: new Set(orders),
    bare: new Map(orders.map((order) => [order.replaceAll(NO_LETTERS, ""), order])),
  };
  const each = [...textsIn(args)].flatMap((given) =>
    given === TOO_MUCH || typeof given.value !== "string" ? [] : [{ key: given.key, text: given.value }],
  );
  const pieces: string[][] = [];
  for (const { key, text } of each) {
    const forms = [asRead(text), ...formsOf(text)];
    const order = orderIn(forms, key, known);
    if (order !== undefined) return order;
    pieces.push(forms.map(asRead));
  }
  if (apart) return undefined;
  for (const { key, text } of togetherIn(args)) {
    const order = orderIn([asRead(text), ...formsOf(text)], key, known);
    if (order !== undefined) return order;
  }
  const of_words = orders.filter((order) => order !== STOP);
  return orderInPieces(pieces, of_words);
}

interface Known {
  whole: ReadonlySet<string>;
  /** By their letters alone. */
  bare: ReadonlyMap<string, string>;
}

/** Returns the order in a text; `forms` are the ways in which it may be read, the plain one first. */
function orderIn(forms: string[], key: string, { whole, bare }: Known): string | undefined {
  if (whole.has(STOP) && mayBeProse(key) && forms.some(beginsWithStop)) return STOP;
  const [read = "", ...others] = forms;
  const found = wordsOf(read, TOKEN).find((word) => whole.has(word));
  if (found !== undefined) return found;
  for (const form of others) {
    // What stands behind the name of a flag is no part of it.
    const letters = asRead(form).replaceAll("=", " ").replaceAll(NO_LETTERS, "");
    const word = wordsOf(letters, BARE_TOKEN).find((one) => bare.has(one));
    if (word !== undefined) return bare.get(word);
  }
  return undefined;
}

/** Returns those of the orders that a text does not have as words of their own: `@gmail` is none in `bob@gmail.com`. */
export function ordersNotIn(text: string, orders: string[]): string[] {
  const words = new Set(wordsOf(text, TOKEN));
  return orders.filter((order) => !words.has(order) && !(order === STOP && /\bstop\b/i.test(text)));
}

function wordsOf(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([word]) => word.toLowerCase().replace(/^[\u2013\u2014]/, "--"));
}

/**
 * A text as those may pass it on who send it as a mail: as HTML it is shown without its tags, comments and hidden parts,
 * as Markdown or a template without its marks.
 */
function formsOf(text: string): string[] {
  const forms = [text, ...withoutElements(text)];
  const encoded = text.replaceAll(QUOTED_PRINTABLE, (_whole, hex?: string) =>
    hex === undefined ? "" : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  if (encoded !== text) forms.push(encoded);
  if (text.includes("\u001b")) forms.push(text.replaceAll(SWITCH, ""));
  const all = forms.flatMap((form) => {
    const shown = withoutTargets(form).replaceAll(LEADS, "");
    return [form, shown, ...withoutTemplateMarks(form)].flatMap((one) => [
      one,
      one.replaceAll(ASIDE, ""),
      withoutAsides(one),
    ]);
  });
  return [...new Set(all)];
}

/** A text without what stands between brackets behind the words of a link, with brackets in it or without. */
function withoutTargets(text: string): string {
  if (!text.includes(LEADS_TO)) return text;
  const ends = endsOfBrackets(text);
  const kept: string[] = [];
  let from = 0;
  for (let at = text.indexOf(LEADS_TO); at !== -1; at = text.indexOf(LEADS_TO, from)) {
    const end = ends.get(at + 1);
    kept.push(text.slice(from, end === undefined ? at + LEADS_TO.length : at));
    from = end ?? at + LEADS_TO.length;
  }
  return kept.join("") + text.slice(from);
}

/** Where each bracket is closed that is closed in its line. */
function endsOfBrackets(text: string): Map<number, number> {
  const ends = new Map<number, number>();
  let open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (sign === "\n") open = [];
    else if (sign === "(") open.push(at);
    else if (sign === ")") {
      const start = open.pop();
      if (start !== undefined) ends.set(start, at + 1);
    }
  }
  return ends;
}

/** A text without tags, then without the innermost elements as well, and so on. */
function withoutElements(text: string): string[] {
  const forms = [withoutComments(text)];
  for (let depth = 0; depth < DEPTH; depth += 1) forms.push(forms[depth]?.replaceAll(ELEMENT, "") ?? "");
  return forms.map((form) => form.replaceAll(TAG, ""));
}

/** A text as the simplest programs take comments out. */
function withoutComments(text: string): string {
  const [before = "", ...more] = text.split(COMMENT_BEGINS);
  const rest = more.map((part) => {
    const end = part.indexOf(COMMENT_ENDS);
    return end === -1 ? part : part.slice(end + COMMENT_ENDS.length);
  });
  return [before, ...rest].join("");
}
