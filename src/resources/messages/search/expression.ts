import type { SearchQuery, Term } from "./query.ts";
import { tagWord } from "./texts.ts";

/** In which fields of the index a term is looked for. */
export const FIELDS_OF = {
  all: ["subject", "sender", "instruction", "result", "material", "files"],
  from: ["sender"],
  to: ["recipient"],
  subject: ["subject"],
  tag: ["tags"],
} as const;

export type TextField = (typeof FIELDS_OF)[keyof typeof FIELDS_OF][number];

/** The words of a term as the index has them. */
export function indexWords({ in: place, words }: Term): string[] {
  return place === "tag" ? words.map(tagWord) : words;
}

/**
 * A search in the grammar of FTS5, among the words that begin with `mark`. Nothing that somebody typed gets into that grammar
 * but letters and digits in quotes.
 */
export function expressionOf({ terms, without, has_file }: SearchQuery, mark: string): string {
  const all = [
    ...terms.map((term) => expressionOfTerm(term, mark)),
    ...(has_file ? [`marks : "${mark}file"`] : []),
  ];
  const wanted = all.length > 0 ? all : [`marks : "${mark}all"`];
  const unwanted = without.map((term) => ` NOT ${expressionOfTerm(term, mark)}`);
  return `(${wanted.join(" AND ")})${unwanted.join("")}`;
}

function expressionOfTerm(term: Term, mark: string): string {
  const words = indexWords(term).map((word) => `${mark}${word}`);
  return `({${FIELDS_OF[term.in ?? "all"].join(" ")}} : "${words.join(" ")}"${term.prefix ? " *" : ""})`;
}
