/**
 * Returns which of some words stand in a text, in one pass over it, however many they are and whatever they have in common
 * (Aho and Corasick): a text of others must not be looked through once for each word.
 */
export function findWords(text: string, words: Iterable<string>): Set<string> {
  const found = new Set<string>();
  const { next, fail, ends } = machineOf(words);
  const seen = new Set<number>();
  let state = ROOT;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (state !== ROOT && !next.has(key(state, code))) state = fail[state] ?? ROOT;
    state = next.get(key(state, code)) ?? ROOT;
    // What ends here besides is behind the failure links, each of which is followed once.
    for (let end = state; end !== ROOT && !seen.has(end); end = fail[end] ?? ROOT) {
      seen.add(end);
      const word = ends.get(end);
      if (word !== undefined) found.add(word);
    }
  }
  return found;
}

const ROOT = 0;
const CODES = 65_536;

interface Machine {
  /** By state and code unit, the state that follows. */
  next: Map<number, number>;
  /** By state, that of the longest end of it which is the beginning of a word. */
  fail: number[];
  /** By state, the word that ends there. */
  ends: Map<number, string>;
}

function machineOf(words: Iterable<string>): Machine {
  const { next, ends, parents, codes, depths } = trieOf(words);
  const depthOf = (state: number): number => depths[state] ?? 0;
  const fail = parents.map(() => ROOT);
  const shortestFirst = parents.map((_, state) => state).toSorted((a, b) => depthOf(a) - depthOf(b));
  for (const state of shortestFirst) {
    if (depthOf(state) < 2) continue;
    const code = codes[state] ?? 0;
    let before = fail[parents[state] ?? ROOT] ?? ROOT;
    while (before !== ROOT && !next.has(key(before, code))) before = fail[before] ?? ROOT;
    fail[state] = next.get(key(before, code)) ?? ROOT;
  }
  return { next, fail, ends };
}

function trieOf(words: Iterable<string>) {
  const next = new Map<number, number>();
  const ends = new Map<number, string>();
  /** By state, the one before it, the code unit that leads from there, and how far it is from the root. */
  const [parents, codes, depths] = [[ROOT], [0], [0]];
  for (const word of words) {
    let state = ROOT;
    for (let at = 0; at < word.length; at++) {
      const code = word.charCodeAt(at);
      let following = next.get(key(state, code));
      if (following === undefined) {
        following = parents.push(state) - 1;
        codes.push(code);
        depths.push(at + 1);
        next.set(key(state, code), following);
      }
      state = following;
    }
    ends.set(state, word);
  }
  return { next, ends, parents, codes, depths };
}

function key(state: number, code: number): number {
  return state * CODES + code;
}
