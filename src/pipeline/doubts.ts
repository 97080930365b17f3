import type { App } from "../app.ts";
import { isWrittenByTool } from "./written-texts.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import type { MessageRow } from "../db/schema.ts";
import type { ParsedMail } from "../mail/reading/parse.ts";
import type { Doubt } from "../trust/own-words/reply-doubt.ts";
import type { ForOthers } from "../inbound/for-others.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { isSentAtClick } from "../trust/own-words/sent-at-click.ts";

/**
 * Returns why words of a mail were read as material, for its answer and its steps: sentences that also say how to mend
 * it.
 */
export function doubtsAbout(message: MessageRow, mail: ParsedMail): string[] {
  const auth = storedAuth(message);
  if (auth.vouched !== false) return mail.in_doubt && hasAuthority(message) ? [IN_DOUBT[mail.in_doubt]] : [];
  if (auth.for_others !== undefined) return [FOR_OTHERS[auth.for_others]];
  if (auth.unnamed === true) return [UNNAMED];
  if (auth.lacks_dmarc === true) return [LACKS_DMARC];
  return [auth.undated === true ? UNDATED : UNVOUCHED];
}

/** Why the words of a sender with authority are none of theirs, whatever mail they are in; null where they may be. */
export async function whyWithheld(
  app: App,
  message: MessageRow,
  { mail, alone }: { mail: ParsedMail; alone: boolean },
): Promise<string | null> {
  if (!hasAuthority(message)) return null;
  const words = mail.new_text.trim();
  if (isSentAtClick(words)) return SENT_AT_CLICK;
  // The subject of a mail that is new is obeyed with its text; that of an answer is not.
  const subject = alone || words === "" ? [message.subject ?? ""] : [];
  return (await isWrittenByTool(app, message, [words, ...subject])) ? WRITTEN_BY_TOOL : null;
}

/**
 * By doubt, the sentence about words of a sender with authority that may have been meant as an instruction, and were
 * not taken for one.
 */
const IN_DOUBT: Record<Doubt, string> = {
  below_quote:
    "Words below the quoted text may be yours, but were read as material. To have them followed, write them above it.",
  touches_quote:
    "Words right above the quoted text may be yours, but were read as part of it. To have them followed, leave an empty line below them.",
  below_line:
    "Words below a line across the mail may be yours, but were read as material. To have them followed, write them above that line, or leave it out.",
  like_fields:
    "Lines such as `Date: …` may be yours, but were read, with all below them, as the head of another mail. To have them followed, send them in a new mail or in a sentence.",
  below_signature:
    "Words of the signature, or below it, may be meant as an instruction, but were not read as one. To have them followed, write them above it.",
  two_texts:
    "Some words stand in only one of the mail's two versions, plain text and HTML, and were read as material. To have them followed, send the mail as plain text.",
  further_part:
    "Words below a file inside the mail may be yours, but were read as material. To have them followed, write them above the first file.",
  too_long:
    "Only the first 64 KB and 2,000 lines of a mail are read as your own words; the rest was read as material. To have something done, write it at the top.",
};

const FOR_OTHERS: Record<ForOthers, string> = {
  reply_to:
    "Read as material, not as an instruction: its Reply-To names an address that is neither its sender's nor known to this inbox, as a web form's mail does, so that the words may be somebody else's. List that address under the allowed senders of the inbox, or write without Reply-To.",
  sender:
    "Read as material, not as an instruction: its Sender field, or its signature (`i=`), names an address that is neither its author's nor known to this inbox, so that somebody else may have sent it in the author's name. List that address under the allowed senders of the inbox, or send it from the author's own mailbox.",
  web_script:
    "Read as material, not as an instruction: a program such as that of a web page, a server or git wrote it, by what it says of itself (X-Mailer, User-Agent, a field such as X-PHP-Script or X-Mailgun-Tag, its Message-ID, or [PATCH] before its subject), so that the words may be those of somebody else, such as whoever filled in a form. Write it in a mail program.",
};

const SENT_AT_CLICK =
  'Read as material, not as an instruction: a program sent it at a click, as those for "unsubscribe" do, by what its text says, so that its subject may be the words of whoever made the link. Write an instruction in words of your own.';

const WRITTEN_BY_TOOL =
  "Read as material, not as an instruction: words of it are those that a tool was given to write in a run with words of others in it, or for somebody else, and such a tool may have mailed them in your name. Write an instruction in words of your own.";

const LACKS_DMARC =
  "Read as material, not as an instruction: the sender's domain has no DMARC record, so the mail server it came from, which others may share, proves nothing, and no recent signature covers all of its header fields that matter and names this inbox. Publish a DMARC record for the domain: `v=DMARC1; p=none` as a TXT record at `_dmarc` is enough.";

const UNNAMED =
  "Read as material, not as an instruction: neither To nor Cc names the address of this inbox, so that the mail may have been written to somebody else and sent on here. Write that address into To or Cc; if an alias of yours leads here, give the inbox that address itself.";

const UNVOUCHED =
  "Read as material, not as an instruction: the mail did not come straight from the sender's own mail server, or by its header (Delivered-To, Resent-From, Return-Path and the like) was sent on from a mailbox, and no signature covers all of its header fields that matter and names this inbox (one by a key in testing mode, `t=y`, counts for nothing). Send it straight to the inbox from the sender's own address.";

const UNDATED =
  "Read as material, not as an instruction: the mail did not come straight from the sender's own mail server, and its Date is missing, ahead of the clock or more than a year old, so that it may be an old mail that somebody sends again. Write it anew, or see that the clock of the computer it was written on is right.";
