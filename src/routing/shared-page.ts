import { isPublicName } from "../mail/domain-owner.ts";
import { lettersOf } from "./given-subject.ts";

/** Nobody types a longer order; to look through what is pasted would take long. */
const MAX_CHARS = 6_000;
/** A longer name is none. */
const MAX_HOST_CHARS = 300;
const WEB_ADDRESS =
  /^[<([{"']{0,3}(?:[a-z][a-z0-9+.-]{0,20}:\/\/|www\.|(?:geo|magnet|spotify|intent|market|content|matrix|urn|doi|data):\S)/i;
/** What a program writes out that shares a page; in a signature people leave `https://` away. */
const WITH_SCHEME = /^[<([{"']{0,3}[a-z][a-z0-9+.-]{0,20}:/i;
/** A greeting, or the word before an address; in fewer bytes there is no order. */
const MAX_FEW_BYTES = 5;
/** Where an address begins that is glued to a word, as in scripts without spaces. */
const GLUED = /(?:https?:\/\/|www\.)/i;
const MAX_LINE_CHARS = 200;
/** What an app adds below the page that it shares; the lines of mail programs are cut away as signatures before. */
const APP_LINE =
  /^[^\p{L}\p{N}]{0,5}(?:(?:sent|shared|posted|published|saved|clipped) (?:via|from|with|using|by|through|in|on) |via |(?:download|get|install|try) (?:the |our |my )?.{1,40} (?:app|for (?:ios|iphone|ipad|android|mac|windows))\b|(?:geteilt|gesendet|verschickt|empfohlen) (?:über|mit|mithilfe|von|via|aus|durch|in) |(?:partagé|envoyé)e? (?:via|depuis|avec|par|à|de) |(?:compartid|enviad)[oa] (?:desde|con|mediante|por|vía|via|a través) |(?:condivis|inviat)[oa] (?:da|dal|con|tramite|via) |compartilhad[oa] (?:via|de|do|da|com|por|pelo) |(?:gedeeld|verzonden) (?:via|met|vanaf|vanuit) |(?:delat|delt|skickat|sendt|jaettu) |udostępnion[oeay] |(?:sdíleno|zdieľané|odesláno) |(?:отправлено|опубликовано|поделились) |надіслано |paylaşıldı|分享自|分享来自|分享來自|来自|來自|(?:.{1,40})(?:から共有|より共有|からの共有|で共有|에서 공유|ile paylaşıldı|üzerinden paylaşıldı))/iu;
/** `via @eve`, `#lunch`. */
const ACCOUNT = /^(?:via|by|[@#][\p{L}\p{N}_]{1,50})$/iu;
/** Quotation marks and what else parts a title from its author, its publisher or its place. */
const PARTED = /[\n"“”„«»‹›「」『』()[\]|·•:：]|\s[-–—]{1,3}\s/u;
const QUOTES = '"“”„«»‹›「」『』‘’';

interface Word {
  text: string;
  /** Whether it is a web address; `booking.com` is one as well. */
  address: boolean;
  /** Whether it leads to a page in a sentence too, where the bare name of a site, or of a file (`notes.md`), does not. */
  link: boolean;
}

/** The text of a mail, by its lines and their words; of a long one its end. */
export interface SharedText {
  text: string;
  whole: boolean;
  all: Word[][];
  /** Without what an app added at the end, and without empty lines. */
  lines: Word[][];
}

/** Takes a text apart once for all that is asked of it. */
export function readShared(text: string): SharedText {
  const whole = text.length <= MAX_CHARS;
  const all = text.slice(-MAX_CHARS).split("\n").map(wordsIn);
  const lines = all.filter((line) => line.some(hasLetters));
  while (lines.length > 1 && isAppLine(lines.at(-1) ?? [])) lines.pop();
  const last = lines.pop() ?? [];
  const end = last.findLastIndex((word) => !ACCOUNT.test(word.text) && hasLetters(word));
  return { text, whole, all, lines: [...lines, last.slice(0, end + 1)] };
}

/**
 * The address of a page in a text that holds nothing else but addresses and a title, or a quote, of that page: a phone or
 * a browser shared it, and title and quote, with the addresses in them, are its author's. Null where there is more, or no
 * address.
 */
export function sharedPage(sharing: SharedText, subject: string): string | null {
  const { whole, lines } = sharing;
  if (!whole) return null;
  const page = pageIn(sharing);
  if (page === "" || namesTarget(sharing, subject)) return null;
  const title = titleIn(lines);
  const given =
    lettersOf(subject).includes(lettersOf(title)) ||
    (endsInAddress(lines) && (isQuote(title) || isTitled(title, subject)));
  return given ? page : null;
}

/**
 * The address that a program writes which shares a page: the last one on a line of its own, else the last at the end of a
 * line, else the last of all. Whoever wrote the page may have put any number of others above it. Empty where there is none.
 */
function pageIn({ lines }: SharedText): string {
  const alone = lines.filter(isBare).flat();
  const page =
    alone.findLast(({ text }) => WITH_SCHEME.test(text)) ??
    addressesIn(headOf(lines)).at(-1) ??
    addressesIn(lines).at(-1);
  return page?.text ?? "";
}

function addressesIn(lines: Word[][]): Word[] {
  return lines.flat().filter(({ address }) => address);
}

/**
 * Whether a text could be what a program wrote that shares a page: it ends in a web address, is hardly anything but
 * addresses, has the subject, other words or more addresses above one (below it may stand a signature), or is longer than
 * what is looked through.
 */
export function mayShare(sharing: SharedText, subject: string): boolean {
  return !sharing.whole || looksShared(sharing, subject);
}

/** Whether what is looked through of a text, which may not be all of a long one, could be that. */
export function looksShared({ lines }: SharedText, subject: string): boolean {
  if (endsInAddress(lines) || isMostlyAddresses(lines)) return true;
  const head = headOf(lines);
  const above = titleIn(head);
  if (addressesIn(head).length > 1) return true;
  if (head.length > 0 && saysMore(above === "" ? subject : above.replace(/^@\S+/, ""))) return true;
  const last = lines.findLastIndex((line) => isBare(line) || line.some(({ link }) => link));
  return isTitled(titleIn(lines.slice(0, last + 1)), subject);
}

/**
 * Whether the subject of a mail with this text could be the title of a page: a web address stands alone at the top, or
 * at the end of a line. What is below it does not matter, since it may be a signature.
 */
export function maySubjectBeTitle({ lines }: SharedText, subject: string): boolean {
  return headOf(lines).length > 0 && saysMore(subject);
}

/** The lines to the last one that ends as those do that a program writes which shares a page. */
function headOf(lines: Word[][]): Word[][] {
  const last = lines.findLastIndex((line, index) => (index === 0 && isBare(line)) || endsInPage(line));
  return lines.slice(0, last + 1);
}

/** What an account or an app adds behind the address does not count. */
function endsInPage(line: Word[]): boolean {
  const at = line.findLastIndex(({ text }) => WITH_SCHEME.test(text) && WEB_ADDRESS.test(text));
  const behind = line.slice(at + 1);
  const isAdded = (word: Word): boolean => !hasLetters(word) || ACCOUNT.test(word.text);
  return at !== -1 && (behind.every(isAdded) || isAppLine(behind));
}

function saysMore(words: string): boolean {
  return Buffer.byteLength(lettersOf(words)) > MAX_FEW_BYTES;
}

/**
 * What of a mail is surely its author's: its text, of one that may share a page (`apart`) its end, and a subject alone
 * where it is no file's title. `page` has the addresses that are named by sharing them: that of the page, and the last one,
 * which may stand in words below.
 */
export function sureIn(
  sharing: SharedText,
  { apart, subject, files }: { apart: boolean; subject: string; files: number },
): { sure: string; page: string } {
  if (!apart) return { sure: sharing.text || (files === 0 ? subject : ""), page: "" };
  const last = addressesIn(sharing.all).at(-1)?.text ?? "";
  return { sure: behindAddress(sharing), page: [...new Set([pageIn(sharing), last])].join("\n") };
}

/** What stands behind the last web address of a text, as its end: no program that shares a page writes there. */
export function behindAddress({ text, all }: SharedText): string {
  const last = addressesIn(all).at(-1)?.text;
  if (last === undefined) return text.slice(-MAX_CHARS);
  return text.slice(text.lastIndexOf(last) + last.length);
}

/**
 * Whether a target stands apart from what a program may have written: alone on the first line, or before addresses only.
 * A post begins with the name of an account often enough, and its author may have chosen that of a target.
 */
export function hasTargetApart({ text, whole, lines }: SharedText, subject: string): boolean {
  // Where the subject goes on as the text does, both may be the title of a page.
  if (/^@\S+\s/.test(subject) && lettersOf(titleIn(lines)).startsWith(lettersOf(subject))) return false;
  const end = text.indexOf("\n");
  if (end !== -1 && isTargetAlone(wordsIn(text.slice(0, end)))) return true;
  return whole && isTargetAlone(lines.flat().filter(({ address }) => !address));
}

const TARGET = /^@[a-z][\w:-]{0,128}[.,;:!?)]{0,3}$/i;
const FLAG = /^(?:--|[\u2013\u2014+])[a-z]/i;

function isTargetAlone([first, ...more]: Word[]): boolean {
  return first !== undefined && TARGET.test(first.text) && more.every(({ text }) => FLAG.test(text));
}

/** Whether the author of the mail put a target before what was shared; in the subject it may be the page's. */
function namesTarget(sharing: SharedText, subject: string): boolean {
  const target = /^@[a-z][\w:-]{0,128}/i.exec(sharing.text)?.[0].toLowerCase();
  return target !== undefined && !subject.toLowerCase().includes(target) && hasTargetApart(sharing, subject);
}

function isAppLine(line: Word[]): boolean {
  const text = textOf(line, " ");
  return text.length <= MAX_LINE_CHARS && !line.some(({ link }) => link) && APP_LINE.test(text);
}

function wordsIn(line: string): Word[] {
  const words = line.split(/\s+/).filter((word) => word !== "");
  return words.flatMap((word) => {
    const at = WEB_ADDRESS.test(word) ? 0 : word.search(GLUED);
    return at > 0 ? [wordOf(word.slice(0, at)), wordOf(word.slice(at))] : [wordOf(word)];
  });
}

function wordOf(text: string): Word {
  if (WEB_ADDRESS.test(text)) return { text, address: true, link: true };
  const start = text.slice(0, MAX_HOST_CHARS);
  const [place = ""] = start.split(/[/?#]/, 1);
  const [host = ""] = place.split(":", 1);
  const address = !place.includes("@") && /\.\p{L}/u.test(host) && isPublicName(host);
  return { text, address, link: address && (place !== start || host.split(".").length > 2) };
}

function hasLetters({ text }: Word): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

function textOf(words: Word[], between: string): string {
  return words.map(({ text }) => text).join(between);
}

/** Whether a line is nothing else, as nobody writes an address in a sentence. */
function isBare(line: Word[]): boolean {
  return line.length > 0 && line.every(({ address }) => address);
}

function endsInAddress(lines: Word[][]): boolean {
  const last = lines.at(-1) ?? [];
  return isBare(last) || last.at(-1)?.link === true;
}

/** Half of the words, or half of all letters where one stands on a line of its own. */
function isMostlyAddresses(lines: Word[][]): boolean {
  const links = lines.flatMap((line) => (isBare(line) ? line : line.filter(({ link }) => link)));
  if (links.length === 0) return false;
  const words = lines.flat();
  const chars = (some: Word[]): number => textOf(some, "").length;
  return links.length * 2 >= words.length || (lines.some(isBare) && chars(links) * 2 >= chars(words));
}

/** All words but addresses. */
function titleIn(lines: Word[][]): string {
  const titles = lines.map((line) =>
    textOf(
      line.filter(({ address }) => !address),
      " ",
    ),
  );
  return titles.filter((title) => title !== "").join("\n");
}

function isQuote(text: string): boolean {
  return text.length > 1 && QUOTES.includes(text.charAt(0)) && QUOTES.includes(text.slice(-1));
}

/**
 * Whether a text is a subject, perhaps without its last part, and beside it no more than an author, a publisher or a
 * street. A text that begins with a target has its author's own words next, unless the title does so itself.
 */
function isTitled(text: string, subject: string): boolean {
  const size = lettersOf(text).length;
  const parts = partsOf(subject);
  return [parts, parts.slice(0, -1)].some((title) => {
    if (title.length === 0 || title.join("").length * 2 < size) return false;
    const at = `\n${partsOf(text).join("\n")}\n`.indexOf(`\n${title.join("\n")}\n`);
    return text.startsWith("@") ? at === 0 : at !== -1;
  });
}

function partsOf(text: string): string[] {
  return text
    .split(PARTED)
    .map(lettersOf)
    .filter((part) => part !== "");
}
