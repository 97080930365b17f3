import type { App } from "../../app.ts";
import { isUtf8 } from "node:buffer";
import type { LoginCodeRow } from "../../db/schema.ts";
import { equalBytes } from "../../lib/secrets.ts";
import { hmacOfCode, validCodeOf } from "./codes.ts";

/**
 * Matches six digits as mails and people write them, also right behind a character that is escaped for an address, JSON
 * or quoted-printable (`%20123456`).
 */
const SIX_DIGITS =
  /(?:(?<!\d)|(?<=[%=][\dA-F]{2})|(?<=\\x[\dA-F]{2})|(?<=\\u[\dA-F]{4}))\d{3}[ \u00a0-]?\d{3}(?!\d)/gi;
/** More of them in one text are struck out unread. */
const MAX_COMPARED = 5_000;
/** Matches base64 and base64url (RFC 4648 §4, §5), also in the lines of a mail (RFC 2045 §6.8). */
const BASE64 = /[\w+/-]{8,}(?:(?<=[\w+/-]{60})\r?\n[\w+/-]{8,})*={0,2}/g;
/** A mail within a mail may be packed as often. */
const MAX_DEPTH = 3;
const STRUCK = "[sign-in code left out]";

interface Said {
  text: string;
  files: { filename: string; content_type: string; bytes: Uint8Array }[];
}

/**
 * Returns what a tool said without the code that signs in to the account at the moment: whoever has a tool look into the
 * mailbox of the owner is not to become the owner by that. A file of which nobody can tell whether the code stands in it
 * is left out until the code is used, or too old.
 */
export async function withoutSignInCode<Outcome extends Said>(
  app: App,
  user_id: string,
  outcome: Outcome,
): Promise<Outcome> {
  const [open] = await validCodeOf(app, app.db, user_id);
  if (!open) return outcome;
  const isCode = recognizer(app, open);
  const files: Outcome["files"] = [];
  const left_out: string[] = [];
  for (const file of outcome.files) {
    const text = textOf(file.bytes);
    if (text !== undefined && struckOut(text, isCode) === text) files.push(file);
    else left_out.push(leftOut(file.filename, text === undefined ? UNREADABLE : HAS_CODE));
  }
  return { ...outcome, files, text: [struckOut(outcome.text, isCode), ...left_out].join("\n\n") };
}

const HAS_CODE = "the sign-in code of the account stands in it";
const UNREADABLE =
  "a sign-in code of the account is valid at the moment, and might stand in it. Ask again once the code has been used, or in ten minutes";

function leftOut(filename: string, why: string): string {
  return `The file ${JSON.stringify(filename)} was left out: ${why}.`;
}

type IsCode = (digits: string) => boolean;

function recognizer(app: App, { user_id: id, code_hmac }: LoginCodeRow): IsCode {
  const known = new Map<string, boolean>();
  return (code) => {
    let is_code = known.get(code);
    if (is_code === undefined) {
      is_code = known.size >= MAX_COMPARED || equalBytes(hmacOfCode(app, { id }, code), code_hmac);
      known.set(code, is_code);
    }
    return is_code;
  };
}

function struckOut(text: string, isCode: IsCode, depth = 0): string {
  const struck = text.replaceAll(SIX_DIGITS, (written) =>
    isCode(written.replaceAll(/\D/g, "")) ? STRUCK : written,
  );
  if (depth === MAX_DEPTH) return struck;
  return struck.replaceAll(BASE64, (packed) => (holdsCode(packed, isCode, depth) ? STRUCK : packed));
}

/** A word may stand right before base64, so that it can begin at each of four letters. */
function holdsCode(packed: string, isCode: IsCode, depth: number): boolean {
  const signs = packed.replaceAll(/[^\w+/-]/g, "");
  return [0, 1, 2, 3].some((at) => {
    const text = Buffer.from(signs.slice(at), "base64").toString("latin1");
    return struckOut(text, isCode, depth + 1) !== text;
  });
}

/** The text of a file; undefined of what programs do not read as text. */
function textOf(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? Buffer.from(bytes).toString() : undefined;
}
