import { AppError, invalid } from "../errors.ts";
import type { IncomingFile } from "../messages/accept.ts";

const MB = 1_048_576;
const MAX_FILE_BYTES = 10 * MB;
const MAX_TOTAL_BYTES = 25 * MB;
const MAX_NAME_CHARS = 255;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

export interface FileInput {
  filename: string;
  content_type: string;
  /** Base64. */
  data: string;
}

/** Decodes the files of a call. Throws `validation_error` on what is not base64 or too large. */
export function filesOf(inputs: FileInput[]): IncomingFile[] {
  const files = inputs.map(toFile);
  const total = files.reduce((sum, file) => sum + file.bytes.byteLength, 0);
  if (total > MAX_TOTAL_BYTES)
    throw tooLarge("body.attachments", "All attachments together", MAX_TOTAL_BYTES);
  return files;
}

function toFile({ filename, content_type, data }: FileInput, index: number): IncomingFile {
  const path = `body.attachments.${index}`;
  const compact = data.replaceAll(/\s/g, "");
  if (!BASE64.test(compact) || compact.length % 4 === 1)
    throw invalid(`${path}.data`, "invalid_base64", `The data of attachment ${index + 1} is not base64.`);
  const bytes = Buffer.from(compact, "base64");
  if (bytes.byteLength > MAX_FILE_BYTES)
    throw tooLarge(`${path}.data`, `Attachment ${index + 1}`, MAX_FILE_BYTES);
  return { filename: safeName(filename), content_type: content_type.toLowerCase(), bytes };
}

function safeName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const clean = last.replaceAll(/\p{C}/gu, "").trim().slice(0, MAX_NAME_CHARS);
  return clean === "" || clean === "." || clean === ".." ? "attachment" : clean;
}

function tooLarge(path: string, what: string, limit: number): AppError {
  return invalid(path, "too_large", `${what} must not be larger than ${limit / MB} MB.`);
}
