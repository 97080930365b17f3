import { normalForm } from "../../lib/normal-form.ts";
import { asciiHost } from "../../lib/web-address.ts";
import { withoutQuotes } from "../../lib/mail-address.ts";
import { withoutBlanks } from "./header-block.ts";

/**
 * An address in a form that can be compared: in lower case, its domain in A-labels. The name is as the sender wrote it.
 */
export interface Mailbox {
  address: string;
  name: string;
}

export type AddressList = { ok: true; mailboxes: Mailbox[]; groups: number } | { ok: false; problem: string };

const MAX_MAILBOXES = 1_000;
// RFC 5321 §4.5.3.1
const MAX_LOCAL_OCTETS = 64;
const MAX_ADDRESS_OCTETS = 254;
/**
 * Normalisation of Unicode takes time with the square of the number of marks on one letter, so the length is bounded.
 */
const MAX_WRITTEN_CHARS = 500;
const MAX_QUOTED_CHARS = 100;

/**
 * Parses an address list (RFC 5322 §3.4). Address literals, obsolete forms (routes, comments inside an address) and
 * quoted local parts are problems: no person's mail needs them, and two readers may see two senders in them. But people
 * do have local parts with dots at an end or side by side, written with or without quotes: both mean the same.
 */
export function parseAddressList(value: string): AddressList {
  const tokens = tokenize(value);
  if (typeof tokens === "string") return { ok: false, problem: tokens };
  const mailboxes: Mailbox[] = [];
  let groups = 0;
  let inGroup = false;
  for (const { words, end } of splitEntries(tokens)) {
    if (isMisplaced(end, words, inGroup)) return { ok: false, problem: `A "${end}" in it is out of place.` };
    inGroup = end === ":" || (inGroup && end === ",");
    if (end === ":") groups += 1;
    if (end === ":" || words.length === 0) continue;
    const mailbox = toMailbox(words);
    if (typeof mailbox === "string") return { ok: false, problem: mailbox };
    if (mailboxes.push(mailbox) > MAX_MAILBOXES)
      return { ok: false, problem: "It holds too many addresses." };
  }
  return { ok: true, mailboxes, groups };
}

/**
 * Returns whether a separator is out of place: a group is `name: addresses;`, and groups do not nest (RFC 5322 §3.4).
 */
function isMisplaced(end: string, words: Token[], inGroup: boolean): boolean {
  if (end === ":") return inGroup || words.length === 0 || has(words, "angle");
  return end === ";" && !inGroup;
}

interface Token {
  kind: "atom" | "quoted" | "angle" | "special";
  text: string;
}

