import type { App } from "../../app.ts";
import { isUtf8 } from "node:buffer";
import type { LoginCodeRow, MessageRow } from "../../db/schema.ts";
import { equalBytes } from "../../lib/secrets.ts";
import type { NumbersFound } from "./code-in-texts.ts";
import { hmacOfCode, validCodeOf, voidCode } from "./codes.ts";

/** Characters of an answer that are looked through; beyond these a text or file is left out while there is a code. */
const MAX_READ_CHARS = 524_288;
interface Said {
  text: string;
  files: { filename: string; content_type: string; bytes: Uint8Array }[];
}

/** Looks through texts of others, which takes long and so is not done on the server's own thread; undefined where it took too long. */
export interface CodeReader {
  numbers: (texts: string[]) => Promise<NumbersFound | undefined>;
  struck: (texts: string[], code: string) => Promise<string[] | undefined>;
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
  reader: CodeReader,
): Promise<Outcome> {
  const [open] = await validCodeOf(app, app.db, message.user_id);
  if (!open) return outcome;
  const texts = [outcome.text, ...outcome.files.map(({ bytes }) => textOf(bytes))];
  const read = await readThrough(app, { open, key_id: message.key_id }, texts, reader);
  const [text = `What the tool said was ${LEFT_OUT}`, ...shown] = read;
  const kept = outcome.files.filter(
    (_file, index) => shown[index] !== undefined && shown[index] === texts[index + 1],
  );
  const left_out = outcome.files.flatMap((file, index) =>
    kept.includes(file)
      ? []
      : [`The file ${JSON.stringify(file.filename)} was ${shown[index] === undefined ? LEFT_OUT : HAS_CODE}`],
  );
  return { ...outcome, files: kept, text: [text, ...left_out].join("\n\n") };
}

/** Returns texts without the code, which is taken out of use if it stands in one; undefined for what cannot be compared. */
async function readThrough(
  app: App,
  { open, key_id }: { open: LoginCodeRow; key_id: string | null },
  texts: (string | undefined)[],
  reader: CodeReader,
): Promise<(string | undefined)[]> {
  const readable = readableTexts(texts);
  const found = await reader.numbers(readable.map((text) => text ?? ""));
  if (found === undefined) return texts.map(() => undefined);
  const known = readable.map((text, index) => (found.whole[index] ? text : undefined));
  const code = codeAmong(app, open, found.numbers);
  if (code === undefined) return known;
  await voidCode(app, open, key_id);
  const given = known.map((text) => text ?? "");
  const struck = await reader.struck(given, code);
  return known.map((text, index) => (text === undefined ? undefined : struck?.[index]));
}

const HAS_CODE = "left out: the sign-in code of the account stands in it, which does not count any more.";
const LEFT_OUT =
  "left out: a sign-in code of the account is valid at the moment, and might stand in it. Ask again once the code has been used, or in ten minutes.";

/** Texts as long as there is room for them; undefined for the others. */
function readableTexts(texts: (string | undefined)[]): (string | undefined)[] {
  let room = MAX_READ_CHARS;
  return texts.map((text) => {
    if (text === undefined || text.length > room) return undefined;
    room -= text.length;
    return text;
  });
}

function codeAmong(app: App, open: LoginCodeRow, numbers: readonly string[]): string | undefined {
  const user = { id: open.user_id };
  for (const number of numbers) if (equalBytes(hmacOfCode(app, user, number), open.code_hmac)) return number;
  return undefined;
}

/** The text of a file; undefined of what programs do not read as text. */
function textOf(bytes: Uint8Array): string | undefined {
  return isUtf8(bytes) && !bytes.includes(0) ? Buffer.from(bytes).toString() : undefined;
}
