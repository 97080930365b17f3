import { randomToken } from "../../lib/secrets.ts";

/** More than 128 bits, without digits, so that nobody takes it for a code. */
const CHARS = 28;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz";

/**
 * Returns a line for the words of a mail whose code is all in it that others do not know. A hash of its body, such as that
 * in its signature (RFC 6376 §3.5, `bh=`), or a checksum of a part would tell the code to whoever tries all of them.
 */
export function markOfMail(): string {
  return `Mark of this mail, and no code: ${randomToken(CHARS, ALPHABET)}`;
}
