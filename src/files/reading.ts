/** A received file, with the name and type that its sender gave it. */
export interface FileToRead {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

export type FileKind =
  | "pdf"
  | "docx"
  | "xlsx"
  | "open_document"
  | "html"
  | "text"
  | "mail"
  | "calendar"
  | "contact"
  | "image"
  | "archive"
  | "other";

/** The result of reading one file. Everything but `kind` and `size` is untrusted text. */
export interface FileReading {
  /** On one line, without hidden characters, short enough to be shown. */
  filename: string;
  /** The type according to the bytes, or else according to the sender. */
  content_type: string;
  size: number;
  kind: FileKind;
  /** The text; empty when there is none or it could not be read. */
  text: string;
  /** The picture for models with vision: scaled down, and without the metadata of the original. */
  image?: { content_type: string; bytes: Uint8Array };
  /** A sentence about what was not read; empty when all was. */
  note: string;
  /** What was read, in a few words: `12 pages, 3,400 characters`; empty when nothing was. */
  summary: string;
}

/** What the reader of one kind of file returns. */
export interface Extract {
  text: string;
  image?: { content_type: string; bytes: Uint8Array };
  /** The size for the summary: `12 pages`. */
  extent?: string;
  /** Why it is only a part, as a clause after the file's name: `only the first 200 of 300 pages were read`. */
  partly?: string;
}

/**
 * Thrown when a file cannot be read. The message completes a sentence that begins with the file's name: `is damaged`.
 */
export class Unreadable extends Error {
  override name = "Unreadable";
}

/** What `Unreadable` says of a file that no program makes so. */
export const DAMAGED = "is damaged or built in a way that can't be read";

export function notRead(filename: string, reason: string): string {
  return `Not read: ${filename} ${reason}.`;
}

/** Characters of text from one file that a model is shown. */
export const MAX_FILE_CHARS = 100_000;

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}
