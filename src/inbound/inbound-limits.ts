import { refusalFor } from "../reasons.ts";
import type { App } from "../app.ts";
import { planLimits } from "../resources/billing/plans.ts";
import type { Db } from "../db/database.ts";
import { takeTurn } from "../db/rate-limits.ts";
import type { InboxRow, UserRow } from "../db/schema.ts";
import type { RateRule } from "../lib/rate-limit.ts";
import type { Examined, Reception } from "./decide.ts";
import { judgeSender } from "./judge-sender.ts";
import { type Client, notePutOffFor, wasPutOffFor } from "./put-off.ts";
import { mayInstruct, type Standing } from "./standing.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";

/** An inbox that takes no more mail of some kind for now. */
export interface BusyInbox {
  inbox: InboxRow;
  bucket: Bucket;
}

interface Weighed {
  mail: Counted;
  /** What it is to each of its inboxes. */
  standings: Standing[];
}

/**
 * Counts a mail against the limits of its inboxes (decision A). If one of them takes no more now, the answer is 451 and
 * nothing is counted, so that the sender's server brings the mail again for all of them. A mail that has been here
 * before counts nowhere: it is not worked on, and whoever has a copy could use up what its author may send.
 */
export function countInbound(app: App, tx: Db, { mail, standings }: Weighed): Reception | undefined {
  const buckets = bucketsFor(app, { mail, standings });
  const busy = fullOf(app, buckets);
  const [first] = busy;
  if (first) return { ...comeLater(first.bucket), busy };
  for (const { bucket } of buckets) takeTurn(app, tx, bucket);
  return undefined;
}

/** Returns the inboxes that would take no more of a mail now. */
export function busyFor(app: App, weighed: Weighed): BusyInbox[] {
  return fullOf(app, bucketsFor(app, weighed));
}

function fullOf(app: App, buckets: BusyInbox[]): BusyInbox[] {
  return buckets.filter(({ bucket }) => isFull(app, bucket));
}

function bucketsFor(app: App, { mail, standings }: Weighed): BusyInbox[] {
  const counted = new Map(standings.filter(isNew).map((standing) => [standing.inbox.id, standing]));
  return [...counted.values()].flatMap((standing) =>
    bucketsOf(app, standing, { share: shareOf(standing, mail), from: mail.from_address }).map((bucket) => ({
      inbox: standing.inbox,
      bucket,
    })),
  );
}

/** Remembers which inboxes of a mail for several took no more, so that they can be told apart when it comes again. */
export function rememberBusy(app: App, { inbox, bucket }: BusyInbox, client: Client): void {
  notePutOffFor(app, inbox.id, client);
  // At RCPT the limit of an inbox can be checked again, but not that of a sender, who is known only from the mail's
  // header: a note about a sender's limit therefore expires with the wait.
  const { retry_after_seconds } = app.limiter.peek(bucket.key, bucket.rule);
  notePutOffFor(app, nameOf(inbox, bucket), client, bucket.of_sender ? retry_after_seconds : undefined);
}

/** Returns the reply at RCPT while an inbox still takes no more of a mail, as far as an earlier attempt has shown. */
export function stillBusy(
  app: App,
  { row, user }: { row: InboxRow; user: UserRow },
  client: Client,
): Reception | undefined {
  if (!wasPutOffFor(app, row.id, client)) return undefined;
  const from = client.mail_from.toLowerCase();
  const busy = sharesOf(row, user, from)
    .flatMap((share) => bucketsOf(app, { inbox: row, user }, { share, from }))
    .find(
      (bucket) => wasPutOffFor(app, nameOf(row, bucket), client) && (bucket.of_sender || isFull(app, bucket)),
    );
  return busy && comeLater(busy);
}

function nameOf({ id }: InboxRow, { share, of_sender, setting }: Bucket): string {
  return `${id}:${share}:${of_sender ? "sender" : "all"}:${setting}`;
}

