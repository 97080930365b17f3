import { AppError, invalid } from "../errors.ts";
import { MAX_FILE_BYTES, type SentFile } from "../files/sent-file.ts";
import type { FileInput } from "./call-shapes.ts";
import type { IncomingFile } from "../inbound/accept.ts";
import { MB } from "../lib/sizes.ts";

const MAX_TOTAL_BYTES = 25 * MB;
const MAX_NAME_CHARS = 255;

/** The files of a call. Throws `validation_error` for a file that is not base64 or too large. */
export function filesOf(inputs: FileInput[], sent: SentFile[]): IncomingFile[] {
  const files = inputs.map((input, index) => toFile(input, { index, file: sent[index] }));
  const total = files.reduce((sum, file) => sum + file.bytes.byteLength, 0);
  if (total > MAX_TOTAL_BYTES)
    throw tooLarge("body.attachments", "All attachments together", MAX_TOTAL_BYTES);
  return files;
}

function toFile(
  { filename, content_type }: FileInput,
  { index, file = { fault: "invalid_base64" } }: { index: number; file: SentFile | undefined },
): IncomingFile {
  const path = `body.attachments.${index}.data`;
  if (!("fault" in file))
    return {
      filename: safeName(filename),
      content_type: content_type.toLowerCase(),
      bytes: Buffer.from(file.bytes.buffer),
    };
  if (file.fault === "too_large") throw tooLarge(path, `Attachment ${index + 1}`, MAX_FILE_BYTES);
  throw invalid(path, "invalid_base64", `The data of attachment ${index + 1} is not base64.`);
}

function safeName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const clean = last.replaceAll(/\p{C}/gu, "").trim().slice(0, MAX_NAME_CHARS);
  return clean === "" || clean === "." || clean === ".." ? "attachment" : clean;
}

function tooLarge(path: string, what: string, limit: number): AppError {
  return invalid(path, "too_large", `${what} must not be larger than ${limit / MB} MB.`);
}
