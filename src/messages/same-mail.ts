import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { Authority, MailKeyRow, MessageRow, MessageState } from "../db/schema.ts";
import { isMachineReason } from "../mail/machine-mail.ts";
import { RANK } from "./policy.ts";
import { sha256Bytes } from "../lib/sha256.ts";

const DAY_SECONDS = 86_400;
/** Within which a mail from the author's own server is the same one again (decision L.6). */
const DIRECT_SECONDS = 7 * DAY_SECONDS;
/** A signed mail that is older gives no authority: nobody could tell any more whether it has been here before. */
export const MAX_AGE_SECONDS = 365 * DAY_SECONDS;
/** How far the clock of an author may be ahead. */
export const MAX_AHEAD_SECONDS = DAY_SECONDS;
/** So long a mail is known again at least. A mail that came with a clock ahead of ours gets old that much later. */
export const KEY_SECONDS = MAX_AGE_SECONDS + MAX_AHEAD_SECONDS;
const KEY_BYTES = 16;
/** How often a mail runs that did not come straight from its author's server, as long as it fails. */
const TRIES_OF_SIGNED = 3;

/** A mail with the same key that came to the same inbox before; without an id once its message has been deleted. */
export interface EarlierMail {
  id: string | null;
  authority: Authority;
  vouched: number;
  state: MessageState;
  /** It was proven to be its author's, and a machine's. */
  machine: boolean;
}

/** All mails of this key that came before, of those from the author's own server the ones of the last days. */
export async function findEarlier(
  app: App,
  tx: Db,
  mail: { inbox_id: string; dedupe_key: string; direct: boolean },
): Promise<EarlierMail[]> {
  const { inbox_id, dedupe_key, direct } = mail;
  // Anybody may send a signed mail again, at any time; what came from the author's own server is the author's.
  const since = direct ? app.calmNow() - DIRECT_SECONDS : 0;
  const hashes = { key_hash: hashOf(dedupe_key), machine_hash: machineHashOf(dedupe_key) };
  const rows = await sameMail(tx, { inbox_id, dedupe_key, ...hashes, since });
  return rows.map(({ id, authority, vouched, state, ...row }) => {
    const machine = row.machine === 1 || isMachines({ authority, state, ...row });
    return { id, authority, vouched, state, machine };
  });
}

interface Same {
  inbox_id: string;
  dedupe_key: string;
  key_hash: Uint8Array;
  machine_hash: Uint8Array;
  since: number;
}

/** One query, as every mail asks it; most installations have few keys without a message, and many have none. */
const sameMail = prepared((db, mail: Same) =>
  db
    .selectFrom("messages")
    .select(["authority", "vouched", "state", "reason", "no_reply_reason"])
    .select((eb) => [
      eb.lit(0).$castTo<number>().as("machine"),
      eb.ref("id").$castTo<string | null>().as("id"),
    ])
    .where("inbox_id", "=", mail.inbox_id)
    .where("dedupe_key", "=", mail.dedupe_key)
    .where("created", ">", mail.since)
    .unionAll(keptKeys(db, mail, { key_hash: mail.key_hash, state: "done", machine: 0 }))
    .unionAll(keptKeys(db, mail, { key_hash: mail.machine_hash, state: "skipped", machine: 1 })),
);

function keptKeys(
  db: Db,
  { inbox_id, since }: Same,
  kept: { key_hash: Uint8Array; state: MessageState; machine: 0 | 1 },
) {
  return db
    .selectFrom("mail_keys")
    .select(["authority", "vouched"])
    .select((eb) => [
      eb.val<MessageState>(kept.state).as("state"),
      eb.lit(null).$castTo<string | null>().as("reason"),
      eb.lit(null).$castTo<string | null>().as("no_reply_reason"),
      eb.lit(kept.machine).$castTo<number>().as("machine"),
      eb.lit(null).$castTo<string | null>().as("id"),
    ])
    .where("inbox_id", "=", inbox_id)
    .where("key_hash", "=", kept.key_hash)
    .where("created", ">", since);
}

type Weighed = Pick<EarlierMail, "authority" | "vouched"> & { direct: boolean };

/**
 * The mail that came before for which one of this standing must not be worked on. One that failed may be sent again,
 * but what anybody could be sending again is tried only so often.
 */
export function originalOf(earlier: EarlierMail[], mail: Weighed): EarlierMail | undefined {
  const original = earlier.find((one) => isOriginal(one, mail));
  if (original || mail.direct) return original;
  const failed = earlier.filter((one) => isUnfinished(one.state) && rankOf(one) >= rankOf(mail));
  return failed.length < TRIES_OF_SIGNED ? undefined : failed[0];
}

function isOriginal(earlier: EarlierMail, mail: Weighed): boolean {
  // The marks of machines are hardly ever signed: whoever has such a mail can take them out, and send on an order of its author's.
  if (earlier.machine && !mail.direct) return true;
  // A weaker one must not stand in for it: a stranger could otherwise swallow the owner's mail.
  return makesDuplicates(earlier.state) && rankOf(earlier) >= rankOf(mail);
}

/** Whether a machine sent it, by what became of it; whoever forges a mail of others says nothing about theirs. */
function isMachines({
  authority,
  state,
  reason,
  no_reply_reason,
}: Pick<MessageRow, "authority" | "state" | "reason" | "no_reply_reason">): boolean {
  if (authority === "unauthenticated") return false;
  return isMachineReason(no_reply_reason) || (state === "skipped" && isMachineReason(reason));
}

/** Whether what became of a mail keeps the same one from being worked on when it comes again. */
function makesDuplicates(state: MessageState): boolean {
  return state === "received" || state === "done";
}

function isUnfinished(state: MessageState): boolean {
  return state === "failed" || state === "limited";
}

function rankOf({ authority, vouched }: Pick<EarlierMail, "authority" | "vouched">): number {
  return 2 * RANK.indexOf(authority) + vouched;
}

/** What `keepKey` reads of a message. */
export type Keyed = Pick<
  MessageRow,
  "inbox_id" | "dedupe_key" | "authority" | "vouched" | "state" | "reason" | "no_reply_reason" | "created"
>;

/** Keeps what is needed to know a mail again, in the transaction that deletes its message. */
export async function keepKey(app: App, tx: Db, message: Keyed): Promise<void> {
  const { inbox_id, dedupe_key, authority, vouched, state, created } = message;
  if (inbox_id === null || dedupe_key === null) return;
  if (created <= app.calmNow() - KEY_SECONDS) return;
  const row = { inbox_id, authority, vouched, created };
  if (makesDuplicates(state)) await keepHash(tx, { ...row, key_hash: hashOf(dedupe_key) });
  if (isMachines(message)) await keepHash(tx, { ...row, key_hash: machineHashOf(dedupe_key) });
}

async function keepHash(tx: Db, row: MailKeyRow): Promise<void> {
  const [known] = await keyOf(tx, row);
  if (known && rankOf(known) > rankOf(row)) return;
  if (known) await replaceKey(tx, row);
  else await insertRow(tx, "mail_keys", row);
}

const keyOf = prepared((db, key: Pick<MailKeyRow, "inbox_id" | "key_hash">) =>
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

/** Kept beside the other: what became of a mail, and that a machine had sent it, are two things to know. */
function machineHashOf(dedupe_key: string): Uint8Array {
  return hashOf(`machine ${dedupe_key}`);
}

function hashOf(dedupe_key: string): Uint8Array {
  return sha256Bytes(dedupe_key).subarray(0, KEY_BYTES);
}
