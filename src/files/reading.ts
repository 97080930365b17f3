/** A file as it came, with the name and the type that its sender gave it. */
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

/** What was read of one file. All of it but `kind` and `size` is untrusted text. */
export interface FileReading {
  /** On one line, without hidden characters, short enough to be shown. */
  filename: string;
  /** What the bytes say where they say anything, else what the sender said. */
  content_type: string;
  size: number;
  kind: FileKind;
  /** Empty when there is none or it could not be read. */
  text: string;
  /** For a model that can see: small enough, and without the metadata of the original. */
  image?: { content_type: string; bytes: Uint8Array };
  /** A sentence about what was not read; empty when all was. */
  note: string;
  /** What was read, in a few words: `12 pages, 3,400 characters`; empty when nothing was. */
  summary: string;
}

/** What a reader of one kind of file gives back. */
export interface Extract {
  text: string;
  image?: { content_type: string; bytes: Uint8Array };
  /** In the words of a summary: `12 pages`. */
  extent?: string;
  /** Why it is only a part, as a clause after the file's name: `only the first 200 of 300 pages were read`. */
  partly?: string;
}

/** The file cannot be read. The message goes on behind the name of the file: `is damaged`. */
export class Unreadable extends Error {
  override name = "Unreadable";
}

export function notRead(filename: string, reason: string): string {
  return `Not read: ${filename} ${reason}.`;
}

/** How much of the text of one file a model is shown. */
export const MAX_FILE_CHARS = 100_000;

export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}
