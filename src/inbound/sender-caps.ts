import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { Authority } from "../db/schema.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";
import { firstIdAt } from "../lib/first-id.ts";

/** Returns a sentence on the first cap of decision L.5d that this mail would break, or null. */
export async function brokenCap(
  app: App,
  tx: Db,
  mail: {
    inbox_id: string;
    sender: string;
    authority: Authority;
    vouched: boolean;
    body_hash: string;
    conversation_id: string | null;
    /** Whether it is a person's answer to a request for consent that waits. */
    decides: boolean;
  },
): Promise<string | null> {
  const caps = app.config.limits;
  const limit = Math.max(caps.replies_per_sender_hour, caps.replies_per_sender_day, caps.same_body_per_hour);
  const { inbox_id, sender } = mail;
  const vouched = mail.vouched ? 1 : 0;
  // Neither forged mails nor copies that somebody sends again may use up the turns of the real sender.
  const [recentMail, turnsIn] =
    mail.authority === "unauthenticated" ? [recentForgeable, forgeableTurns] : [recentProven, provenTurns];
  const since = app.calmNow() - DAY_SECONDS;
  const until = app.now();
  const recent = await recentMail(tx, { inbox_id, sender, since, until, limit, vouched });
  const hour = recent.filter((row) => row.created > app.calmNow() - HOUR_SECONDS);
  const sameBody = hour.filter((row) => row.body_hash === mail.body_hash).length;
  const [perHour, perDay] = sendersCaps(app, mail);
  if (reached(hour.length, perHour))
    return overCap(perHour, "of one sender came in an hour", "replies_per_sender_hour");
  if (reached(recent.length, perDay))
    return overCap(perDay, "of one sender came in a day", "replies_per_sender_day");
  // Such answers are the same word again and again. No loop goes that way: each letter has an address of its own, and an
  // account gets twenty of them in an hour at most.
  if (mail.decides) return null;
  if (reached(sameBody, caps.same_body_per_hour))
    return overCap(caps.same_body_per_hour, "with the same text came in an hour", "same_body_per_hour");
  if (mail.conversation_id === null) return null;
  const { conversation_id } = mail;
  const since_hour = app.calmNow() - HOUR_SECONDS;
  const cap = caps.replies_per_conversation_hour;
  const turns = await turnsIn(tx, {
    conversation_id,
    since: since_hour,
    until,
    from: firstIdAt(since_hour),
    vouched,
    limit: cap,
  });
  return reached(turns.length, cap)
    ? overCap(cap, "of one conversation came in an hour", "replies_per_conversation_hour")
    : null;
}

/**
 * Returns how many mails of the sender are worked on in an hour and in a day; 0 is no cap. For the owner and listed
 * senders a cap here counts only if it is smaller than their SMTP limit: they were told to come later at SMTP, and what
 * was let in is worked on. The buckets there fill gradually while these windows move, so with the same number a mail
 * that had been put off would be left out when it came again.
 */
function sendersCaps(
  { config: { limits } }: App,
  { authority, vouched }: { authority: Authority; vouched: boolean },
): [hour: number, day: number] {
  const household = vouched && (authority === "owner" || authority === "listed");
  const atDoor = (cap: number, door: number) => (household && door > 0 && cap >= door ? 0 : cap);
  return [
    atDoor(limits.replies_per_sender_hour, limits.inbound_per_sender_hour),
    atDoor(limits.replies_per_sender_day, limits.inbound_per_sender_day),
  ];
}

/** A sentence on what was too much, and which setting of the operator's bounds it. */
function overCap(cap: number, what: string, setting: keyof App["config"]["limits"]): string {
  const mails = cap === 1 ? "1 mail" : `${cap} mails`;
  return `It was left out, as more than ${mails} ${what} (limits.${setting}).`;
}

function reached(count: number, cap: number): boolean {
  return cap > 0 && count >= cap;
}

interface Recent {
  inbox_id: string;
  sender: string;
  since: number;
  /** The present: mail that came while the clock was ahead must not count until the clock gets there. */
  until: number;
  limit: number;
  vouched: number;
}

/** Mails of this sender that were worked on in the last day, at most as many rows as the cap needs. */
const recentProven = prepared((db, mail: Recent) =>
  recentOf(db, mail).where("authority", "!=", "unauthenticated").where("vouched", "=", mail.vouched),
);
const recentForgeable = prepared((db, mail: Recent) =>
  recentOf(db, mail).where("authority", "=", "unauthenticated"),
);

function recentOf(db: Db, mail: Recent) {
  return db
    .selectFrom("messages")
    .select(["created", "body_hash"])
    .where("inbox_id", "=", mail.inbox_id)
    .where("sender", "=", mail.sender)
    .where("source", "=", "email")
    .where("schedule_id", "is", null)
    .where("created", ">", mail.since)
    .where("created", "<=", mail.until)
    .where("state", "not in", ["rejected", "skipped"])
    .orderBy("created", "desc")
    .limit(mail.limit);
}

type Turns = Pick<Recent, "since" | "until" | "vouched" | "limit"> & {
  conversation_id: string;
  from: string;
};

const provenTurns = prepared((db, mail: Turns) =>
  turnsOf(db, mail).where("authority", "!=", "unauthenticated").where("vouched", "=", mail.vouched),
);
const forgeableTurns = prepared((db, mail: Turns) =>
  turnsOf(db, mail).where("authority", "=", "unauthenticated"),
);

/**
 * Rows of a conversation, at most as many as the cap needs. None older is looked at, however long the conversation is.
 */
function turnsOf(db: Db, mail: Turns) {
  return (
    db
      .selectFrom("messages")
      .select("id")
      .where("conversation_id", "=", mail.conversation_id)
      .where("id", ">=", mail.from)
      .where("source", "=", "email")
      .where("created", ">", mail.since)
      .where("created", "<=", mail.until)
      .where("state", "not in", ["rejected", "skipped"])
      // The yes or no that a request took is asked for by this server: it uses up no turn of the mails beside it.
      .where((eb) =>
        eb.not(
          eb.exists(
            eb
              .selectFrom("approvals")
              .select("approvals.id")
              .whereRef("approvals.id", "=", "messages.approval_id")
              .whereRef("approvals.run_id", "=", "messages.id"),
          ),
        ),
      )
      .limit(mail.limit)
  );
}
