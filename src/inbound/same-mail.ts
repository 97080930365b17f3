import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { jsonMember } from "../db/json.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { Authority, MailKeyRow, MessageRow, MessageState } from "../db/schema.ts";
import { isMachineReason } from "../mail/reading/machine-mail.ts";
import { CANCELLED_REASON } from "../resources/messages/cancelled.ts";
import { storedAuth } from "../resources/messages/stored-auth.ts";
import { RANK } from "./judge-sender.ts";
import { sha256Bytes } from "../lib/sha256.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";

/** Seconds within which a mail from the author's own server counts as the same one again (decision L.6). */
const DIRECT_SECONDS = 7 * DAY_SECONDS;
/** The same for one with neither a Message-ID nor a Date: a script may send the same words every day. */
const UNMARKED_SECONDS = 20 * HOUR_SECONDS;
/** A signed mail that is older gives no authority: it could no longer be told whether it has been here before. */
export const MAX_AGE_SECONDS = 365 * DAY_SECONDS;
/** How far the clock of an author may be ahead. */
export const MAX_AHEAD_SECONDS = DAY_SECONDS;
/** How long a mail is recognised at least. A mail that came with a clock ahead of ours gets old that much later. */
export const KEY_SECONDS = MAX_AGE_SECONDS + MAX_AHEAD_SECONDS;
const HASH_BYTES = 16;
/**
 * Marks follow the hash in a key, so that all keys of a mail lie side by side. The key of a mail that was worked on has
 * no mark; this one says that a machine sent it.
 */
const MACHINE = 1;
/**
 * Marks of failures, one for each time that a mail which did not come straight from its author's server ran and failed.
 * Only the strongest failures count, so no more have to be kept.
 */
const FAILED = [2, 3, 4];
/** The mark of a mail that failed after calls of which no note is left. */
const CALLED = 5;
const BEYOND = 0xff;

/** A mail with the same key that came to the same inbox before; `id` is null once its message has been deleted. */
export interface EarlierMail {
  id: string | null;
  authority: Authority;
  vouched: number;
  state: MessageState;
  /** It was proven to be its author's, and it was a machine's or of a form on a web page. */
  machine: boolean;
  /** Its owner cancelled it, or a rule of theirs left it out: it is not to be done when it comes again either. */
  cancelled: boolean;
  /** It failed after calls that may have changed something, and no note of these is left. */
  called: boolean;
}

/** What is known of earlier mails with one key. */
interface Earlier {
  /** Every such mail; of mails from the author's own server only those of the last days (`DIRECT_SECONDS`). */
  mails: EarlierMail[];
  /** Whether one has failed, however long ago, whose message is still there. */
  failed: boolean;
}

/** Returns the mails with this key that came to its inbox before. */
export async function findEarlier(
  app: App,
  tx: Db,
  mail: { inbox_id: string; dedupe_key: string; direct: boolean; unmarked?: boolean; said: string | null },
): Promise<Earlier> {
  const { inbox_id, dedupe_key, direct, unmarked = false, said } = mail;
  // Anybody may send a signed mail again at any time, but what comes from the author's own server comes from the
  // author.
  const window = unmarked ? UNMARKED_SECONDS : DIRECT_SECONDS;
  const since = direct ? app.calmNow() - window : 0;
  const known = await sameMail(tx, { inbox_id, dedupe_key, ...keysOf(dedupe_key), since });
  // Scripts and devices give several mails one Message-ID.
  const rows = known.filter((row) => said === null || [null, said].includes(saidIn(row)));
  // What the owner tries again takes nothing from the tries of whoever sends the mail.
  const counted = rows.filter(
    ({ created, retry_of, state }) => created > since && (retry_of === null || !isUnfinished(state)),
  );
  const mails = counted.map((row) => {
    const { authority, vouched, reason } = row;
    const became =
      row.state === null
        ? becameOf(row.key_hash)
        : { state: row.state, machine: isMachines(row), called: false };
    // A message that its owner has deleted is not shown any more, so nothing can be counted in it.
    const id = row.deleted_at === null ? row.id : null;
    return Object.assign(became, { id, authority, vouched, cancelled: isUnwanted(reason) });
  });
  return { mails, failed: rows.some(({ state }) => state === "failed") };
}

