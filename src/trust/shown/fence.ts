import { randomBytes } from "node:crypto";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";

const NONCE_BYTES = 16;
/** Matches our marks; the bound keeps a hostile text of many beginnings cheap. */
const MARK = /<<\s{0,10}(DATA|END)\b[^<>\n]{0,100}>>/gi;

/** Untrusted text between marks, with what was removed from it. */
export interface Fenced {
  /** Empty if there was nothing to show. */
  text: string;
  /** How many invisible characters were removed. */
  removed: number;
  /** How many characters in the middle were left out. */
  left: number;
}

/** Returns the random word (nonce) in the marks of one run, so that no text inside can fake an end mark. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString("hex");
}

/**
 * Puts untrusted text between marks for a model. Removes invisible characters, and keeps only the head and tail of a
 * long text.
 */
export function fence(material: string, nonce: string, max_chars: number): Fenced {
  // Cuts before cleaning, so that text which is not shown costs nothing.
  const { text, left } = headAndTail(material, max_chars);
  const visible = stripHiddenCharacters(text);
  const clean = visible.text.replaceAll(nonce, "").replaceAll(MARK, "[mark removed]");
  const fenced = clean === "" ? "" : `<<DATA ${nonce}>>\n${clean}\n<<END ${nonce}>>`;
  return { text: fenced, removed: visible.removed, left };
}

function headAndTail(text: string, max_chars: number): { text: string; left: number } {
  const left = text.length - max_chars;
  if (left <= 0) return { text, left: 0 };
  const half = Math.floor(max_chars / 2);
  const tail = text.slice(text.length - half);
  return { text: `${text.slice(0, half)}\n[… ${left} characters left out …]\n${tail}`, left };
}
