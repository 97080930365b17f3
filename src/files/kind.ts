import { fileTypeFromBuffer } from "file-type";
import type { FileKind, FileToRead } from "./reading.ts";
import { shownType } from "./shown-name.ts";
import { isUtf8 } from "./text.ts";
import { readZipTable } from "./zip.ts";

/** Bytes within which the mark of a PDF may begin: some programs write lines before it, and all readers accept that. */
const PDF_MARK_WITHIN_BYTES = 1_024;
const SAMPLE_BYTES = 4_096;
const PDF = "application/pdf";
const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const OPEN_DOCUMENT = "application/vnd.oasis.opendocument";
const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

interface Found {
  kind: FileKind;
  content_type: string;
}

/** Entries by which an archive is recognized as a document. */
const BY_ENTRY: Record<string, Found> = {
  "word/document.xml": { kind: "docx", content_type: DOCX },
  "xl/workbook.xml": { kind: "xlsx", content_type: XLSX },
  // Which OpenDocument format it is stands in an entry that would have to be unpacked.
  "content.xml": { kind: "open_document", content_type: OPEN_DOCUMENT },
};

const BY_MIME: [RegExp, FileKind][] = [
  [/^application\/pdf$/, "pdf"],
  [/^image\/(?!svg)/, "image"],
  [/^text\/calendar$/, "calendar"],
  [/^text\/(x-)?vcard$/, "contact"],
  [/^text\/html$|^application\/xhtml\+xml$/, "html"],
  [/^message\/(rfc822|global)$/, "mail"],
  // Text formats that are mostly drawing or markup.
  [/^image\/svg|^(application|text)\/rtf$/, "other"],
  [
    /^text\/|^application\/((x-)?(yaml|json|ndjson|xml|csv|javascript|sh|sql|toml)|[\w.-]+\+(json|xml))$/,
    "text",
  ],
];

const BY_NAME: [RegExp, FileKind][] = [
  [/\.(html?|xhtml)$/i, "html"],
  [/\.eml$/i, "mail"],
  [/\.(ics|ifb)$/i, "calendar"],
  [/\.(vcf|vcard)$/i, "contact"],
  [/\.(svgz?|rtf)$/i, "other"],
  [/\.(txt|text|md|markdown|csv|tsv|json|jsonl|ndjson|xml|ya?ml|toml|ini|log|sql)$/i, "text"],
];

/** Kinds whose marks no text begins with by chance, as it may with `BM`, `MZ` or `PK`. */
const SURE = new Set<FileKind>(["pdf", "docx", "xlsx", "open_document", "calendar", "contact"]);

/** Returns the kind of a file by its bytes; by its name and declared type only where the bytes do not tell. */
export async function kindOf(file: FileToRead): Promise<Found> {
  const sent = shownType(file.content_type);
  const plain = looksLikeText(file.bytes);
  const sniffed = await sniff(file, sent);
  if (sniffed && (SURE.has(sniffed.kind) || (!plain && sniffed.kind !== "text"))) return sniffed;
  // The name before the declared type: mail programs send many unknown types as plain text.
  const named = match(BY_NAME, file.filename) ?? match(BY_MIME, sent);
  // A real PDF or picture would have been recognized by its bytes.
  const kind = named === "pdf" || named === "image" ? undefined : named;
  return { kind: kind ?? (plain ? "text" : "other"), content_type: sent };
}

async function sniff({ filename, bytes }: FileToRead, sent: string): Promise<Found | undefined> {
  if (bytes[0] === 0x50 && bytes[1] === 0x4b) return archiveOf(bytes);
  const beginning = Buffer.from(bytes.subarray(0, PDF_MARK_WITHIN_BYTES));
  if ((/\.pdf$/i.test(filename) || sent === PDF) && beginning.includes("%PDF-"))
    return { kind: "pdf", content_type: PDF };
  const type = await fileTypeFromBuffer(bytes);
  return type && { kind: match(BY_MIME, type.mime) ?? "other", content_type: type.mime };
}

/** Recognizes an archive by its central directory, so that nothing is unpacked. */
function archiveOf(bytes: Uint8Array): Found {
  const known = readZipTable(bytes)?.find(({ name }) => Object.hasOwn(BY_ENTRY, name));
  return BY_ENTRY[known?.name ?? ""] ?? { kind: "archive", content_type: "application/zip" };
}

function match(table: [RegExp, FileKind][], text: string): FileKind | undefined {
  return table.find(([pattern]) => pattern.test(text))?.[1];
}

function looksLikeText(bytes: Uint8Array): boolean {
  if (bytes.byteLength === 0) return false;
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  return isUtf8(sample, sample.byteLength < bytes.byteLength) && !sample.some(isControl);
}

function isControl(byte: number): boolean {
  return byte < 0x20 && (byte < 0x09 || byte > 0x0d) && byte !== 0x1b;
}