/**
 * A hash of what a mail says that came straight from its author's server; null for any other, in which those who sent it
 * on may have changed white space and line ends.
 */
function saidIn({ body_hash, vouched, signed_form }: Said): string | null {
  return vouched === 1 && signed_form === null ? body_hash : null;
}

type Said = Pick<Known, "body_hash" | "vouched" | "signed_form">;

/** What a key says became of its mail. */
function becameOf(key_hash: Uint8Array | null): Pick<EarlierMail, "state" | "machine" | "called"> {
  const mark = key_hash?.[HASH_BYTES];
  if (mark === undefined) return { state: "done", machine: false, called: false };
  if (mark === MACHINE) return { state: "skipped", machine: true, called: false };
  return { state: "failed", machine: false, called: mark === CALLED };
}

/** Selects why a message was not taken for its sender's own word, or null; see `whyForOthers`. */
export const forOthers = jsonMember("messages.auth", "for_others");
const signedForm = jsonMember("messages.auth", "signed_form");

/** The bounds between which all keys of a mail lie. */
interface Keys {
  first: Uint8Array;
  last: Uint8Array;
}

/** One query, because every mail asks it. Most installations have few keys without a message, and many have none. */
const sameMail = prepared((db, mail: Keys & { inbox_id: string; dedupe_key: string; since: number }) =>
  db
    .selectFrom("messages")
    .select([
      "id",
      "authority",
      "vouched",
      "state",
      "reason",
      "no_reply_reason",
      "retry_of",
      "created",
      "deleted_at",
      "body_hash",
    ])
    .select([forOthers.as("for_others"), signedForm.as("signed_form")])
    .select((eb) => eb.lit(null).$castTo<Uint8Array | null>().as("key_hash"))
    .$castTo<Known>()
    .where("inbox_id", "=", mail.inbox_id)
    .where("dedupe_key", "=", mail.dedupe_key)
    .where((eb) => eb.or([eb("created", ">", mail.since), eb("state", "=", "failed")]))
    .unionAll(
      keptKeys(db, mail)
        .select((eb) => [
          eb.lit(null).$castTo<string | null>().as("id"),
          "authority",
          "vouched",
          eb.lit(null).$castTo<MessageState | null>().as("state"),
          eb.lit(null).$castTo<string | null>().as("reason"),
          eb.lit(null).$castTo<string | null>().as("no_reply_reason"),
          eb.lit(null).$castTo<string | null>().as("retry_of"),
          "created",
          eb.lit(null).$castTo<number | null>().as("deleted_at"),
          eb.lit(null).$castTo<string | null>().as("body_hash"),
          eb.lit(null).$castTo<string | null>().as("for_others"),
          eb.lit(null).$castTo<string | null>().as("signed_form"),
          eb.ref("key_hash").$castTo<Uint8Array | null>().as("key_hash"),
        ])
        .where("created", ">", mail.since),
    ),
);

/** A message, or the key that is left of a deleted one, which has neither id nor state. */
interface Known extends Pick<EarlierMail, "id" | "authority" | "vouched"> {
  created: number;
  state: MessageState | null;
  reason: string | null;
  no_reply_reason: string | null;
  retry_of: string | null;
  deleted_at: number | null;
  body_hash: string | null;
  for_others: string | null;
  signed_form: string | null;
  key_hash: Uint8Array | null;
}

function keptKeys(db: Db, { inbox_id, first, last }: Keys & { inbox_id: string }) {
  return db
    .selectFrom("mail_keys")
    .where("inbox_id", "=", inbox_id)
    .where("key_hash", ">=", first)
    .where("key_hash", "<", last);
}

