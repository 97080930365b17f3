/** What may be markup, which a program takes out; a full stop, a comma and their like stay. */
const SIGN = /[^\p{L}\p{N}\s.,;!?]/u;
/** What a word of the grammar does not stand behind, and what does not stand behind one. */
const BEFORE = /[\p{L}\p{N}@+$-]/u;
const AFTER = /[\p{L}\p{N}-]/u;
const LETTER = /\p{L}/u;

/**
 * Returns the one of the orders that several texts make together, in whatever sequence and with whatever between them: a
 * program that makes a mail of them may put them where it likes, leave others out, and markup that begins in one text and
 * ends in another. Each text is given in all ways in which it may be read; undefined if they make none.
 */
export function orderInPieces(texts: readonly string[][], orders: readonly string[]): string | undefined {
  const readings = texts.map((forms) => [...new Set(forms.map(asLetters))]);
  return orders.find((order) => isMadeOf(order, readings));
}

function asLetters(text: string): string {
  return text
    .replaceAll(/[\u2013\u2014]/g, "--")
    .toLowerCase()
    .trim();
}

/** Whether a word begins in one of the texts, goes on in whole ones, and ends in another. */
function isMadeOf(word: string, texts: string[][]): boolean {
  return texts.some((forms, nth) => {
    const reached = new Set(forms.flatMap((form) => beginningsIn(form, word)));
    if (reached.size === 0) return false;
    const others = texts.toSpliced(nth, 1).flat();
    const pieces = others.filter((text) => text !== "" && text.length < word.length && word.includes(text));
    for (let at = 1; at < word.length; at += 1) {
      if (!reached.has(at)) continue;
      if (others.some((text) => isEndIn(text, word.slice(at)))) return true;
      for (const piece of pieces) if (word.startsWith(piece, at)) reached.add(at + piece.length);
    }
    return false;
  });
}

/** How many letters of a word stand where a text ends, or before what may be markup there. */
function beginningsIn(text: string, word: string): number[] {
  const lengths: number[] = [];
  const first = word.charAt(0);
  for (let from = text.indexOf(first); from !== -1; from = text.indexOf(first, from + 1)) {
    if (BEFORE.test(text.charAt(from - 1))) continue;
    let length = 1;
    while (length < word.length && text.charAt(from + length) === word.charAt(length)) length += 1;
    const next = text.charAt(from + length);
    const has_letter = LETTER.test(word.slice(0, length));
    if (next === "" || (has_letter && SIGN.test(next))) lengths.push(length);
  }
  return lengths;
}

/** Whether a text begins with the end of a word, or has it behind what may be markup. */
function isEndIn(text: string, end: string): boolean {
  for (let at = text.indexOf(end); at !== -1; at = text.indexOf(end, at + 1)) {
    const before = text.charAt(at - 1);
    const is_begun = before === "" || SIGN.test(before);
    if (is_begun && !AFTER.test(text.charAt(at + end.length))) return true;
  }
  return false;
}
