import type { SignedForm } from "../mail/reading/signed-form.ts";
import type { LeftOutReason } from "../reasons.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { Authority, InboxRow, UserRow } from "../db/schema.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { sha256 } from "../lib/sha256.ts";
import { replySubject } from "../mail/writing/compose.ts";
import { inboxById } from "../resources/inboxes/inboxes.ts";
import { type InboundPolicy, policyOf } from "../resources/inboxes/settings.ts";
import { isReplyAddress } from "../resources/conversations/conversations.ts";
import type { Delivery, Examined, Recipient } from "./decide.ts";
import { type ForOthers, whyForOthers } from "./for-others.ts";
import { judgeSender, type SenderVerdict } from "./judge-sender.ts";
import {
  type EarlierMail,
  findEarlier,
  originalOf,
  MAX_AGE_SECONDS,
  MAX_AHEAD_SECONDS,
} from "./same-mail.ts";

/** What a mail is to one of the inboxes that it is for. */
export interface Standing {
  inbox: InboxRow;
  user: UserRow;
  verdict: SenderVerdict;
  /**
   * Whether its sender wrote it and meant it for this inbox as it is; anything else may be a copy that somebody sends
   * again.
   */
  vouched: boolean;
  /**
   * True if only its Date speaks against vouching for it: that does not say that the mail is new enough to be
   * recognised.
   */
  undated: boolean;
  /** Set if only this speaks against vouching for it: it may hold the words of somebody else. */
  for_others: ForOthers | null;
  /** The authority of the mail, which is less than its sender's if a machine wrote it or nobody vouches for it. */
  authority: Authority;
  /** If a machine wrote it: why it gets no answer, or is not even worked on. */
  soft: LeftOutReason | null;
  skipped: boolean;
  /** True if it may be anybody's, and its inbox does not work on such mail. */
  unproven: boolean;
  dedupe_key: string;
  /**
   * A hash that is equal for mails with the same text. For a sender who gives orders the subject counts too, as it may be
   * the order.
   */
  body_hash: string;
  /** An earlier copy of this mail, because of which this one is not worked on; the copy counts it. */
  original: EarlierMail | undefined;
  /** An earlier copy of this mail that was vouched for and left out. */
  left_out: EarlierMail | undefined;
  /** True if the same mail has been worked on before, and that failed. */
  failed_before: boolean;
}

/** A recipient, and what the mail is to it: undefined for an address that is not, or no longer, an inbox. */
export interface Case {
  recipient: Recipient;
  standing: Standing | undefined;
}

/** Returns what the mail is to each of its recipients, in the order in which it is decided for them. */
export async function casesOf(app: App, db: Db, { recipients }: Delivery, mail: Examined): Promise<Case[]> {
  const cases: Case[] = [];
  for (const recipient of repliesFirst(recipients)) {
    const standing = await standingOf(app, db, { recipient, mail, dedupe_key: mail.dedupe_key });
    cases.push({ recipient, standing });
  }
  return cases;
}

/** The recipients, reply addresses first: the first of several of one inbox makes the message, and a reply address says what it answers. */
function repliesFirst(recipients: Recipient[]): Recipient[] {
  const { true: ours = [], false: others = [] } = Object.groupBy(recipients, ({ address }) =>
    String(isReplyAddress(address)),
  );
  return [...ours, ...others];
}

/** Returns what a mail is to a recipient; undefined if the recipient names no inbox that exists. */
async function standingOf(
  app: App,
  tx: Db,
  { recipient, mail, dedupe_key }: { recipient: Recipient; mail: Examined; dedupe_key: string },
): Promise<Standing | undefined> {
  if (!recipient.inbox) return undefined;
  const { user } = recipient.inbox;
  // Looked up again, and now for good: since RCPT the inbox may have been changed, deleted or given another address.
  const [inbox] = await inboxById(tx, { id: recipient.inbox.row.id });
  if (!inbox || !isAt(inbox, recipient.address)) return undefined;
  const { identity, from_address, kind } = mail;
  const verdict = judgeSender(inbox, user, { from_address, authenticated: identity.authenticated });
  const policy = policyOf(inbox);
  const word = wordOf(app, mail, {
    inbox,
    user,
    verdict,
    form: mail.meant.get(recipient.address),
  });
  const soft = softOf(kind, { verdict, ...word });
  // What a machine sent, and what may be a replay or the words of others, is read as mail of a stranger.
  const authority = soft === null && word.vouched ? verdict.authority : withoutCommand(verdict.authority);
  const unproven = soft === null && isUnproven(verdict, policy);
  const orders = authority === "owner" || authority === "listed";
  const body_hash = orders
    ? sha256(`${replySubject(mail.subject)}\n${mail.body_hash}`, "hex")
    : mail.body_hash;
  const known = { inbox, user, verdict, ...word, authority, soft, unproven, dedupe_key, body_hash };
  const skipped = kind.kind === "hard" || (soft !== null && !policy.process_bulk);
  return { ...known, skipped, ...(await earlierOf(app, tx, { ...known, skipped }, mail)) };
}