type Weight = Pick<EarlierMail, "authority" | "vouched">;
type Weighed = Weight & { direct: boolean };

/**
 * Returns the earlier mail because of which this one must not be worked on. A mail that failed may be sent again; but
 * if anybody could be the one who sends it again, it is tried only as often as `FAILED` allows.
 */
export function originalOf(earlier: EarlierMail[], mail: Weighed): EarlierMail | undefined {
  const original = earlier.find((one) => isOriginal(one, mail));
  if (original || mail.direct) return original;
  const failed = earlier.filter((one) => isUnfinished(one.state) && rankOf(one) >= rankOf(mail));
  return failed.length < FAILED.length ? undefined : failed[0];
}

type Retried = Pick<MessageRow, keyof Weight | "inbox_id" | "dedupe_key" | "body_hash" | "auth">;

/**
 * Returns the later copy of a failed mail that prevents a retry: the copy does the work, did it, or may have done some
 * of it. The copy may be its author's as well as this one.
 */
export async function workedOn(
  app: App,
  tx: Db,
  { inbox_id, dedupe_key, authority, vouched, body_hash, auth }: Retried,
): Promise<EarlierMail | undefined> {
  if (inbox_id === null || dedupe_key === null) return undefined;
  const { signed_form } = storedAuth({ auth });
  const said = signed_form === undefined && vouched === 1 ? body_hash : null;
  const { mails } = await findEarlier(app, tx, { inbox_id, dedupe_key, direct: false, said });
  return mails.find(
    (one) => (makesDuplicates(one.state) || one.called) && rankOf(one) >= rankOf({ authority, vouched }),
  );
}

function isOriginal(earlier: EarlierMail, mail: Weighed): boolean {
  // Marks of machines, and a form's Reply-To, are hardly ever signed. Whoever has such a mail can take them out, and
  // send it as if it were an order of its author's.
  if (earlier.machine && !mail.direct) return true;
  // A mail of weaker authority must not stand for this one: a stranger could otherwise swallow the owner's mail.
  const { state, cancelled, called } = earlier;
  return (makesDuplicates(state) || cancelled || called) && rankOf(earlier) >= rankOf(mail);
}

/**
 * Returns whether a machine sent it, by what became of it. A forged mail does not count: it says nothing about the real
 * sender's mail.
 */
function isMachines({
  authority,
  state,
  reason,
  no_reply_reason,
  for_others,
}: Pick<Keyed | Known, "authority" | "state" | "reason" | "no_reply_reason" | "for_others">): boolean {
  if (authority === "unauthenticated") return false;
  if (for_others !== null) return true;
  return isMachineReason(no_reply_reason) || (state === "skipped" && isMachineReason(reason));
}

/** Returns whether a mail in this state keeps a copy of it from being worked on. */
function makesDuplicates(state: MessageState): boolean {
  return state === "received" || state === "done";
}

/** Returns whether a mail ended for a reason that means that its owner does not want it done. */
function isUnwanted(reason: string | null): boolean {
  return reason === CANCELLED_REASON || reason === "rule" || reason === "kept_by_rule";
}

function isUnfinished(state: MessageState | null): boolean {
  return state === "failed" || state === "limited";
}

function rankOf({ authority, vouched }: Weight): number {
  return 2 * RANK.indexOf(authority) + vouched;
}

/** The columns of a message that `keepKey` reads. */
export type Keyed = Pick<
  MessageRow,
  | "inbox_id"
  | "dedupe_key"
  | "authority"
  | "vouched"
  | "state"
  | "reason"
  | "no_reply_reason"
  | "retry_of"
  | "created"
> & {
  /** As `forOthers` selects it. */
  for_others: string | null;
  /** It made calls that may have changed something, and no message is left that knows them. */
  calls_lost: boolean;
};

