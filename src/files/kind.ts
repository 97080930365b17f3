import { fileTypeFromBuffer } from "file-type";
import type { FileKind, FileToRead } from "./reading.ts";
import { shownType } from "./shown-name.ts";
import { isUtf8 } from "./text.ts";
import { readZipTable } from "./zip.ts";

/** Some programs put a few lines before the mark of a PDF, and every reader puts up with them. */
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

/** What lies in an archive that is a document. */
const BY_ENTRY: Record<string, Found> = {
  "word/document.xml": { kind: "docx", content_type: DOCX },
  "xl/workbook.xml": { kind: "xlsx", content_type: XLSX },
  // The entry that says which of its formats it is would have to be unpacked.
  "content.xml": { kind: "open_document", content_type: OPEN_DOCUMENT },
};

const BY_MIME: [RegExp, FileKind][] = [
  [/^application\/pdf$/, "pdf"],
  [/^image\/(?!svg)/, "image"],
  [/^text\/calendar$/, "calendar"],
  [/^text\/(x-)?vcard$/, "contact"],
  [/^text\/html$|^application\/xhtml\+xml$/, "html"],
  [/^message\/(rfc822|global)$/, "mail"],
  // Text that is drawing or markup for the most part.
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

/** Marks that no text begins with by chance, as it may with `BM`, `MZ` or `PK`. */
const SURE = new Set<FileKind>(["pdf", "docx", "xlsx", "open_document", "calendar", "contact"]);

/** What a file is by its bytes; by its name and the type it was sent as only where those say nothing. */
export async function kindOf(file: FileToRead): Promise<Found> {
  const sent = shownType(file.content_type);
  const plain = looksLikeText(file.bytes);
  const sniffed = await sniff(file, sent);
  if (sniffed && (SURE.has(sniffed.kind) || (!plain && sniffed.kind !== "text"))) return sniffed;
  // Mail programs send much of what they do not know as plain text, so the name knows better.
  const named = match(BY_NAME, file.filename) ?? match(BY_MIME, sent);
  // What should be a PDF or a picture and is one has been found by its bytes.
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

/** Told from the table alone, so that nothing is unpacked on the way. */
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
