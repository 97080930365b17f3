import type { App } from "../app.ts";
import type { MessageRow } from "../db/schema.ts";
import { StorageError } from "../db/storage-faults.ts";
import { AppError } from "../errors.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import { mayAskForPrivacy } from "../resources/messages/forgotten.ts";
import { materialOf } from "../resources/messages/material.ts";
import { messageById } from "../resources/messages/messages.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import { isLost, mayComeBack } from "../resources/messages/stored-bytes.ts";
import { visibleLine } from "../trust/own-words/hidden-characters.ts";
import { readStoredMail } from "./input.ts";

/** Characters of one mail: what it is about stands at its beginning. */
const MAX_MAIL_CHARS = 4_000;

/** What a digest shows of a mail; empty for one that wants to be private. */
export async function textOf(
  app: App,
  id: string,
  { timezone, signal }: { timezone: string; signal: AbortSignal },
): Promise<string> {
  const [row] = await messageById(app.db, { id });
  if (!row) return "";
  // One at a time of the whole server: each is held in memory until it is read.
  const words = await app.digests({ who: row.user_id, signal }, () => wordsOf(app, row, timezone));
  // Its author may have given flags that were never read, as it ended before that.
  if (mayAskForPrivacy(row, words)) return "";
  const shown =
    words ?? `From: ${row.sender ?? "unknown"}\nSubject: ${visibleLine(row.subject ?? "")}\n\n${NOT_KEPT}`;
  const cut = shown.length > MAX_MAIL_CHARS ? `${shown.slice(0, MAX_MAIL_CHARS).toWellFormed()} […]` : shown;
  return `Came in: ${writtenMoment(row.created, timezone)}\n${cut}`;
}

const NOT_KEPT = "(Its text is no longer kept.)";

/** All words of a mail, of its owner as well: in a digest they are material and no instruction. Undefined once they are not kept any more. */
async function wordsOf(app: App, row: MessageRow, timezone: string): Promise<string | undefined> {
  try {
    const { raw, headers } = await readStoredMail(app, row);
    const outcome = await app.parser.parse(raw, { form: storedAuth(row).signed_form, ...sourceOf(row) });
    const subject = visibleLine(row.subject ?? "");
    return materialOf({ ...row, subject, authority: "stranger" }, outcome, { headers, timezone });
  } catch (error) {
    if (isLost(error) && mayComeBack(app, error))
      throw new StorageError("CONTENT_MISSING", `${error.message} It is waited for.`);
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
