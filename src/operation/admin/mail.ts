import { allText } from "../../mail/reading/mail-text.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { OutgoingMailRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { decodeCursor, encodeCursor, type Page } from "../../lib/pagination.ts";
import { decodeWords, readHeaders } from "../../mail/reading/headers.ts";
import { isHeldHere, isKeptHere } from "../../mail/sending/send.ts";

/** How many mails one page of a search looks at, at most. */
const MAX_LOOKED_AT = 1_000;
/** Bytes of a mail that are read for its subject. */
const HEAD_BYTES = 8_192;
/** A string that sorts after every id. */
const AFTER_ALL = "g";

/** The user who asks. */
export interface Reader {
  user: Pick<UserRow, "id">;
  key_id: string | null;
}

interface Wanted {
  limit: number;
  cursor?: string | undefined;
  status?: OutgoingMailRow["status"] | undefined;
  /** Text to find in the recipient, the account's address or, where it is shown, the subject. */
  q?: string | undefined;
}

/** Returns a page of mails that the server sent, is sending, or captured; the newest first and without their text. */
export async function listOutgoing(
  app: App,
  reader: Reader,
  { limit, cursor, status, q }: Wanted,
): Promise<Page<ReturnType<typeof listed>>> {
  const wanted = q?.trim().toLowerCase() ?? "";
  const fits = ({ to, account, subject }: ReturnType<typeof listed>): boolean =>
    [to, account, subject].some((text) => text?.toLowerCase().includes(wanted));
  const found: ReturnType<typeof listed>[] = [];
  let below = cursor === undefined ? AFTER_ALL : decodeCursor(cursor, ["id"])[0];
  for (let looked = 0; looked < MAX_LOOKED_AT;) {
    const rows = await someBelow(app.db, { below, status, limit: limit + 1 });
    for (const row of rows) {
      if (found.length === limit) return { items: found, next_cursor: encodeCursor([below]) };
      const mail = listed(app, reader, row);
      if (fits(mail)) found.push(mail);
      below = row.id;
    }
    if (rows.length <= limit) return { items: found, next_cursor: null };
    looked += rows.length;
  }
  return { items: found, next_cursor: encodeCursor([below]) };
}

function someBelow(
  db: Db,
  { below, status, limit }: { below: string; status: Wanted["status"]; limit: number },
): Promise<Listed[]> {
  return outgoing(db)
    .select((eb) => eb.fn<Uint8Array | null>("substr", ["raw", eb.val(1), eb.val(HEAD_BYTES)]).as("head"))
    .where("outgoing_mails.id", "<", below)
    .$if(status !== undefined, (query) => query.where("outgoing_mails.status", "=", status ?? "sent"))
    .orderBy("outgoing_mails.id", "desc")
    .limit(limit)
    .execute();
}

type Outgoing = Awaited<ReturnType<ReturnType<typeof outgoing>["execute"]>>[number];
type Listed = Outgoing & { head: Uint8Array | null };

function listed(app: App, reader: Reader, { head, ...row }: Listed) {
  return { ...viewMail(app, row), subject: head && mayRead(app, reader, row) ? subjectIn(head) : null };
}

function subjectIn(head: Uint8Array): string {
  return decodeWords(readHeaders(head).get("subject") ?? "");
}

/** Returns an outgoing mail, with its whole text where the reader may see that. */
export async function readOutgoing(app: App, reader: Reader, id: string) {
  const row = await outgoing(app.db).select("raw").where("outgoing_mails.id", "=", id).executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such mail.");
  const { raw, ...mail } = row;
  if (raw === null || !mayRead(app, reader, mail))
    return { ...viewMail(app, mail), subject: null, text: null, raw: null };
  return { ...viewMail(app, mail), ...(await partsOfMail(app, raw)), raw: Buffer.from(raw).toString("utf8") };
}

/**
 * Returns whether an administrator may read a mail: an answer of their own account and, in the capture box, any mail,
 * because the operator is its reader there. Mails of the server itself (letters) are shown only to a person who has
 * signed in, and to nobody when they are really sent: with a login code from one, an API key or an old session could
 * sign in.
 */
function mayRead({ config }: App, { user, key_id }: Reader, mail: Outgoing): boolean {
  const captured = config.outbound.mode === "capture" && isKeptHere(mail);
  if (mail.message_id === null) return captured && key_id === null;
  return captured || mail.user_id === user.id;
}

/** Returns the parts of a mail as its recipient sees them. */
async function partsOfMail(app: App, raw: Uint8Array) {
  const outcome = await app.parser.parse(raw, { ours: true });
  if (!outcome.ok) return { subject: null, text: outcome.text };
  const { subject } = outcome.mail;
  return { subject, text: allText(outcome.mail) };
}

function viewMail({ config }: App, { user_id: _owner, ...row }: Outgoing) {
  return { ...row, kept_here: isKeptHere(row), held: isHeldHere(config.outbound, row) };
}

function outgoing(db: Db) {
  return db
    .selectFrom("outgoing_mails")
    .innerJoin("users", "users.id", "outgoing_mails.user_id")
    .select([
      "outgoing_mails.id",
      "outgoing_mails.user_id",
      "outgoing_mails.kind",
      "users.email as account",
      "outgoing_mails.envelope_to as to",
      "outgoing_mails.message_id",
      "outgoing_mails.status",
      "outgoing_mails.response",
      "outgoing_mails.attempts",
      "outgoing_mails.created",
      "outgoing_mails.completed",
    ]);
}
