import { kindOf } from "./kind.ts";
import {
  counted,
  type Extract,
  type FileKind,
  type FileReading,
  type FileToRead,
  MAX_FILE_CHARS,
  notRead,
  DAMAGED,
  Unreadable,
} from "./reading.ts";
import { shownName } from "./shown-name.ts";
import { textExtract } from "./text.ts";

type Reader = (file: FileToRead, content_type: string) => Extract | Promise<Extract>;

/** Loaders of the readers by kind, called at first use: some of the libraries are large. */
const READERS: Record<FileKind, () => Promise<Reader>> = {
  pdf: async () => ofBytes((await import("./pdf.ts")).readPdf),
  docx: async () => ofBytes((await import("./docx.ts")).readDocx),
  xlsx: async () => ofBytes((await import("./xlsx.ts")).readXlsx),
  open_document: async () => ofBytes((await import("./open-document.ts")).readOpenDocument),
  html: async () => (await import("./html.ts")).readHtmlFile,
  text: async () => textExtract,
  mail: async () => ofBytes((await import("./mail.ts")).readMailFile),
  calendar: async () => (await import("./calendar.ts")).readCalendar,
  contact: async () => (await import("./contact.ts")).readContact,
  image: async () => ofBytes((await import("./image.ts")).readImage),
  archive: async () => ofBytes((await import("./archive.ts")).listArchive),
  other:
    async () =>
    ({ filename }, content_type) =>
      Promise.reject(new Unreadable(otherThanNamed(filename) ?? unreadable(content_type))),
};

function ofBytes(read: (bytes: Uint8Array) => Extract | Promise<Extract>): Reader {
  return ({ bytes }) => read(bytes);
}

/** What people take a file for by its name, of those that are recognized by their bytes. */
const NAMED: [RegExp, string][] = [
  [/\.pdf$/i, "PDF"],
  [/\.docx$/i, "Word document"],
  [/\.xlsx$/i, "Excel workbook"],
  [/\.(?:png|jpe?g|gif|webp|heic|tiff?)$/i, "picture"],
];

/**
 * Reads one file, whatever it contains. Runs on a thread that may be ended at any moment. Calls `onLoaded` before its
 * reader begins.
 */
export async function readFile(file: FileToRead, onLoaded: () => void): Promise<FileReading> {
  const filename = shownName(file.filename);
  const size = file.bytes.byteLength;
  const found = await kindOf(file);
  const about = { filename, content_type: found.content_type, size, kind: found.kind };
  try {
    // An empty text file is not an error.
    if (size === 0 && found.kind === "text") return { ...about, text: "", note: "", summary: "empty" };
    if (size === 0) throw new Unreadable("is empty");
    const read = await READERS[found.kind]();
    onLoaded();
    const extract = await read(file, found.content_type);
    if (extract.text.trim() === "" && extract.image === undefined) throw new Unreadable("has no text in it");
    return { ...about, ...shownPart(filename, extract) };
  } catch (error) {
    // An error of a library proves only that it could not read this file.
    const reason = error instanceof Unreadable ? error.message : DAMAGED;
    return { ...about, text: "", note: notRead(filename, reason), summary: "" };
  }
}

function otherThanNamed(filename: string): string | undefined {
  const [, what] = NAMED.find(([name]) => name.test(filename)) ?? [];
  return what && `is called a ${what}, but is none, or is damaged`;
}

/** A recording cannot be sent as PDF, and whether anything else could be is for its sender to know. */
function unreadable(content_type: string): string {
  if (content_type.startsWith("video/"))
    return "is a video, which can't be read; send pictures of it, or its words as text";
  if (content_type.startsWith("audio/"))
    return "is a sound recording, which can't be read; send its words as text";
  return "is of a type that can't be read; if it is a document, send it as PDF, or as text";
}

function shownPart(
  filename: string,
  { text, image, extent, partly }: Extract,
): Pick<FileReading, "text" | "image" | "note" | "summary"> {
  const shown = text.slice(0, MAX_FILE_CHARS).toWellFormed();
  const why =
    shown.length < text.length ? `only the first ${counted(shown.length, "character")} were read` : partly;
  const characters = shown === "" ? [] : [counted(shown.length, "character")];
  return {
    text: shown,
    ...(image && { image }),
    note: why === undefined ? "" : `Of ${filename} ${why}.`,
    summary: [...(extent === undefined ? [] : [extent]), ...characters].join(", "),
  };
}
