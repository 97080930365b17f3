import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared, remembered } from "../../db/prepared.ts";
import type { OutgoingMailRow, UserRow } from "../../db/schema.ts";
import { withoutQuotes } from "../../lib/mail-address.ts";
import { asciiDomain } from "./send-outcome.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../../lib/durations.ts";

const MAX_SOFT_BOUNCES = 3;
/** Characters of an answer that are examined. */
const MAX_RESPONSE_CHARS = 1_000;
/** How long a soft bounce counts. */
const SOFT_MEMORY_SECONDS = 30 * DAY_SECONDS;

/**
 * Status codes of a dead address (RFC 3463): no such mailbox, no such domain, moved, accepts no mail. Not 5.1.0, which
 * is unspecific, and not 5.2.1, which servers use for disabled mailboxes but also for limits and filters.
 */
const DEAD_ADDRESS = /^5\.1\.(1|2|3|4|6|10)$/;
/** Words that contradict such a code: servers use it for mail they block, and for full mailboxes, as well. */
const FULL = /\b(?:full|quota|exceed(?:s|ed)?)\b/i;
const KEPT_OUT =
  /\b(?:too (?:many|much|fast)|(?:at a )?rate|limit(?:ed|s)?|block(?:ed|ing|list(?:ed)?|s)?|black ?list(?:ed)?|spam\w{0,20}|filter(?:ed|s)?|policy|policies|reputation|spf|dkim|dmarc|authenticat\w{0,10}|denied|reverse dns|ptr)\b/i;
/**
 * Status codes about this server, this mail or the path, not about the address: 1.7 and 1.8 concern the sender, and a
 * DNS without answer (4.4.3) may be ours.
 */
const NOT_THE_ADDRESS = /^([45]\.(1\.[789]|2\.3|3\.\d+|5\.\d+|6\.\d+|7\.\d+)|4\.4\.3)$/;
/** Status codes of a disabled or full mailbox (RFC 3463 §3.3). */
const OF_MAILBOX = /^[45]\.2\.[12]$/;
/** Unspecific status codes (RFC 3463 §3.1). */
const SAYS_NOTHING = /^[45]\.0\.\d+$/;

/** A bounce: the refusal of a server, or that in a delivery report. */
export interface Return {
  code?: number | undefined;
  enhanced?: string | undefined;
  response: string;
  /** The other server's words, where they are not in `response`. */
  said?: string | undefined;
}

/**
 * Returns the kind of a bounce. `hard`: the address is dead. `soft`: it may be. `other`: the address is not the
 * problem.
 */
export function kindOfReturn({
  code,
  enhanced,
  response,
  said = response,
}: Return): "hard" | "soft" | "other" {
  if (enhanced === undefined && code === undefined) return "other";
  const words = withoutAddresses(said.slice(0, MAX_RESPONSE_CHARS));
  const is_kept_out = KEPT_OUT.test(words);
  if (enhanced === undefined || SAYS_NOTHING.test(enhanced)) return is_kept_out ? "other" : "soft";
  if (DEAD_ADDRESS.test(enhanced)) return is_kept_out || FULL.test(words) ? "soft" : "hard";
  return isOfOthers(enhanced, is_kept_out) ? "other" : "soft";
}

function isOfOthers(enhanced: string, is_kept_out: boolean): boolean {
  return NOT_THE_ADDRESS.test(enhanced) || (is_kept_out && !OF_MAILBOX.test(enhanced));
}

/** Removes addresses from a text, since they may contain any word. */
function withoutAddresses(words: string): string {
  return words
    .split(/\s+/)
    .filter((word) => !word.includes("@"))
    .join(" ");
}

/** Counts a final bounce of an answer; after one hard bounce, or three soft ones, the address gets no more answers. */
export async function countReturn(
  app: App,
  tx: Db,
  mail: Pick<OutgoingMailRow, "user_id" | "envelope_to">,
  returned: Return,
): Promise<void> {
  const kind = kindOfReturn(returned);
  if (kind === "other") return;
  const key = keyOf(mail.user_id, mail.envelope_to);
  const [known] = await byKey(tx, key);
  const is_recent = known !== undefined && known.updated > app.calmNow() - SOFT_MEMORY_SECONDS;
  const soft_bounces = (is_recent ? known.soft_bounces : 0) + (kind === "soft" ? 1 : 0);
  const is_dead = kind === "hard" || soft_bounces >= MAX_SOFT_BOUNCES;
  const row = {
    reason: returned.response,
    soft_bounces,
    suppressed_at: known?.suppressed_at ?? (is_dead ? app.now() : null),
    updated: app.calmNow(),
  };
  await tx
    .insertInto("suppressions")
    .values({ ...key, ...row })
    .onConflict((conflict) => conflict.columns(["user_id", "address"]).doUpdateSet(row))
    .execute();
}

