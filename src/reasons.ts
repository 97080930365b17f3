/** What a message can be; `resources/messages/states.ts` says what each of them means. */
export const MESSAGE_STATES = ["received", "done", "failed", "limited", "rejected", "skipped"] as const;
export type MessageState = (typeof MESSAGE_STATES)[number];

/**
 * Why a mail is not taken, left out or not worked on, in one place: the database, the figures, the interface and the words
 * of the dashboard have their reasons from here, so that one without words is an error of the type check.
 */

/** How the SMTP door turns mail away (RFC 5321 §4.2, RFC 3463), and how the dashboard names it. */
interface Refusal {
  code: 421 | 450 | 451 | 452 | 550 | 552 | 554;
  enhanced: string;
  /** The sentence and what to do about it; empty where the sentence has to name what was found in the mail. */
  text: string;
  shown: string;
  /** The words for several that are counted and not listed: "12 mails were not taken, because …". */
  many: string;
}

export const REFUSALS = {
  auth_failed: {
    code: 550,
    enhanced: "5.7.1",
    text: "The sender's address could not be authenticated (neither DMARC nor a DKIM signature of its very domain passed). Send it through the mail provider of that address; a signature of a domain above or below it needs a DMARC record.",
    shown: "Nothing proved who sent it",
    many: "they claim to be from the owner or a listed sender, and nothing proves it",
  },
  bad_from: {
    code: 550,
    enhanced: "5.6.0",
    text: "",
    shown: "No single sender in it",
    many: "they do not name one sender",
  },
  block_list: {
    code: 554,
    enhanced: "5.7.1",
    text: "",
    shown: "The other server is on a block list",
    many: "they came from servers on a block list",
  },
  crowded: {
    code: 452,
    enhanced: "4.3.1",
    text: "Too many large mails are arriving at once; please try again later",
    shown: "Too many mails at once",
    many: "too many large mails came at once",
  },
  dns_unanswered: {
    code: 451,
    enhanced: "4.7.0",
    text: "The sender's address cannot be checked because DNS does not answer; please try again later",
    shown: "The DNS did not answer",
    many: "the DNS did not answer about their senders",
  },
  gone: {
    code: 550,
    enhanced: "5.1.1",
    text: "There is no such address here",
    shown: "The inbox was deleted meanwhile",
    many: "the inbox was deleted meanwhile",
  },
  inbox_paused: {
    // RFC 3463 §3.3: the mailbox is disabled, and not accepting messages.
    code: 450,
    enhanced: "4.2.1",
    text: "The owner of this address has paused it; please try again later",
    shown: "Its inbox was paused",
    many: "the inbox is paused, and has them come later",
  },
  loop: {
    code: 554,
    enhanced: "5.4.6",
    text: "",
    shown: "Sent in a circle",
    many: "they went round in circles",
  },
  malformed_header: {
    code: 550,
    enhanced: "5.6.0",
    text: "",
    shown: "A header that can be read in two ways",
    many: "their headers can be read in two ways",
  },
  not_allowlisted: {
    code: 550,
    enhanced: "5.7.1",
    text: "This address accepts mail from listed senders only. Ask its owner to list yours.",
    shown: "The sender is not on the inbox's list",
    many: "their senders are not on the list of the inbox",
  },
  rate_limited: {
    code: 451,
    enhanced: "4.7.1",
    text: "",
    shown: "Too many from one place in a short time",
    many: "too many came in a short time",
  },
  repeated_field: {
    code: 550,
    enhanced: "5.6.0",
    text: "",
    shown: "A header twice that may be there once",
    many: "they have header fields twice that may be there once",
  },
  reports_only: {
    code: 550,
    enhanced: "5.7.1",
    text: "This address takes delivery reports only; write to the address in From or Reply-To",
    shown: "Written to an address for delivery reports",
    many: "they were written to an address for delivery reports",
  },
  sender_unauthenticated: {
    code: 550,
    enhanced: "5.7.1",
    text: "Nothing shows that this mail is from its sender (neither DMARC nor a DKIM signature of its very domain passed), and this address works on no such mail. Send it through the mail provider of that address.",
    shown: "Nothing proved who sent it, and its inbox works on no such mail",
    many: "nothing shows that they are from whom they say",
  },
  spam: {
    code: 550,
    enhanced: "5.7.1",
    text: "The spam filter of this server refuses this mail. If it is none, write it anew in other words, or ask its recipient to list your address.",
    shown: "The spam filter was sure that it is spam",
    many: "the spam filter was sure that they are spam",
  },
  storage: {
    code: 451,
    enhanced: "4.3.0",
    text: "The mail cannot be stored right now; please try again later",
    shown: "The disk of this server was full or broken",
    many: "the disk of this server was full or broken",
  },
  // RFC 3463 §3.3: X.2.2 is a mailbox that is full.
  storage_full: {
    code: 452,
    enhanced: "4.2.2",
    text: "",
    shown: "The account that it was for had no room left",
    many: "the account had no room for them",
  },
  too_large: { code: 552, enhanced: "5.3.4", text: "", shown: "Too large", many: "they are too large" },
  too_many_connections: {
    code: 421,
    enhanced: "4.7.0",
    text: "",
    shown: "Too many connections from one place",
    many: "too many connections came from one place",
  },
  too_slow: {
    code: 421,
    enhanced: "4.4.2",
    text: "The mail took too long to arrive; please try again",
    shown: "Took too long to arrive",
    many: "they took too long to arrive",
  },
  unknown_recipient: {
    code: 550,
    enhanced: "5.1.1",
    text: "There is no such address here",
    shown: "No such address here",
    many: "there is no such address here",
  },
  unreadable: {
    code: 451,
    enhanced: "4.3.0",
    text: "The mail could not be read; please send it in a simpler form, or try again later",
    shown: "Took too long to read",
    many: "they took too long to read",
  },
} as const satisfies Record<string, Refusal>;

