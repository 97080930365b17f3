/** A pattern that is refused as it stands, and the proof that it does no harm there. */
export interface Exception {
  file: string;
  /** What it begins with, so much that no other of the file begins so. */
  source: string;
  why: string;
}

export const EXCEPTIONS: Exception[] = [
  {
    file: "src/resources/conversations/snippet.ts",
    source: String.raw`(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w)`,
    why: "snippetOf cuts the reply to 800 characters before.",
  },
  {
    file: "src/trust/shown/harmless-text.ts",
    source: "^(?:[+-]\\d[\\d .'’]*(?:e[+-]?\\d+)?\\s*%?|[\\s-]+|\\+)\"?$",
    why: "harmlessCells cuts the cell to 60 characters before.",
  },
  {
    file: "src/trust/shown/redact.ts",
    source: String.raw`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,4000}?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
    why: "Its loop ends after 4,000 characters, and no more than 8,192 of a text are read.",
  },
  {
    file: "src/trust/own-words/marker-lines.ts",
    source: String.raw`(\p{Nd}{1,2}[:.h]\p{Nd}{2}|`,
    why: "Four lines of at most 400 characters are read.",
  },
  {
    file: "src/trust/own-words/subject-mark.ts",
    source: String.raw`[\s.([{^*-]*\d{0,4}$`,
    why: "hasReplyMark cuts the label to 60 characters before.",
  },
];