/**
 * Returns whether the mail may be by anybody who forges its sender, and the inbox does not work on such mail: a run
 * costs the inbox something, and a forger nothing.
 */
function isUnproven({ accepted, authority }: SenderVerdict, policy: InboundPolicy): boolean {
  const { process_unauthenticated, reply_to_unauthenticated } = policy;
  return accepted && authority === "unauthenticated" && !process_unauthenticated && !reply_to_unauthenticated;
}

/**
 * Returns why a machine's mail gets no answer. A mark that anybody may have added does not keep the owner and listed
 * senders from being answered.
 */
function softOf(
  kind: Examined["kind"],
  standing: Pick<Standing, "verdict" | "vouched">,
): LeftOutReason | null {
  if (kind.kind !== "soft" || (kind.doubtful && isOfHousehold(standing))) return null;
  return kind.reason;
}

/**
 * Returns whether a mail is its sender's word to an inbox, and what speaks against it. `form` is as in
 * `Examined.meant`; undefined where the mail is not meant for this recipient.
 */
function wordOf(
  app: App,
  { identity, date, from_address, writer_marks }: Examined,
  {
    inbox,
    user,
    verdict,
    form,
  }: Pick<Standing, "inbox" | "user" | "verdict"> & { form: SignedForm | null | undefined },
): Pick<Standing, "vouched" | "undated" | "for_others"> {
  const meant = form !== undefined;
  const undated = meant && !identity.direct && !isRecent(date, app);
  const dated = meant && !undated;
  const shows_sender = identity.direct || form?.fields.includes("sender") === true;
  const agents = identity.signed.flatMap(({ agent }) => agent ?? []);
  const shown = { marks: writer_marks, from_address, shows_sender, agents };
  const for_others = dated && mayInstruct(verdict) ? whyForOthers(shown, { inbox, user }) : null;
  return { vouched: dated && for_others === null, undated, for_others };
}

/**
 * Returns whether it is mail of the owner or of a listed sender, as they sent it. Such mail leaves a row whatever
 * becomes of it.
 */
export function isOfHousehold({ verdict, vouched }: Pick<Standing, "verdict" | "vouched">): boolean {
  return vouched && mayInstruct(verdict);
}

/** Returns whether its sender may give instructions, provided that the mail is theirs as it is. */
export function mayInstruct({ accepted, authority }: SenderVerdict): boolean {
  return accepted && (authority === "owner" || authority === "listed");
}

async function earlierOf(
  app: App,
  tx: Db,
  standing: Omit<Standing, "original" | "left_out" | "failed_before">,
  { identity, rfc_message_id, date }: Examined,
): Promise<Pick<Standing, "original" | "left_out" | "failed_before">> {
  const { inbox, verdict, authority, dedupe_key, skipped } = standing;
  const { direct } = identity;
  const again = identity.authenticated && standing.vouched && !direct;
  if (!verdict.accepted || (skipped && !again))
    return { original: undefined, left_out: undefined, failed_before: false };
  const unmarked = rfc_message_id === null && date === undefined;
  const said = direct && standing.vouched ? standing.body_hash : null;
  const key = { inbox_id: inbox.id, dedupe_key, direct, unmarked, said };
  const { mails: earlier, failed: failed_before } = await findEarlier(app, tx, key);
  const vouched = standing.vouched ? 1 : 0;
  return {
    original: originalOf(earlier, { authority, vouched, direct }),
    left_out: again ? earlier.find((one) => one.state === "skipped" && one.vouched === 1) : undefined,
    failed_before,
  };
}

function isAt(inbox: InboxRow, address: string): boolean {
  const { local_part, domain } = splitAddress(address);
  return inbox.local_part === local_part && inbox.domain === domain;
}

function withoutCommand(authority: Authority): Authority {
  return authority === "unauthenticated" ? authority : "stranger";
}

/**
 * Returns whether a mail is new enough to be recognized if it had been here before. Without a signed Date that is not
 * known.
 */
function isRecent(date: number | undefined, { now, calmNow }: Pick<App, "now" | "calmNow">): boolean {
  return date !== undefined && date > calmNow() - MAX_AGE_SECONDS && date <= now() + MAX_AHEAD_SECONDS;
}
