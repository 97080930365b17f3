/** A name and value in a text as a program parses it: `{"to":"a"}` has the part `to`, `a`. */
export interface Part {
  /** Its name; null where it has none, so that the name of the text counts. */
  key: string | null;
  value: string | number;
}

/** The parts of a text in one format, such as JSON. */
export interface Reading {
  parts: Part[];
  /** Characters that were read; more than the limit where the text was not read to its end. */
  chars: number;
}

/** Reads a text of one format, at most `max_chars` characters; undefined for a text of another format. */
export type Reader = (text: string, max_chars: number) => Reading | undefined;
