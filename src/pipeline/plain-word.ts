import type { App } from "../app.ts";
import type { MessageRow } from "../db/schema.ts";
import { filesOf } from "../mail/reading/mail-text.ts";
import type { ParsedMail } from "../mail/reading/parse.ts";
import { holdsAddress } from "../trust/own-words/shared-page.ts";
import { hasReplyMark } from "../trust/own-words/subject-mark.ts";
import type { RunInput } from "./input.ts";
import { mayBeOfTool } from "./written-texts.ts";

/** Nobody types a longer order by mail, so a longer one is no plain word. */
const MAX_PLAIN_CHARS = 6_000;

type Words = Pick<RunInput, "instruction" | "subject" | "may_share">;

/** Whether a mail neither answers nor passes on another one, and holds words of others in files at most. */
export function isAlone({ subject }: MessageRow, mail: ParsedMail): boolean {
  return mail.own_subject && mail.rest_text.trim() === "" && !hasReplyMark(subject ?? "");
}

/**
 * Whether all of a mail that stands alone is its author's plain word. Where it only says so little that a tool may have mailed it,
 * `few_words` tells so.
 */
export async function plainness(
  app: App,
  message: MessageRow,
  { mail, words }: { mail: ParsedMail; words: Words },
): Promise<Pick<RunInput, "plain" | "few_words">> {
  if (!isWhole(mail) || !isTyped(words)) return { plain: false };
  const few_words = await mayBeOfTool(app, message, words.instruction);
  return { plain: !few_words, few_words };
}

/** Decision P.4: if a mail stands alone and has no file, all of it is its author's word. */
function isWhole(mail: ParsedMail): boolean {
  return mail.whole && filesOf(mail).length === 0;
}

/** Whether no program can have put words of others among these. */
function isTyped({ instruction, subject, may_share }: Words): boolean {
  return (
    instruction !== "" &&
    instruction.length <= MAX_PLAIN_CHARS &&
    may_share === null &&
    !holdsAddress(subject)
  );
}
