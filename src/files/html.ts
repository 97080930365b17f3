import { readableHtml } from "../trust/own-words/reply-text.ts";
import { type Extract, type FileToRead } from "./reading.ts";
import { decodeText } from "./text.ts";
import { MB } from "../lib/sizes.ts";

/** Bytes of markup that are read: it takes many times the space of its text. */
const MAX_HTML_BYTES = 4 * MB;

/** Returns the text that a reader of the page would see. */
export function readHtmlFile(file: FileToRead): Extract {
  const { text } = readableHtml(decodeText(file, MAX_HTML_BYTES));
  return {
    text,
    ...(file.bytes.byteLength > MAX_HTML_BYTES && { partly: "only the beginning was read" }),
  };
}
