import type { App } from "../../app.ts";
import { isUtf8 } from "node:buffer";
import type { LoginCodeRow, MessageRow } from "../../db/schema.ts";
import { equalBytes } from "../../lib/secrets.ts";
import { hmacOfCode, validCodeOf, voidCode } from "./codes.ts";

/**
 * Matches six digits as mails and people write them, also right behind a character that is escaped for an address, JSON
 * or quoted-printable (`%20123456`).
 */
const SIX_DIGITS =
  /(?:(?<!\d)|(?<=[%=][\dA-F]{2})|(?<=\\x[\dA-F]{2})|(?<=\\u[\dA-F]{4}))\d{3}[ \u00a0-]?\d{3}(?!\d)/gi;
/** Different numbers that are compared with the code for one answer of a tool. */
const MAX_COMPARED = 5_000;
/** Matches base64 and base64url (RFC 4648 §4, §5), also in the lines of a mail (RFC 2045 §6.8). */
const BASE64 = /[\w+/-]{8,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]{8,})*={0,2}/g;
/** A mail within a mail may be packed as often. */
const MAX_DEPTH = 3;
const STRUCK = "[sign-in code left out: it does not count any more]";

interface Said {
  text: string;
  files: { filename: string; content_type: string; bytes: Uint8Array }[];
}

/**
 * Returns what a tool said without the code that signs in to the account at the moment: whoever has a tool look into the
 * mailbox of the owner is not to become the owner by that.
 *
 * Whoever chooses what a tool says could find the code by this, as what is left out of a list of numbers is the code. So
 * one that was found signs in no more before anybody is told of it, and where nothing was found the answer is as if there
 * were no code. What cannot be compared as a whole is left out while there is a code, whether it stands in it or not.
 */
export async function withoutSignInCode<Outcome extends Said>(
  app: App,
  message: Pick<MessageRow, "user_id" | "key_id">,
  outcome: Outcome,
): Promise<Outcome> {
  const [open] = await validCodeOf(app, app.db, message.user_id);
  if (!open) return outcome;
  const numbers = new Set<string>();
  const is_text_whole = addAll(numbers, numbersIn(outcome.text));
  const files = outcome.files.map((file) => {
    const text = textOf(file.bytes);
    const is_whole = text !== undefined && addAll(numbers, numbersIn(text));
    return { file, text: is_whole ? text : undefined };
  });
  const code = codeAmong(app, open, numbers);
  if (code !== undefined) await voidCode(app, open, message.key_id);
  const kept: Outcome["files"] = [];
  const said = [is_text_whole ? struckOut(outcome.text, code) : `What the tool said was ${LEFT_OUT}`];
  for (const { file, text } of files) {
    if (text !== undefined && struckOut(text, code) === text) kept.push(file);
    else
      said.push(`The file ${JSON.stringify(file.filename)} was ${text === undefined ? LEFT_OUT : HAS_CODE}`);
  }
  return { ...outcome, files: kept, text: said.join("\n\n") };
}

const HAS_CODE = "left out: the sign-in code of the account stands in it, which does not count any more.";
const LEFT_OUT =
  "left out: a sign-in code of the account is valid at the moment, and might stand in it. Ask again once the code has been used, or in ten minutes.";

/** Adds numbers to those that are compared, unless they are too many; returns whether it did. */
function addAll(numbers: Set<string>, more: ReadonlySet<string>): boolean {
  const all = numbers.union(more);
  if (all.size > MAX_COMPARED) return false;
  for (const number of more) numbers.add(number);
  return true;
}

function codeAmong(app: App, open: LoginCodeRow, numbers: ReadonlySet<string>): string | undefined {
  const user = { id: open.user_id };
  for (const number of numbers) if (equalBytes(hmacOfCode(app, user, number), open.code_hmac)) return number;
  return undefined;
}

/** The numbers in a text that may be a code, as it is and as programs unpack it. */
function numbersIn(text: string, depth = 0, numbers = new Set<string>()): Set<string> {
  for (const [written] of text.matchAll(SIX_DIGITS)) {
    if (numbers.size > MAX_COMPARED) return numbers;
    numbers.add(digitsOf(written));
  }
  if (depth < MAX_DEPTH)
    for (const [packed] of text.matchAll(BASE64))
      for (const unpacked of unpackedFrom(packed)) numbersIn(unpacked, depth + 1, numbers);
  return numbers;
}

function struckOut(text: string, code: string | undefined): string {
  if (code === undefined) return text;
  const struck = text.replaceAll(SIX_DIGITS, (written) => (digitsOf(written) === code ? STRUCK : written));
  return struck.replaceAll(BASE64, (packed) =>
    unpackedFrom(packed).some((unpacked) => numbersIn(unpacked, 1).has(code)) ? STRUCK : packed,
  );
}

/** A word may stand right before base64, so that it can begin at each of four letters. */
function unpackedFrom(packed: string): string[] {
  const signs = packed.replaceAll(/[^\w+/-]/g, "");
  return [0, 1, 2, 3].map((at) => Buffer.from(signs.slice(at), "base64").toString("latin1"));
}

function digitsOf(written: string): string {
  return written.replaceAll(/\D/g, "");
}

/** The text of a file; undefined of what programs do not read as text. */
function textOf(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? Buffer.from(bytes).toString() : undefined;
}
