import { normalForm } from "../../lib/normal-form.ts";
import { asRead } from "./as-read.ts";

/** How much of an address is shown before its `@`. */
const MAX_SHOWN_CHARS = 64;
const BLANK = /\s/;
/** What a name before an `@` may end with. */
const LOCAL_END = /[\p{L}\p{N}_%+"'!#$&*/=?^`{|}~.-]/u;
const GOES_ON = /^\.?[\p{L}\p{N}_-]/u;

/**
 * Returns an address at one of these domains that a text has for mail programs alone: they skip blanks and comments around an `@` and
 * around the dots behind it (RFC 5322 §4.4), so that it looks like none.
 */
export function hiddenOwnIn(text: string, own_domains: string[]): string | undefined {
  if (own_domains.length === 0) return undefined;
  const read = normalForm("NFC", asRead(text));
  if (!read.includes("@")) return undefined;
  for (const form of new Set([text, read, ...withoutComments(text), ...withoutComments(read)]))
    for (let at = form.indexOf("@"); at !== -1; at = form.indexOf("@", at + 1))
      for (const domain of own_domains)
        if (hasName(form, at) && hasDomain(form, at + 1, domain))
          return `${form
            .slice(Math.max(0, at - MAX_SHOWN_CHARS), at)
            .trimEnd()
            .split(BLANK)
            .at(-1)}@${domain}`;
  return undefined;
}

function hasName(text: string, at: number): boolean {
  let end = at;
  while (end > 0 && BLANK.test(text.charAt(end - 1))) end -= 1;
  return LOCAL_END.test(text.charAt(end - 1));
}

/** Whether a domain stands at a place, with blanks before it and around its dots. */
function hasDomain(text: string, from: number, domain: string): boolean {
  let at = afterBlanks(text, from);
  for (const sign of domain) {
    if (sign === ".") at = afterBlanks(text, at);
    if (text.charAt(at).toLowerCase() !== sign) return false;
    at = sign === "." ? afterBlanks(text, at + 1) : at + 1;
  }
  return !GOES_ON.test(text.slice(at, at + 2));
}

function afterBlanks(text: string, from: number): number {
  let at = from;
  while (BLANK.test(text.charAt(at))) at += 1;
  return at;
}

/** A text without what is between brackets, in which a backslash may stand before one that counts for none, or may be a sign like any other. */
function withoutComments(text: string): string[] {
  if (!text.includes("(")) return [];
  return text.includes("\\") ? [outsideOf(text, true), outsideOf(text, false)] : [outsideOf(text, false)];
}

function outsideOf(text: string, escapes: boolean): string {
  /** Where each open bracket stands in what is kept. */
  const open: number[] = [];
  const kept: string[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (sign === ")" && open.length > 0) {
      kept.length = open.pop() ?? 0;
      continue;
    }
    if (sign === "(") open.push(kept.length);
    kept.push(sign);
    if (escapes && sign === "\\") kept.push(text.charAt((at += 1)));
  }
  return kept.join("");
}
