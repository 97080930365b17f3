import { randomBytes } from "node:crypto";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";

const NONCE_BYTES = 16;
/** No mark of ours is longer; the bound keeps a text of nothing but beginnings of marks cheap. */
const MARK = /<<\s{0,10}(DATA|END)\b[^<>\n]{0,100}>>/gi;

/** Untrusted text between marks, and what was done to it. */
export interface Fenced {
  /** Empty if there was nothing to show. */
  text: string;
  /** Invisible characters taken out. */
  removed: number;
  /** Characters in the middle that were not shown. */
  left: number;
}

/** Makes the random word that the marks of one run carry, so that nothing in the material can pretend to be outside of it. */
export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString("hex");
}

/**
 * Puts untrusted text between marks for a model. Invisible characters are taken out, and of a long text only the head
 * and the tail are kept.
 */
export function fence(material: string, nonce: string, max_chars: number): Fenced {
  // The text is cut before it is cleaned, so that what nobody will see costs nothing.
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
