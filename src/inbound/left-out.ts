import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { takeTurn } from "../db/rate-limits.ts";
import type { MessageRow } from "../db/schema.ts";
import { isMachineReason } from "../mail/reading/machine-mail.ts";
import { logRefusedMail } from "./accept.ts";
import type { Examined } from "./decide.ts";
import { type LeftOutReason, leftOutWords } from "../reasons.ts";
import { countMore } from "../resources/messages/more-mails.ts";
import { countAgain, type EarlierMail, keepKey } from "./same-mail.ts";
import { isOfHousehold, mayInstruct, type Standing } from "./standing.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

/**
 * How many mails that were refused, or left out, one inbox lists as rows of their own: a flood must not fill the disk.
 * Proven senders have this many, and all others as many again, so that others cannot use up the rows of the proven.
 */
export const ROWS = { limit: 200, window_seconds: HOUR_SECONDS };

interface Skipped {
  standing: Standing;
  mail: Examined;
  reason: LeftOutReason;
  text?: string;
}

/** Takes a mail without working on it, and shows it in the activity: machine mail and loops (decision L.5). */
export async function leaveOut(app: App, tx: Db, skipped: Skipped): Promise<void> {
  const { standing, mail, reason } = skipped;
  const { inbox, verdict, vouched, left_out } = standing;
  if (left_out) return traceDuplicate(app, tx, { standing, mail, original: left_out });
  const { authenticated } = mail.identity;
  // The key is stored with what its author sent, so that whoever sends it again leaves no more rows; and what a machine
  // sent remains a machine's.
  const known = authenticated && (vouched || isMachineReason(reason));
  const row = {
    state: "skipped",
    reason,
    authority: authenticated ? "stranger" : "unauthenticated",
    dedupe_key: known ? standing.dedupe_key : null,
    vouched: vouched ? 1 : 0,
  } as const;
  if (isOfHousehold(standing) || hasRow(app, tx, skipped)) await logSkipped(app, tx, skipped, row);
  else {
    await countMore(app, tx, { inbox, state: "skipped", reason });
    // Whoever uses up the rows of an hour must not thereby make the server forget this mail.
    if (mayInstruct(verdict))
      await keepKey(app, tx, {
        ...row,
        inbox_id: inbox.id,
        no_reply_reason: null,
        retry_of: null,
        for_others: null,
        calls_lost: false,
        created: app.now(),
      });
  }
}

async function logSkipped(
  app: App,
  tx: Db,
  { standing, mail, reason, text = leftOutWords(reason) }: Skipped,
  row: Pick<MessageRow, "state" | "reason" | "authority" | "dedupe_key" | "vouched">,
): Promise<void> {
  await logRefusedMail(app, tx, {
    ...row,
    inbox: standing.inbox,
    error: text,
    sender: mail.from_address,
    subject: mail.subject,
    rfc_message_id: mail.rfc_message_id,
    auth: storedChecks(mail.identity),
    body_hash: mail.body_hash,
  });
}

/**
 * Leaves a trace of a mail that has come before. The original counts it. If the original has been deleted, the first
 * such mail of the owner or a listed sender gets a row, which counts the next; those of others are only counted by the
 * hour.
 */
export async function traceDuplicate(
  app: App,
  tx: Db,
  { standing, mail, original }: Pick<Skipped, "standing" | "mail"> & { original: EarlierMail },
): Promise<void> {
  const { inbox } = standing;
  if (original.id !== null) return void (await countAgain(tx, { id: original.id }));
  const reason = "duplicate";
  const dedupe_key = `again ${standing.dedupe_key}`;
  const [traced] = isOfHousehold(standing) ? await tracedRow(tx, { inbox_id: inbox.id, dedupe_key }) : [];
  if (traced) return void (await countAgain(tx, traced));
  // Others get no row: whoever has old mails of theirs can send all of them again.
  if (!isOfHousehold(standing) || !hasRow(app, tx, { standing, mail }))
    return countMore(app, tx, { inbox, state: "skipped", reason });
  const row = { state: "skipped", reason, authority: "stranger", dedupe_key, vouched: 0 } as const;
  await logSkipped(app, tx, { standing, mail, reason, text: wordsOfDuplicate(original) }, row);
}

const tracedRow = prepared((db, key: { inbox_id: string; dedupe_key: string }) =>
  db
    .selectFrom("messages")
    .select("id")
    .where("inbox_id", "=", key.inbox_id)
    .where("dedupe_key", "=", key.dedupe_key)
    .where("deleted_at", "is", null),
);

function wordsOfDuplicate({ state, called }: EarlierMail): string {
  const before = "It was left out, because the same mail has been here before";
  const again = "that message has been deleted since. To have it done, write it as a new mail.";
  if (called)
    return `${before} and failed after its tools had been called: what they did is not known any more, as ${again}`;
  if (state === "failed") return `${before} and failed as often as it is tried; ${again}`;
  return `${before}; ${again}`;
}

/** Returns whether a mail that is left out may still have a row of its own. */
function hasRow(app: App, tx: Db, { standing, mail }: Pick<Skipped, "standing" | "mail">): boolean {
  const turn = { key: `skipped:${standing.inbox.id}:${proofOf(mail.identity)}`, rule: ROWS };
  return takeTurn(app, tx, turn).ok;
}

export function proofOf(identity: Pick<Examined["identity"], "authenticated"> | undefined): string {
  return identity?.authenticated === true ? "proven" : "unproven";
}

/** Returns the results of the sender's checks in the form that the history of an untaken mail stores. */
export function storedChecks({ auth, trusted_network }: Examined["identity"]): string {
  return JSON.stringify({ ...auth, trusted_network });
}
