import { readableHtml } from "../trust/own-words/reply-text.ts";
import { type Extract, type FileToRead } from "./reading.ts";
import { decodeText } from "./text.ts";

/** Markup takes many times the room of its words. */
const MAX_HTML_BYTES = 4 * 1_048_576;

/** The words that a reader of the page would see. */
export function readHtmlFile(file: FileToRead): Extract {
  const { text } = readableHtml(decodeText(file, MAX_HTML_BYTES));
  return {
    text,
    ...(file.bytes.byteLength > MAX_HTML_BYTES && { partly: "only the beginning was read" }),
  };
}
