/**
 * Matches six digits as mails and people write them, also right behind a character that is escaped for an address, JSON
 * or quoted-printable (`%20123456`).
 */
const SIX_DIGITS =
  /(?:(?<!\d)|(?<=[%=][\dA-F]{2})|(?<=\\x[\dA-F]{2})|(?<=\\u[\dA-F]{4}))\d{3}[ \u00a0-]?\d{3}(?!\d)/gi;
/** Different numbers that are compared with the code for one answer of a tool. */
const MAX_COMPARED = 5_000;
/** Matches base64 and base64url (RFC 4648 §4, §5), also in the lines of a mail (RFC 2045 §6.8). */
const BASE64 = /[\w+/-]{8,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]{8,})*={0,2}/g;
/** A mail within a mail may be packed as often. */
const MAX_DEPTH = 3;
const STRUCK = "[sign-in code left out: it does not count any more]";

export interface NumbersFound {
  numbers: string[];
  /** By text, whether all its numbers are among them. */
  whole: boolean[];
}

/** Returns the numbers in some texts that may be a code; those of a text with too many are not among them. */
export function numbersToCompare(texts: string[]): NumbersFound {
  let all: ReadonlySet<string> = new Set<string>();
  const whole = texts.map((text) => {
    const more = all.union(numbersIn(text));
    if (more.size > MAX_COMPARED) return false;
    all = more;
    return true;
  });
  return { numbers: [...all], whole };
}

/** The numbers in a text that may be a code, as it is and as programs unpack it. */
function numbersIn(text: string, depth = 0, numbers = new Set<string>()): Set<string> {
  for (const [written] of text.matchAll(SIX_DIGITS)) {
    if (numbers.size > MAX_COMPARED) return numbers;
    numbers.add(digitsOf(written));
  }
  if (depth < MAX_DEPTH)
    for (const [packed] of text.matchAll(BASE64))
      for (const unpacked of unpackedFrom(packed)) numbersIn(unpacked, depth + 1, numbers);
  return numbers;
}

/** Returns a text with a mark wherever the code stands in it. */
export function struckOut(text: string, code: string): string {
  const struck = text.replaceAll(SIX_DIGITS, (written) => (digitsOf(written) === code ? STRUCK : written));
  return struck.replaceAll(BASE64, (packed) =>
    unpackedFrom(packed).some((unpacked) => numbersIn(unpacked, 1).has(code)) ? STRUCK : packed,
  );
}

/** A word may stand right before base64, so that it can begin at each of four letters. */
function unpackedFrom(packed: string): string[] {
  const signs = packed.replaceAll(/[^\w+/-]/g, "");
  return [0, 1, 2, 3].map((at) => Buffer.from(signs.slice(at), "base64").toString("latin1"));
}

function digitsOf(written: string): string {
  return written.replaceAll(/\D/g, "");
}