// SP and HTAB alone: NBSP and others are letters to the syntax of mail, and white space to some readers.
const SPACE = /[ \t]+/y;
const SPECIAL = /[,:;]/y;
/** A quoted local part; which characters may be in the quotes is checked later. */
const QUOTED_LOCAL = /"[\w!#$%&'*+\-/=?^`{|}~.]+"@[^ \t,:;()<>"\\]+/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
const ANGLE = /<([^<>]*)>/y;
const ATOM = /[^ \t,:;()<>"\\]+/y;

/** Splits a value into tokens; comments count as white space. Returns a sentence if there is a problem. */
function tokenize(value: string): Token[] | string {
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(value);
    if (found) at = pattern.lastIndex;
    return found;
  };
  while (at < value.length) {
    let found: RegExpExecArray | null;
    if (take(SPACE)) continue;
    if (value.charAt(at) === "(") {
      at = endOfComment(value, at);
      if (at < 0) return "A comment in it is not closed.";
    } else if ((found = take(SPECIAL))) tokens.push({ kind: "special", text: found[0] });
    else if ((found = take(QUOTED_LOCAL))) tokens.push({ kind: "atom", text: found[0] });
    else if ((found = take(QUOTED))) {
      tokens.push({ kind: "quoted", text: (found[1] ?? "").replace(/\\(.)/g, "$1") });
    } else if ((found = take(ANGLE))) tokens.push({ kind: "angle", text: withoutBlanks(found[1] ?? "") });
    else if ((found = take(ATOM))) tokens.push({ kind: "atom", text: found[0] });
    else return `A ${JSON.stringify(value.charAt(at))} in it is out of place or not closed.`;
  }
  return tokens;
}

/** Returns where a comment ends; comments nest (RFC 5322 §3.2.2). Negative if it is not closed. */
function endOfComment(value: string, start: number): number {
  let depth = 0;
  for (let at = start; at < value.length; at++) {
    const char = value.charAt(at);
    if (char === "\\") at += 1;
    else if (char === "(") depth += 1;
    else if (char === ")" && --depth === 0) return at + 1;
  }
  return -1;
}

/**
 * Returns the runs of words between separators, each with the separator that ends it; the last run ends with a comma.
 */
function splitEntries(tokens: Token[]): { words: Token[]; end: string }[] {
  const entries: { words: Token[]; end: string }[] = [];
  let words: Token[] = [];
  for (const token of [...tokens, { kind: "special" as const, text: "," }]) {
    if (token.kind !== "special") words.push(token);
    else {
      entries.push({ words, end: token.text });
      words = [];
    }
  }
  return entries;
}

function has(words: Token[], kind: Token["kind"]): boolean {
  return words.some((word) => word.kind === kind);
}

/** Returns the mailbox that these words name, or a sentence about the problem with them. */
function toMailbox(words: Token[]): Mailbox | string {
  const phrase = words.slice(0, -1);
  const last = words.at(-1);
  if (has(phrase, "angle")) return "Something follows an address in angle brackets.";
  if (last?.kind !== "angle" && phrase.length > 0)
    return "An address stands beside other words without angle brackets.";
  const address = last && last.kind !== "quoted" ? normalizeAddress(last.text) : undefined;
  if (address === undefined)
    return `${JSON.stringify((last?.text ?? "").slice(0, MAX_QUOTED_CHARS))} is not a mail address of a domain name.`;
  const name = phrase.map((word) => word.text).join(" ");
  // Some readers take an unquoted name with an "@" for the address.
  const looksLikeAddress = phrase.some((word) => word.kind === "atom" && word.text.includes("@"));
  if (looksLikeAddress && normalizeAddress(name.replace(/^'|'$/g, "")) !== address) {
    return "The name before an address looks like another address.";
  }
  return { address, name };
}

// A dot-atom of RFC 5322 §3.2.3. This one is of the ASCII letters that nearly all addresses have, with dots wherever
// people have them.
const ASCII_LOCAL = /^\.*[\w!#$%&'*+\-/=?^`{|}~][\w!#$%&'*+\-/=?^`{|}~.]*$/;
// This one also has the letters of RFC 6532, but nothing invisible.
const DOT_ATOM =
  /^(?:[\w!#$%&'*+\-/=?^`{|}~]|(?![\p{C}\p{Z}])[^\0-\x7f])+(?:\.(?:[\w!#$%&'*+\-/=?^`{|}~]|(?![\p{C}\p{Z}])[^\0-\x7f])+)*$/u;
const ASCII = /^[\0-\x7f]*$/;
const DOMAIN_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

function normalizeAddress(written: string): string | undefined {
  if (written.length > MAX_WRITTEN_CHARS) return undefined;
  const text = withoutQuotes(written);
  const at = text.lastIndexOf("@");
  const given = text.slice(0, Math.max(at, 0));
  const local = normalForm("NFC", given).toLowerCase();
  // A letter that only looks like one of ASCII, such as the sign of Kelvin, would make another's address of it.
  if (ASCII.test(local) && !ASCII.test(given)) return undefined;
  const domain = normalizeDomain(text.slice(at + 1));
  if (domain === undefined || !(ASCII_LOCAL.test(local) || DOT_ATOM.test(local))) return undefined;
  const address = `${local}@${domain}`;
  const fits =
    Buffer.byteLength(local) <= MAX_LOCAL_OCTETS && Buffer.byteLength(address) <= MAX_ADDRESS_OCTETS;
  return fits ? address : undefined;
}

/** Returns a domain in lower case and A-labels; undefined for what is no domain name, such as an IP address. */
function normalizeDomain(text: string): string | undefined {
  const domain = (ASCII.test(text) ? text : asciiHost(text)).toLowerCase();
  const labels = domain.split(".");
  const valid = labels.every((label) => DOMAIN_LABEL.test(label)) && !/^\d+$/.test(labels.at(-1) ?? "");
  return valid ? domain : undefined;
}
