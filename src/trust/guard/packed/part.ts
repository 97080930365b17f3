/** One name and value of a text as a program takes it apart: `{"to":"a"}` has the part `to`, `a`. */
export interface Part {
  /** Its name in the text; null where it has none, so that the name of the text counts. */
  key: string | null;
  value: string | number;
}

/** The parts of a text that was read in one form, such as JSON. */
export interface Reading {
  parts: Part[];
  /** Characters that were looked at; more than the limit where the text was not read to its end. */
  chars: number;
}

/** Reads a text of one form; undefined for a text of another. It looks at `max_chars` characters at the most. */
export type Reader = (text: string, max_chars: number) => Reading | undefined;