/** Keeps what is needed to recognise a mail, in the transaction that deletes its message. */
export async function keepKey(app: App, tx: Db, message: Keyed): Promise<void> {
  const { inbox_id, dedupe_key, authority, vouched, state, reason, retry_of, created } = message;
  if (inbox_id === null || dedupe_key === null) return;
  if (created <= app.calmNow() - KEY_SECONDS) return;
  const row = { inbox_id, authority, vouched, created };
  if (makesDuplicates(state) || isUnwanted(reason))
    await keepHash(tx, { ...row, key_hash: hashOf(dedupe_key) });
  // It would be unknown which of the calls must not be made again.
  if (message.calls_lost) await keepHash(tx, { ...row, key_hash: keyOf(dedupe_key, CALLED) });
  if (isMachines(message)) await keepHash(tx, { ...row, key_hash: keyOf(dedupe_key, MACHINE) });
  if (isUnfinished(state) && retry_of === null)
    await keepHash(tx, { ...row, key_hash: await slotFor(tx, inbox_id, dedupe_key) });
}

/** Returns the key under which to store one more failure of a mail: a free one, or that of its weakest failure. */
async function slotFor(tx: Db, inbox_id: string, dedupe_key: string): Promise<Uint8Array> {
  const kept = await keysOfMail(tx, { inbox_id, ...keysOf(dedupe_key) });
  const markOf = ({ key_hash }: { key_hash: Uint8Array }) => key_hash[HASH_BYTES] ?? 0;
  const free = FAILED.find((mark) => !kept.some((key) => markOf(key) === mark));
  if (free !== undefined) return keyOf(dedupe_key, free);
  const failures = kept.filter((key) => FAILED.includes(markOf(key)));
  return failures.reduce((one, other) => (rankOf(other) < rankOf(one) ? other : one)).key_hash;
}

const keysOfMail = prepared((db, mail: Keys & { inbox_id: string }) =>
  keptKeys(db, mail).select(["key_hash", "authority", "vouched"]),
);

async function keepHash(tx: Db, row: MailKeyRow): Promise<void> {
  const [known] = await knownKey(tx, row);
  if (known && rankOf(known) > rankOf(row)) return;
  if (known) await replaceKey(tx, row);
  else await insertRow(tx, "mail_keys", row);
}

const knownKey = prepared((db, key: Pick<MailKeyRow, "inbox_id" | "key_hash">) =>
  db
    .selectFrom("mail_keys")
    .select(["authority", "vouched"])
    .where("inbox_id", "=", key.inbox_id)
    .where("key_hash", "=", key.key_hash),
);

const replaceKey = prepared((db, row: MailKeyRow) =>
  db
    .updateTable("mail_keys")
    .set({ authority: row.authority, vouched: row.vouched, created: row.created })
    .where("inbox_id", "=", row.inbox_id)
    .where("key_hash", "=", row.key_hash),
);

/** Adds one to the count of an earlier mail. */
export const countAgain = prepared((db, message: { id: string }) =>
  db
    .updateTable("messages")
    .set((eb) => ({ duplicates: eb("duplicates", "+", 1) }))
    .where("id", "=", message.id),
);

function keysOf(dedupe_key: string): Keys {
  const first = hashOf(dedupe_key);
  return { first, last: withMark(first, BEYOND) };
}

/** A key of its own for each mark: what became of a mail, and that a machine had sent it, are two facts to keep. */
function keyOf(dedupe_key: string, mark: number): Uint8Array {
  return withMark(hashOf(dedupe_key), mark);
}

function withMark(hash: Uint8Array, mark: number): Uint8Array {
  const key = new Uint8Array(HASH_BYTES + 1);
  key.set(hash);
  key[HASH_BYTES] = mark;
  return key;
}

function hashOf(dedupe_key: string): Uint8Array {
  return sha256Bytes(dedupe_key).subarray(0, HASH_BYTES);
}
