import { member, parseJson } from "./foreign-json.ts";
import { headOf } from "./text-length.ts";

const MAX_QUOTED_CHARS = 300;
/**
 * How many times `max_chars` are read, so that enough remains once secrets are cut out, while the work stays bounded.
 */
const READ_FACTOR = 2;
const MAX_RAW_CHARS = 8_000;
/** The shortest secret that is looked for: shorter ones would also match ordinary words. */
const MIN_SECRET_CHARS = 4;
/** The shortest piece of a longer secret that counts as a part of it. */
const MIN_PART_CHARS = 8;
/** A key whose middle the provider replaced by stars or dots. */
const MASKED_WORD = /(?<!\S)\S*(?:\*{2,}|\.{3}|…|•{2,})\S*/gu;
const KEPT_ENDS_CHARS = 3;

/**
 * Returns the error message in the body of a provider's answer, whatever its JSON shape; for a web page only that it
 * was one.
 */
export function errorTextOf(body: string): string {
  const parsed = parseJson(body);
  if (parsed === undefined) {
    return /^\s*</.test(body) ? "(a web page instead of an answer)" : body;
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  const inner = member(first, "error") ?? first;
  const words = [inner, member(inner, "message"), member(inner, "detail")].find(
    (value) => typeof value === "string",
  );
  return typeof words === "string" ? words : JSON.stringify(inner ?? "");
}

/**
 * Returns text from outside as one short line, without the secrets it may repeat: whole, encoded, masked or in part.
 */
export function quote(text: string, secrets: string[], max_chars: number = MAX_QUOTED_CHARS): string {
  // Control characters and line breaks must not reach a log line or a sentence in a mail.
  const line = headOf(text, MAX_RAW_CHARS)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  const long = secrets.filter((secret) => secret.length >= MIN_SECRET_CHARS);
  const clean = hideParts(hideMasked(line.slice(0, READ_FACTOR * max_chars), long), long.flatMap(formsOf));
  return clean.length > max_chars ? `${clean.slice(0, max_chars - 1)}…` : clean;
}

/** Returns whether a text contains one of several secrets, in any case or encoding. */
export function containsSecret(text: string, secrets: string[]): boolean {
  // The search in bytes takes linear time, whatever is sought.
  const shown = Buffer.from(inLowerCase(text));
  return secrets.flatMap(formsOf).some((form) => shown.includes(inLowerCase(form)));
}

/** Returns whether a text contains a secret or a recognizable part of it. */
export function containsSecretPart(text: string, secret: string): boolean {
  return hideParts(text, formsOf(secret)) !== text;
}

/** Returns the encodings in which a secret may be written. */
function formsOf(secret: string): string[] {
  return [...new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])];
}

function hideMasked(text: string, secrets: string[]): string {
  return text.replace(MASKED_WORD, (word) => {
    const bare = word.replace(/^\W+|(?<!\W)\W+$/g, "");
    const [start, end] = [bare.slice(0, KEPT_ENDS_CHARS), bare.slice(-KEPT_ENDS_CHARS)];
    const shows = (secret: string): boolean =>
      bare.length >= KEPT_ENDS_CHARS && (secret.startsWith(start) || secret.endsWith(end));
    return secrets.some(shows) ? "[key]" : word;
  });
}

/** Hides each run of characters that a secret has as well. Takes time in proportion to the text and the secrets together. */
function hideParts(text: string, forms: string[]): string {
  const shown = inLowerCase(text);
  /** By place, how far a part of a secret goes that begins there. */
  const ends = new Map<number, number>();
  for (const [length, alike] of Map.groupBy(forms.map(inLowerCase), partChars)) {
    // Made of the secrets, because the text may be much longer.
    const pieces = new Set(alike.flatMap((form) => piecesOf(form, length)));
    for (let at = 0; at + length <= shown.length; at += 1)
      if (pieces.has(shown.slice(at, at + length))) ends.set(at, at + length);
  }
  let clean = "";
  let hidden_to = 0;
  for (let at = 0; at < text.length; at += 1) {
    const end = ends.get(at) ?? 0;
    if (end > at && hidden_to <= at) clean += "[key]";
    hidden_to = Math.max(hidden_to, end);
    if (hidden_to <= at) clean += text.charAt(at);
  }
  return clean;
}

/** The fewest characters of a secret that count as a part of it. */
function partChars(secret: string): number {
  return Math.min(MIN_PART_CHARS, secret.length);
}

/** All pieces of that many characters. */
function piecesOf(text: string, length: number): string[] {
  return Array.from({ length: Math.max(0, text.length - length + 1) }, (_, at) =>
    text.slice(at, at + length),
  );
}

/** Returns a text with ASCII letters in lower case, so that every character keeps its index. */
function inLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
