import { refusalFor } from "../reasons.ts";
import type { App } from "../app.ts";
import { freeFor, type Storage, storageOf, type Whose } from "../resources/billing/storage.ts";
import type { Db } from "../db/database.ts";
import type { InboxRow, UserRow } from "../db/schema.ts";
import { judgeSender } from "./judge-sender.ts";
import { type Client, notePutOffFor, wasPutOffFor } from "./put-off.ts";
import { type Case, isOfHousehold, mayInstruct, type Standing } from "./standing.ts";

/** An inbox whose account has no room for a mail; `whose` says for whose mail. */
export interface FullInbox {
  row: InboxRow;
  user: UserRow;
  address: string;
  whose: Whose;
}

/** Who brings a mail, and its size; 0 where that is not known. */
export interface Coming extends Client {
  size: number;
}

/**
 * Returns the inboxes whose accounts have no room for a mail of `size` bytes. All of them, because each is refused by
 * itself when the mail comes again.
 */
export async function withoutRoom(app: App, tx: Db, size: number, cases: Case[]): Promise<FullInbox[]> {
  const full: FullInbox[] = [];
  const now = new Map<string, Storage>();
  for (const { recipient, standing } of cases) {
    const { inbox, address } = recipient;
    if (!inbox || !standing || !isKept(standing)) continue;
    const { row, user } = inbox;
    const whose = isOfHousehold(standing) ? "household" : "strangers";
    if (isNextToNothing(app, size, freeFor(inbox.storage, whose))) continue;
    const storage = now.get(user.id) ?? (await storageOf(app, tx, user));
    now.set(user.id, storage);
    if (freeFor(storage, whose) < size) full.push({ row, user, address, whose });
  }
  return full;
}

/** Returns whether a mail is stored. One that is refused, left out or has been here before leaves only a row. */
export function isKept({ verdict, skipped, original }: Standing): boolean {
  return verdict.accepted && !skipped && original === undefined;
}

/**
 * Returns whether a mail is so small that the room found at RCPT still suffices, however long ago that was: if every
 * connection that may be open had waited with such a mail, all of them together would be at most a tenth of the room.
 */
function isNextToNothing({ config: { smtp } }: App, size: number, free: number): boolean {
  return size * smtp.max_connections * 10 <= free;
}

/** Returns the reply if there is no room; `name` is the address or a name for it. */
export function fullAnswer(name: string, { whose, user }: Pick<FullInbox, "whose" | "user">) {
  const lack =
    whose === "household" ? "for the mail" : "left for mail of senders whom its owner has not listed";
  return {
    ...refusalFor(
      "storage_full",
      `The account of ${name} has no room ${lack}; its owner has been told, please try again later`,
    ),
    limit: `plans.${user.plan}.storage_mb`,
  };
}

/** Remembers which inboxes of a mail for several had no room, so that they can be told apart when it comes again. */
export function rememberFull(app: App, { row, whose }: FullInbox, client: Client): void {
  notePutOffFor(app, noRoom(row, whose), client);
}

/**
 * Returns the room that a mail needs, as far as RCPT can know: its announced size, within the owner's whole limit. For
 * a mail that was put off before, it is known whose it is; and if no size is announced, it may be the largest.
 */
export function needAtRcpt(
  app: App,
  { row, user }: Pick<FullInbox, "row" | "user">,
  { size, ...client }: Coming,
): { bytes: number; whose: Whose } {
  const known = (whose: Whose) => wasPutOffFor(app, noRoom(row, whose), client);
  const strange = known("strangers");
  if (!strange && !known("household")) return { bytes: size, whose: "household" };
  const bytes = size > 0 ? size : app.config.smtp.max_message_bytes;
  // Anybody can write any address into MAIL FROM, so what happened to a stranger must not put off the owner.
  const claimed = { from_address: client.mail_from.toLowerCase(), authenticated: true };
  const claims = mayInstruct(judgeSender(row, user, claimed));
  return { bytes, whose: strange && !claims ? "strangers" : "household" };
}

function noRoom({ id }: InboxRow, whose: Whose): string {
  return `${id}:no-room:${whose}`;
}