/**
 * Returns the shares because of which a mail may be put off at RCPT. Anybody can write any address there, so what
 * happened to a stranger must not put off the owner.
 */
function sharesOf(row: InboxRow, user: UserRow, from_address: string): readonly Share[] {
  const claimed = judgeSender(row, user, { from_address, authenticated: true });
  return mayInstruct(claimed) ? [ownShare(claimed)] : SHARES;
}

function isFull(app: App, { key, rule }: Bucket): boolean {
  return !app.limiter.peek(key, rule).ok;
}

/** Returns whether a mail counts: one that is refused for good must hear that, not "later". */
function isNew({ verdict, original }: Standing): boolean {
  return verdict.accepted && original === undefined;
}

function bucketsOf(
  app: App,
  { inbox, user }: { inbox: InboxRow; user: UserRow },
  { share, from }: { share: Share; from: string },
): Bucket[] {
  const plan = planLimits(app.config, user.plan);
  const { inbound_per_sender_hour, inbound_per_sender_day } = app.config.limits;
  const sender = share === "others" ? "proven" : share;
  const times = share === "owner" ? OWNER_TIMES : 1;
  return [
    ...hourAndDay(
      `inbound:${inbox.id}:${share}`,
      `plans.${user.plan}.inbound_per`,
      { share, of_sender: false },
      {
        hour: plan.inbound_per_hour,
        day: plan.inbound_per_day,
      },
    ),
    ...hourAndDay(
      `inbound:${inbox.id}:${sender}:${from}`,
      "limits.inbound_per_sender",
      { share, of_sender: true },
      { hour: times * inbound_per_sender_hour, day: times * inbound_per_sender_day },
    ),
  ];
}

/** How many times as many mails the owner may send: whoever tries out an inbox, or works with it, sends many. */
const OWNER_TIMES = 5;

const SHARES = ["owner", "others", "unproven", "again", "machines"] as const;
/** A share: the part of an inbox's limits that a mail uses up. */
type Share = (typeof SHARES)[number];

/**
 * Returns the share of a mail. What others send, forge or send again must not use up what the owner, or a proven
 * sender, may send. Nor may a machine's mail, left out or read: anybody who has a signed mail can put a machine's mark
 * on it.
 */
function shareOf(
  { verdict, vouched, left_out, skipped }: Standing,
  { identity, kind }: Pick<Counted, "identity" | "kind">,
): Share {
  if (!identity.authenticated) return "unproven";
  if (!vouched || left_out || skipped) return "again";
  if (kind.kind !== "person" && !identity.direct) return "machines";
  return ownShare(verdict);
}

function ownShare({ authority }: Pick<Standing["verdict"], "authority">): Share {
  return authority === "owner" ? "owner" : "others";
}

type Counted = Pick<Examined, "from_address" | "identity" | "kind">;

interface Bucket {
  key: string;
  rule: RateRule;
  share: Share;
  /** Whether the bucket counts one sender alone, else the whole share. */
  of_sender: boolean;
  /** Its key in the configuration. */
  setting: string;
}

function hourAndDay(
  key: string,
  setting: string,
  of: Pick<Bucket, "share" | "of_sender">,
  { hour, day }: { hour: number; day: number },
): Bucket[] {
  return [
    {
      ...of,
      key: `${key}:hour`,
      rule: { limit: hour, window_seconds: HOUR_SECONDS },
      setting: `${setting}_hour`,
    },
    {
      ...of,
      key: `${key}:day`,
      rule: { limit: day, window_seconds: DAY_SECONDS },
      setting: `${setting}_day`,
    },
  ];
}

function comeLater({ rule: { limit, window_seconds }, setting, of_sender }: Bucket): Reception {
  const span = window_seconds === HOUR_SECONDS ? "an hour" : "a day";
  const whose = of_sender ? " from one sender" : "";
  const text = `This address takes no more than ${limit} mails in ${span}${whose}; please try again later`;
  return { limit: setting, ...refusalFor("rate_limited", text) };
}
