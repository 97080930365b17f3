import { type Extract, type FileToRead } from "./reading.ts";
import { decodeText } from "./text.ts";
import { MB } from "../lib/sizes.ts";

/** A folded line: one that begins with a blank continues the one before (RFC 6350 §3.2). */
const FOLD = /\r?\n[ \t]/g;
/** Properties with pictures, sounds and keys, which are long and have no text for a reader. */
const NO_WORDS = /^([\w-]+\.)?(PHOTO|LOGO|SOUND|KEY)[;:].*$/gim;
const MAX_CARD_BYTES = 4 * MB;

/** Returns contact cards line by line, without their pictures. */
export function readContact(file: FileToRead): Extract {
  const text = decodeText(file, MAX_CARD_BYTES).replaceAll(FOLD, "").replaceAll(NO_WORDS, "");
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return { text: lines.join("\n") };
}
