/** Something that stands in a text as a program takes it apart. */
export interface Part {
  /** What the text calls it; null where it has no name but that of the text itself. */
  key: string | null;
  value: string | number;
}

/** What a text says to the programs that read its form. */
export interface Reading {
  parts: Part[];
  /** How many characters were looked at; more than the limit where there was no end in sight. */
  chars: number;
}

/** Undefined where a text is of another form. No more than `max_chars` are looked at. */
export type Reader = (text: string, max_chars: number) => Reading | undefined;
