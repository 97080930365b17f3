import { allText } from "../mail/reading/mail-text.ts";
import { decodeWords, type MailHeaders, readHeaders } from "../mail/reading/headers.ts";
import { readMail } from "../mail/reading/parse-mail.ts";
import { type Extract, Unreadable } from "./reading.ts";
import { shownName } from "./shown-name.ts";

const MAX_FIELD_CHARS = 500;
const MAX_NAMES = 100;

/** Returns a mail saved as a file: its header, its text and the names of its files. */
export async function readMailFile(bytes: Uint8Array): Promise<Extract> {
  const outcome = await readMail(bytes);
  if (!outcome.ok && outcome.text === "") throw new Unreadable("holds a mail that can't be read");
  const head = headOf(readHeaders(bytes));
  if (!outcome.ok) return { text: `${head}\n\n${outcome.text}`, partly: "only the beginning was read" };
  const { attachments } = outcome.mail;
  const names = attachments.slice(0, MAX_NAMES).map(({ filename }) => shownName(filename));
  const files = names.length === 0 ? "" : `Files in this mail: ${names.join(", ")}`;
  const parts = [head, allText(outcome.mail), files].map((part) => part.trim()).filter(Boolean);
  return {
    text: parts.join("\n\n"),
    ...(names.length > 0 && { partly: "the files inside it were not read; attach them themselves" }),
  };
}

function headOf(headers: MailHeaders): string {
  return ["From", "To", "Cc", "Date", "Subject"]
    .flatMap((name) => {
      const value = headers.get(name);
      return value === undefined ? [] : [`${name}: ${decodeWords(value).slice(0, MAX_FIELD_CHARS)}`];
    })
    .join("\n");
}
