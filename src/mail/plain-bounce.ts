import { type BounceDetails, bounceDetails, MAX_SCAN_CHARS } from "./machine-mail.ts";

const STILL_TRYING =
  /\b(?:delayed|will (?:be )?retr|still trying|not yet been delivered|do not need to resend)/i;

/** What mail servers say of a mail that they give up, in a notification that holds that mail. */
const GIVEN_UP =
  /\b(?:(?:could|can|was|were|has|have|is)(?: ?not|n't)(?: been)?(?: be)? (?:deliver|reach|found|accept|complet)|undeliver|unable to (?:deliver|relay|reach)|delivery (?:has |status notification \()?fail|fail(?:ed|ure|s)? (?:to deliver|permanently|delivery)|returned (?:mail|to sender)|permanent (?:fatal )?(?:error|failure)|user unknown|unknown (?:user|address|recipient)|no such (?:user|mailbox|address)|does(?: not|n't) exist|rejected|bounced|unzustellbar|nicht zugestellt|non (?:remis|distribu)|no (?:se )?pudo (?:ser )?entreg|non (?:è stato )?(?:possibile )?(?:consegn|recapit))/i;

export interface BounceReport extends BounceDetails {
  /** It has no report for programs. */
  in_words: boolean;
}

/**
 * What a notification says about our mail: as RFC 3464 has it, or in words of its own with our mail behind them, as
 * qmail, Exchange and others write. Anybody can write one.
 */
export function readBounce(raw: string): BounceReport {
  const details = bounceDetails(raw);
  const in_words = details.action === undefined && details.status === undefined;
  return { ...details, ...(in_words ? inWords(raw) : {}), in_words };
}

function inWords(raw: string): BounceDetails {
  const text = raw.slice(0, MAX_SCAN_CHARS).replace(/\r\n/g, "\n");
  const body_at = text.indexOf("\n\n");
  const [head, body] = [text.slice(0, body_at), text.slice(body_at)];
  // A receipt of a reader, or a complaint, holds our mail as well, which has arrived then.
  if (body_at < 0 || /report-type="?(?:disposition-notification|feedback-report)/i.test(head)) return {};
  const original = originalIn(body);
  if (!original) return {};
  const words = body.slice(0, original.at);
  const status = /(?<![\d.])([45]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(words)?.[1];
  const code = /(?<![\d.])([45])\d\d[ :-]/.exec(words)?.[1];
  const isDelay = STILL_TRYING.test(words);
  if (status === undefined && code === undefined && !isDelay && !GIVEN_UP.test(words)) return {};
  return {
    action: isDelay ? "delayed" : "failed",
    ...(status === undefined ? {} : { status }),
    original_message_id: original.id,
  };
}

const LINE_ENDS = "\n\r\u2028\u2029";
const ID = /[ \t]*(?:\n[ \t]*)?<([^<>\s]{1,500})>/y;

/**
 * The Message-ID of a mail that stands in this one, perhaps quoted, and where its line begins. What is looked at
 * around each name of the field is never looked at again for another one.
 */
function originalIn(body: string): { id: string; at: number } | undefined {
  for (const { index } of body.matchAll(/message-id:/gi)) {
    let at = index;
    while (at > 0 && "> \t".includes(body.charAt(at - 1))) at -= 1;
    if (at > 0 && !LINE_ENDS.includes(body.charAt(at - 1))) continue;
    ID.lastIndex = index + "message-id:".length;
    const id = ID.exec(body)?.[1];
    if (id !== undefined) return { id, at };
  }
  return undefined;
}