export type RefusalReason = keyof typeof REFUSALS;

export function isRefusal(reason: MessageReason): reason is RefusalReason {
  return Object.hasOwn(REFUSALS, reason);
}

/**
 * Returns the SMTP answer to a mail that is not taken, with the sentence of its reason, or `text` where it is given.
 */
export function refusalFor<Reason extends RefusalReason>(reason: Reason, text?: string) {
  const { code, enhanced, text: sentence } = REFUSALS[reason];
  return { code, enhanced, reason, text: text ?? sentence };
}

const LISTED = "Turn on “Work on newsletters and list mail” of the inbox if you want it read.";

/** Mail that is taken and left out: `one` tells its owner about one mail, `many` is as in `Refusal`. */
const LEFT_OUT = {
  auto_reply: {
    one: `It was left out, because a program answered by itself, such as an out-of-office note. ${LISTED}`,
    many: "they are answers of machines",
  },
  auto_submitted: {
    one: "It was left out, because a program wrote it, and no person.",
    many: "machines wrote them",
  },
  bounce: {
    one: "It was left out, because it is a report about mail that could not be delivered.",
    many: "they are reports about mail that could not be delivered",
  },
  bulk: { one: `It was left out, because it was sent to many. ${LISTED}`, many: "they were sent to many" },
  duplicate: {
    one: "It was left out, because the same mail has been here before.",
    many: "they have been here before",
  },
  hop_limit: {
    one: "It was left out, because it has gone round between machines too often.",
    many: "they have gone round between machines too often",
  },
  loop_cap: {
    one: "It was left out, because its sender had written too often, or the same text too often.",
    many: "their senders had written too often, or the same text too often",
  },
  mailing_list: {
    one: `It was left out, because it came through a mailing list. ${LISTED}`,
    many: "they came through mailing lists",
  },
  no_reply_sender: {
    one: `It was left out, because its sender takes no answers. ${LISTED}`,
    many: "their senders take no answers",
  },
  own_address: {
    one: "It was left out, because it claims to be from an address of this server.",
    many: "they claim to be from an address of this server",
  },
  junk: {
    one: "It was left out, because the spam filter of this server took it for junk.",
    many: "the spam filter took them for junk",
  },
  kept_by_rule: {
    one: "It was kept without being worked on, by a rule of the inbox.",
    many: "rules of the inbox kept them",
  },
  rule: {
    one: "It was left out by a rule of the inbox.",
    many: "rules of the inbox left them out",
  },
  own_message_id: {
    one: "It was left out, because this server wrote it.",
    many: "this server wrote them",
  },
} as const;

export type LeftOutReason = keyof typeof LEFT_OUT;

/** Why a mail was left out, for whoever looks for it, with the setting that would have it worked on. */
export function leftOutWords(reason: string): string {
  return (LEFT_OUT as Record<string, { one: string }>)[reason]?.one ?? reason;
}

/** Why several were refused or left out, as a clause. */
export function manyWords(reason: RefusalReason | LeftOutReason): string {
  return { ...REFUSALS, ...LEFT_OUT }[reason].many;
}

/** Why a message ended without a result; what happened, and the mend, are in its `error`. */
export type FailureReason =
  | "cancelled"
  | "connection_unreadable"
  | "content_lost"
  | "credit_limit"
  | "dropped"
  | "inbox_deleted"
  | "internal"
  | "key_revoked"
  | "macro_too_long"
  | "model_not_allowed"
  | "no_provider"
  | "paused_too_long"
  | "plan_limit"
  | "replay_refused"
  | "schedule_refused"
  | "target_not_allowed"
  | "target_not_connected"
  | "unknown_connection"
  | "unknown_target"
  | ModelFault;

/** What kept a model from answering. */
export type ModelFault =
  | "invalid_credentials"
  | "forbidden"
  | "model_not_found"
  | "rate_limited"
  | "quota_exceeded"
  | "input_too_long"
  | "content_filtered"
  | "timeout"
  | "cancelled"
  | "unreachable"
  | "tls_error"
  | "blocked_address"
  | "bad_response"
  | "budget_used_up"
  | "provider_error";

export type MessageReason = RefusalReason | LeftOutReason | FailureReason;

/** Faults of a connection that the next message would meet as well, and that a test of the connection would find. */
export const LASTING_FAULTS: ReadonlySet<MessageReason> = new Set<MessageReason>([
  "invalid_credentials",
  "forbidden",
  "model_not_found",
  "quota_exceeded",
  "unreachable",
  "tls_error",
  "blocked_address",
]);
