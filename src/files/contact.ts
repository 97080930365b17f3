import { type Extract, type FileToRead } from "./reading.ts";
import { decodeText } from "./text.ts";

/** RFC 6350 §3.2: a line that begins with a blank goes on from the one before. */
const FOLD = /\r?\n[ \t]/g;
/** Pictures, sounds and keys, as long as the rest is short. */
const NO_WORDS = /^([\w-]+\.)?(PHOTO|LOGO|SOUND|KEY)[;:].*$/gim;
const MAX_CARD_BYTES = 4 * 1_048_576;

/** Contact cards, line by line, without their pictures. */
export function readContact(file: FileToRead): Extract {
  const text = decodeText(file, MAX_CARD_BYTES).replaceAll(FOLD, "").replaceAll(NO_WORDS, "");
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return { text: lines.join("\n") };
}
