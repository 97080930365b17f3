import { allText } from "../mail/mail-text.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { AppError } from "../errors.ts";
import { decodeCursor, pageOf } from "../lib/pagination.ts";
import { isHeldHere, isKeptHere } from "../mail/send.ts";

/** Mails that the server sent, is sending, or keeps in its capture box; the newest first and without their text. */
export async function listOutgoing(
  app: App,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
) {
  const rows = await outgoing(app.db)
    .$if(cursor !== undefined, (query) =>
      query.where("outgoing_mails.id", "<", decodeCursor(cursor ?? "", ["id"])[0]),
    )
    .orderBy("outgoing_mails.id", "desc")
    .limit(limit + 1)
    .execute();
  return pageOf(rows, limit, { view: (row) => viewMail(app, row), key: ({ id }) => [id] });
}

/**
 * With the whole mail where it is in the capture box: there its operator is who reads the mail. Letters of the server
 * itself are for a person who has signed in: by a login code in one of them an API key would become a sign-in.
 */
export async function readOutgoing(app: App, id: string, { key_id }: { key_id: string | null }) {
  const row = await outgoing(app.db).select("raw").where("outgoing_mails.id", "=", id).executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such mail.");
  const { raw, ...mail } = row;
  const words = { subject: null, text: null, raw: null };
  const secret = key_id !== null && mail.message_id === null;
  if (raw === null || secret || app.config.outbound.mode !== "capture" || !isKeptHere(mail))
    return { ...viewMail(app, mail), ...words };
  return { ...viewMail(app, mail), ...(await wordsOf(app, raw)), raw: Buffer.from(raw).toString("utf8") };
}

/** As its reader sees it. */
async function wordsOf(app: App, raw: Uint8Array) {
  const outcome = await app.parser.parse(raw);
  if (!outcome.ok) return { subject: null, text: outcome.text };
  const { subject } = outcome.mail;
  return { subject, text: allText(outcome.mail) };
}

function viewMail<Row extends { status: string; response: string | null; completed: number | null }>(
  { config }: App,
  row: Row,
) {
  return { ...row, kept_here: isKeptHere(row), held: isHeldHere(config.outbound, row) };
}

function outgoing(db: Db) {
  return db
    .selectFrom("outgoing_mails")
    .innerJoin("users", "users.id", "outgoing_mails.user_id")
    .select([
      "outgoing_mails.id",
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
