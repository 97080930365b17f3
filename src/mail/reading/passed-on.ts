import { domainOf, inSameHands } from "../../net/domain-owner.ts";
import type { MailHeaders } from "./headers.ts";

/**
 * Fields that a server writes when it puts a mail into a mailbox, and what sends one on from there: `Delivered-To` and the like
 * (RFC 9228), `Return-Path` (RFC 5321 §4.4), `Resent-…` (RFC 5322 §3.6.6), and those of providers. No mail program and no server
 * that takes mail from one writes any. (`X-Forwarded-Message-Id` is Thunderbird's, of a mail that a person passes on.)
 */
const DELIVERED =
  /^(?:(?:x-)?delivered-to|x-original-to|(?:x-)?envelope-to|delivery-date|return-path|x-resolved-to|resent-(?:from|to|cc|date|sender|message-id)|x-forwarded-(?:to|for)|x-yahoo-forwarded|x-sieve(?:-redirected-from)?|x-ms-exchange-(?:inbox-rules-loop|forwardingloop|organization-autoforwarded))$/;
const RESULTS = /^(?:arc-)?authentication-results(?:-original)?$/;

/**
 * Whether a mail says of itself that it has been in a mailbox, or that a server on the way found its author to be
 * somebody else. A filter in the author's own mailbox can send on what others have sent there in the author's name, in the
 * envelope as well, and from the author's own server.
 */
export function wasPassedOn({ fields }: Pick<MailHeaders, "fields">, author: string): boolean {
  return fields.some(
    ({ name, value }) => DELIVERED.test(name) || (RESULTS.test(name) && failsFor(value, domainOf(author))),
  );
}

const MAX_RESULTS_CHARS = 4_000;

function failsFor(value: string, domain: string): boolean {
  const results = value.slice(0, MAX_RESULTS_CHARS).split(";");
  return results.some((result) => {
    if (!/\bdmarc\s?=\s?fail\b/i.test(result)) return false;
    const from = /\bheader\.from\s?=\s?"?([^\s;"]+)/i.exec(result)?.[1];
    return from === undefined || inSameHands(domainOf(from), domain);
  });
}
