import { targetsIn } from "../../mail/writing/markdown.ts";
import { attributesIn } from "../shown/attributes.ts";
import { withoutEntities } from "./as-read.ts";
import { remembered } from "./remembered.ts";
import { stylesRead, targetsOfStyles } from "./styles.ts";
import { wordSet } from "./words.ts";

/** What programs find in a text that they show as HTML, Markdown or a style sheet. */
export interface Shown {
  /** Web addresses, and what else could be fetched, each as a whole and as a browser asks for it. */
  addresses: string[];
  /** Values as a browser reads them, where that is not as they stand in the text. */
  values: string[];
  /** Style sheets without their escapes, if they have any. */
  styles: string[];
  /** What runs by itself. */
  runs: string | undefined;
  /** What loads something from where nobody can tell. */
  hides: string | undefined;
  /** What lies in so much else that it was not read to its end. */
  unread: string | undefined;
}

/** Attributes whose value is fetched, or leads somewhere, whatever it looks like. */
const FETCHED = wordSet(
  "src srcset imagesrcset lowsrc dynsrc background poster data ping action formaction manifest codebase longdesc href base attributionsrc cite",
);
const LISTS = wordSet("srcset imagesrcset ping attributionsrc");
/** How an address begins that is one wherever it stands. */
const ABSOLUTE = /^(?:(?:https?|ftps?|wss?|file):|[/\\]{2,}[^\s/\\])/i;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;
/** What comes with the mail, or is no request to anybody. */
const OWN_SCHEME = /^(?:cid|mid|about|mailto|tel|sms|callto|xmpp|sips?):/i;
/** What a browser takes out of an address, and what it leaves out around it (WHATWG URL §4.4). */
const TAKEN_OUT = /[\t\n\r]/g;
const IS_TAKEN_OUT = /[\t\n\r]/;
/** What templates put something else in place of. */
const TEMPLATE = /\{[{%]|[$#]\{|<%/;
/** The beginning of what a page sends its reader on with. */
const REFRESH = /^[\s\d.]*[\d.][\s;,]+(?:url\s*=\s*)?["']?/i;
/** Sets in which letters stand for themselves: in others an escape or a foreign letter can swallow what stands beside it. */
const PLAIN_SET = /^(?:utf-?8|(?:us-)?ascii|latin-?[19]|iso-?8859-\d{1,2}|windows-125\d|cp125\d)$/i;
const CHARSET = /charset\s*=\s*["']?\s*([^\s"';]*)/i;
/** A handler of an event, and words that only look like one. */
const HANDLER = /^(?:[^\s:]*:)?on(?!(?:ly|ce|e|es|to|set|wards?|going|board|boarding|ion|ions|line)$)[a-z]+$/;
/** Without any of these a script does nothing. */
const DOES = /[(=`]/;
const SCRIPT = /<(?:[^\s<>/]*:)?script(?![\w-])/gi;
const EMPTY_SCRIPT = /^\s*<\//;
const TAG = /<[a-z!?/]/i;
/** A text without any of these shows nothing but itself. */
const SHOWN = /[<&\\]|\]\s*[(:]|\b(?:url|src)\(|@import|image-set/i;
/** Names of formats, which look like addresses and are never fetched. */
const NO_ADDRESS = /^xmlns(?::|$)|schemalocation$/;
const BLANKS = /[\t\n\f\r ]+/;
const MARKED_TARGET = /\]\s*[(:]/;
const SHOWN_CHARS = 80;
/** How much of values that lie in one another is read, beside the text itself, and how deep. */
const MAX_MORE = 4;
const MIN_READ_CHARS = 50_000;
const MAX_DEPTH = 4;

class Showing {
  readonly #text: string;
  readonly #addresses = new Set<string>();
  readonly #values = new Set<string>();
  readonly #styles = new Set<string>();
  #runs: string | undefined;
  #hides: string | undefined;
  #unread: string | undefined;
  #left: number;

  constructor(text: string) {
    this.#text = text;
    this.#left = Math.max(MIN_READ_CHARS, text.length * MAX_MORE);
  }

  shown(): Shown {
    if (SHOWN.test(this.#text)) {
      this.#read(this.#text, 0);
      if (TAG.test(this.#text)) this.#runsIn(this.#text);
      if (MARKED_TARGET.test(this.#text)) this.#readMarkdown();
    }
    return {
      addresses: [...this.#addresses],
      values: [...this.#values],
      styles: [...this.#styles],
      runs: this.#runs?.slice(0, SHOWN_CHARS),
      hides: this.#hides?.slice(0, SHOWN_CHARS),
      unread: this.#unread?.slice(0, SHOWN_CHARS),
    };
  }

  /** Reads a text, and what it is once its references are resolved: a program may do so before it shows it. */
  #read(text: string, depth: number): void {
    if (depth > MAX_DEPTH || !this.#mayRead(text)) return;
    if (TAG.test(text)) for (const { name, value } of attributesIn(text)) this.#readValue(name, value, depth);
    this.#readStyles(text);
    const read = withoutEntities(text);
    if (read === text) return;
    this.#addValue(read, withoutEntities(text.replaceAll(REFERENCE_OF_BLANK, "")));
    if (depth === MAX_DEPTH) this.#unread ??= text;
    this.#read(read, depth + 1);
  }

  #mayRead(text: string): boolean {
    this.#left -= text.length;
    if (this.#left < 0) this.#unread ??= text;
    return this.#left >= 0;
  }

  #readValue(name: string, written: string, depth: number): void {
    if (NO_ADDRESS.test(name) || !this.#mayRead(written)) return;
    const value = withoutEntities(written);
    const one_line = inAddress(value);
    const is_fetched = FETCHED.has(name.slice(name.lastIndexOf(":") + 1));
    this.#addValue(written, one_line);
    if (LISTS.has(name)) for (const item of value.split(BLANKS)) this.#addTarget(item.replace(/,$/, ""));
    else if (is_fetched || one_line !== written.trim()) this.#addTarget(one_line, is_fetched);
    if (name === "content") this.#readContent(one_line);
    if (name === "charset") this.#readSet(one_line);
    if (value === written) return;
    if (name === "srcdoc") this.#runsIn(value);
    if (value.includes("<")) this.#read(value, depth + 1);
    else this.#readStyles(value);
  }

  /** What a page says of itself: where its reader is sent, and in what set it is written. */
  #readContent(content: string): void {
    const refresh = REFRESH.exec(content)?.[0];
    if (refresh !== undefined)
      this.#addTarget(inAddress(content.slice(refresh.length).split(/["']/, 1)[0] ?? ""));
    this.#readSet(CHARSET.exec(content)?.[1] ?? "utf-8");
  }

  #readSet(set: string): void {
    // The name of a set ends at a quote, behind which the value of another attribute goes on.
    if (!PLAIN_SET.test(set.split(/["';]/, 1)[0] ?? "")) this.#hides ??= `charset=${set}`;
  }

  #readStyles(text: string): void {
    const read = text.includes("\\") ? stylesRead(text) : text;
    if (read !== text) this.#styles.add(read);
    for (const target of targetsOfStyles(read)) {
      if (!this.#mayRead(target)) return;
      this.#addTarget(inAddress(target));
    }
  }

  #readMarkdown(): void {
    for (const target of targetsIn(this.#text)) {
      const is_written = this.#text.includes(target) || this.#text.includes(decoded(target));
      if (!is_written && this.#mayRead(target)) this.#addTarget(inAddress(withoutEntities(target)));
    }
  }

  #addValue(written: string, read: string): void {
    if (read.trim() !== written.trim()) this.#values.add(read);
  }

  #addTarget(address: string, is_fetched = true): void {
    const leads = is_fetched && SCHEME.test(address) && !OWN_SCHEME.test(address);
    if (leads || ABSOLUTE.test(address)) this.#addresses.add(address);
    else if (is_fetched && TEMPLATE.test(address)) this.#hides ??= address;
  }

  /** Looks for what runs where a text is shown as it stands: code whose signs are written as references is only read. */
  #runsIn(text: string): void {
    for (const { name, value } of attributesIn(text)) {
      if (this.#runs !== undefined || !this.#mayRead(name)) return;
      if (HANDLER.test(name) && DOES.test(withoutEntities(value))) this.#runs = `${name}="${value}"`;
    }
    const closed = text.lastIndexOf("</");
    let content = -1;
    for (const { index } of text.matchAll(SCRIPT)) {
      if (content < index) content = text.indexOf(">", index);
      // A script that never ends is not run.
      if (content === -1 || content > closed) return;
      if (EMPTY_SCRIPT.test(text.slice(content + 1, content + SHOWN_CHARS))) continue;
      this.#runs ??= text.slice(index, index + SHOWN_CHARS);
      return;
    }
  }
}

/** Returns what programs find in a text once it is shown. */
export const shownIn = remembered((text): Shown => new Showing(text).shown());

/** References of what a browser takes out of an address. */
const REFERENCE_OF_BLANK = /&(?:#0*(?:9|10|13)(?!\d)|#x0*[9ad](?![0-9a-f])|Tab(?=;)|NewLine(?=;));?/gi;

/** Returns a value as a browser reads it where it is an address. */
function inAddress(value: string): string {
  const one_line = IS_TAKEN_OUT.test(value) ? value.replaceAll(TAKEN_OUT, "") : value;
  let [start, end] = [0, one_line.length];
  while (start < end && one_line.charCodeAt(start) <= 0x20) start += 1;
  while (end > start && one_line.charCodeAt(end - 1) <= 0x20) end -= 1;
  return one_line.slice(start, end);
}

function decoded(target: string): string {
  try {
    return decodeURI(target);
  } catch {
    return target;
  }
}