/** Why a mail is not sent, and whether it is for the owner of the account, to whom nobody else would tell it. */
export interface Suppressed {
  why: string;
  of_owner: boolean;
}

/**
 * Returns why a mail of an account may not go to its recipient; undefined if it may. Letters of the server are always
 * sent, and so is now and then an answer to the account's own owner: who gets the results of schedules need never write,
 * and what a server said of an address once may hold no longer.
 */
export async function suppressionOf(
  app: App,
  tx: Db,
  mail: Pick<OutgoingMailRow, "user_id" | "message_id" | "kind" | "envelope_to">,
): Promise<Suppressed | undefined> {
  if (mail.message_id === null) return undefined;
  const key = keyOf(mail.user_id, mail.envelope_to);
  const [row] = await byKey(tx, key);
  if (!row || row.suppressed_at === null) return undefined;
  const of_owner = isAccount(row, key.address);
  if (of_owner && (mail.kind === "notice" || restsUntil(row) <= app.calmNow())) return undefined;
  const what = mail.kind === "forward" ? "It is not forwarded" : "No answer is sent";
  const until = of_owner ? "; as your own address it is tried again within a day" : "";
  return {
    why: `${what} to ${key.address}, because mail to it came back. It gets answers again once it has written again and its server vouches for the mail${until}. What came back: ${row.reason}`,
    of_owner,
  };
}

/** How long the address of an account's own owner gets no answers after mail to it came back. */
const REST_SECONDS = 20 * HOUR_SECONDS;

function restsUntil({ updated }: { updated: number }): number {
  return updated + REST_SECONDS;
}

/** Until when the owner of an account can hardly be mailed, in unix seconds; null where mail to them arrives. */
export async function ownerRestsUntil(db: Db, user: Pick<UserRow, "id" | "email">): Promise<number | null> {
  const [row] = await byKey(db, keyOf(user.id, user.email));
  return row && row.suppressed_at !== null ? restsUntil(row) : null;
}

function isAccount({ account }: { account: string }, address: string): boolean {
  return asciiDomain(account).toLowerCase() === address;
}

/** Lifts the suppression of the owner's own address, once an answer to it has been handed over. */
export async function liftOfOwner(
  tx: Db,
  { user_id, envelope_to }: Pick<OutgoingMailRow, "user_id" | "envelope_to">,
): Promise<void> {
  const key = keyOf(user_id, envelope_to);
  const [row] = await byKey(tx, key);
  if (row && isAccount(row, key.address)) await deleteByKey(tx, key);
}

const byKey = remembered((db, key: { user_id: string; address: string }) =>
  db
    .selectFrom("suppressions")
    .innerJoin("users", "users.id", "suppressions.user_id")
    .select(["reason", "soft_bounces", "suppressed_at", "updated", "users.email as account"])
    .where("suppressions.user_id", "=", key.user_id)
    .where("suppressions.address", "=", key.address),
);

/** Lifts the suppression of an address whose owner has written, authenticated: mail can reach them again. */
export async function liftSuppression(tx: Db, user_id: string, address: string): Promise<void> {
  const key = keyOf(user_id, address);
  const [row] = await byKey(tx, key);
  if (row) await deleteByKey(tx, key);
}

const deleteByKey = prepared((db, key: { user_id: string; address: string }) =>
  db.deleteFrom("suppressions").where("user_id", "=", key.user_id).where("address", "=", key.address),
);

/** Returns the suppressed addresses of all accounts, newest first. */
export async function listSuppressions(db: Db) {
  return db
    .selectFrom("suppressions")
    .innerJoin("users", "users.id", "user_id")
    .select(["address", "email as account", "reason"])
    .select((eb) => eb.ref("suppressed_at").$notNull().as("since"))
    .where("suppressed_at", "is not", null)
    .orderBy("since", "desc")
    .orderBy("address")
    .execute();
}

/** Removes an address from the suppressions of every account. Returns for how many it was suppressed. */
export async function removeSuppression(app: App, address: string): Promise<number> {
  const gone = await app.write((tx) =>
    tx
      .deleteFrom("suppressions")
      .where("address", "=", asciiDomain(withoutQuotes(address)).toLowerCase())
      .where("suppressed_at", "is not", null)
      .executeTakeFirst(),
  );
  return Number(gone.numDeletedRows);
}

function keyOf(user_id: string, address: string): { user_id: string; address: string } {
  return { user_id, address: asciiDomain(address).toLowerCase() };
}
