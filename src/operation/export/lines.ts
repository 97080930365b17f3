import type { Expression, ExpressionBuilder, SqlBool } from "kysely";
import type { App } from "../../app.ts";
import { type ApprovalView, approvalsAfter } from "../../resources/approvals/view.ts";
import type { Db } from "../../db/database.ts";
import { BODY_BYTES, MESSAGE_BYTES } from "../../db/row-bytes.ts";
import type { LedgerRow, MessageRow, ReplayRow, Schema, UserRow } from "../../db/schema.ts";
import { portionsOf } from "../../lib/portions.ts";
import { areForgotten } from "../../resources/messages/forgotten.ts";
import { attachmentsOf } from "../../resources/messages/messages.ts";
import { viewActivity } from "../../resources/messages/view.ts";
import { viewReplay } from "../../resources/replays/view.ts";
import { listTestRuns, readTestRun } from "../../resources/test-runs/view.ts";
import { linesOf, pagesOf } from "./pages.ts";

type Lines = AsyncGenerator<Uint8Array>;

/** What an export needs to know of a message. `raw_mail_id` is null once the raw mail is purged. */
export type MessageCard = Pick<MessageRow, "id" | "created" | "raw_mail_id"> & { bytes: number };

/** Returns the pages of an account's messages, oldest first, without their texts. */
export function messagePages(db: Db, user: UserRow): AsyncGenerator<MessageCard[]> {
  return pagesOf<MessageCard>((last, limit) =>
    db
      .selectFrom("messages")
      .select(["id", "created", MESSAGE_BYTES.as("bytes")])
      .select((eb) =>
        eb.case().when(areForgotten(eb)).then(null).else(eb.ref("raw_mail_id")).end().as("raw_mail_id"),
      )
      .where("user_id", "=", user.id)
      .where("deleted_at", "is", null)
      .where("id", ">", last?.id ?? "")
      .orderBy("id")
      .limit(limit)
      .execute(),
  );
}

/** Builds the condition that a mail is about no message, or about one that its owner has not deleted. */
export function isShown(eb: ExpressionBuilder<Schema, "outgoing_mails">): Expression<SqlBool> {
  const deleted = eb
    .selectFrom("messages")
    .select("messages.id")
    .whereRef("messages.id", "=", "outgoing_mails.message_id")
    .where("messages.deleted_at", "is not", null);
  return eb.not(eb.exists(deleted));
}

/** Yields messages as the activity log shows them, with the sender's own words as well. */
export async function* messages(db: Db, user: UserRow): Lines {
  for await (const page of messagePages(db, user))
    for (const portion of portionsOf(page)) {
      const ids = portion.map(({ id }) => id);
      const rows = await db.selectFrom("messages").selectAll().where("id", "in", ids).orderBy("id").execute();
      const files = await attachmentsOf(db, ids);
      const lines = rows.map((row) => {
        const { authority, instruction, rfc_message_id } = row;
        const view = viewActivity(row, files.get(row.id) ?? []);
        return `${JSON.stringify({ ...view, authority, instruction, rfc_message_id })}\n`;
      });
      yield Buffer.from(lines.join(""));
    }
}

export function conversations(db: Db, user: UserRow): Lines {
  const all = db.selectFrom("conversations").selectAll().where("user_id", "=", user.id);
  const pages = pagesOf<Awaited<ReturnType<typeof all.execute>>[number]>((last, limit) => {
    const rest =
      last === undefined
        ? all
        : all.where((eb) => eb(eb.refTuple("last_at", "id"), ">", eb.tuple(last.last_at, last.id)));
    return rest.orderBy("last_at").orderBy("id").limit(limit).execute();
  });
  return linesOf(pages, ({ user_id: _owner, ...row }) => JSON.stringify(row));
}

export function approvals(app: Pick<App, "db" | "calmNow">, user: UserRow): Lines {
  const pages = pagesOf<ApprovalView>((last, limit) =>
    approvalsAfter(app, user, { after: last?.id ?? "", limit }),
  );
  return linesOf(pages, (view) => JSON.stringify(view));
}

export function replays(db: Db, user: UserRow): Lines {
  const all = db
    .selectFrom("replays")
    .innerJoin("messages", "messages.id", "replays.message_id")
    .selectAll("replays")
    .where("replays.user_id", "=", user.id)
    .where("messages.deleted_at", "is", null);
  const pages = pagesOf<ReplayRow>((last, limit) =>
    all
      .where("replays.id", ">", last?.id ?? "")
      .orderBy("replays.id")
      .limit(limit)
      .execute(),
  );
  return linesOf(pages, (row) => JSON.stringify(viewReplay(row)));
}

export async function* testRuns(app: App, user: UserRow): Lines {
  for (const { id } of await listTestRuns(app, user))
    yield Buffer.from(`${JSON.stringify(await readTestRun(app, user, id))}\n`);
}

export function outgoingMails(db: Db, user: UserRow): Lines {
  const all = db
    .selectFrom("outgoing_mails")
    .select(["id", "message_id", "kind", "envelope_to", "rfc_message_id", "status", "attempts"])
    .select(["response", "created", "completed"])
    .where("user_id", "=", user.id)
    .where(isShown);
  const pages = pagesOf<Awaited<ReturnType<typeof all.execute>>[number]>((last, limit) =>
    all
      .where("id", ">", last?.id ?? "")
      .orderBy("id")
      .limit(limit)
      .execute(),
  );
  return linesOf(pages, (row) => JSON.stringify(row));
}

/** Yields events as webhooks received them, byte for byte. */
export async function* events(db: Db, user: UserRow): Lines {
  const own = db.selectFrom("events").where("user_id", "=", user.id);
  const pages = pagesOf<{ id: string; bytes: number }>((last, limit) =>
    own
      .select(["id", BODY_BYTES.as("bytes")])
      .where("id", ">", last?.id ?? "")
      .orderBy("id")
      .limit(limit)
      .execute(),
  );
  for await (const page of pages)
    for (const portion of portionsOf(page)) {
      const ids = portion.map(({ id }) => id);
      const rows = await own.select("body").where("id", "in", ids).orderBy("id").execute();
      yield Buffer.from(rows.map(({ body }) => `${body}\n`).join(""));
    }
}

export async function* deliveries(db: Db, user: UserRow): Lines {
  const endpoints = db
    .selectFrom("webhook_endpoints")
    .select(["id", "url"])
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null);
  for (const { id, url } of await endpoints.orderBy("id").execute()) {
    const all = db.selectFrom("webhook_deliveries").selectAll().where("endpoint_id", "=", id);
    const pages = pagesOf<Awaited<ReturnType<typeof all.execute>>[number]>((last, limit) =>
      all
        .where("id", ">", last?.id ?? "")
        .orderBy("id")
        .limit(limit)
        .execute(),
    );
    yield* linesOf(pages, (row) => JSON.stringify(row.status === "pending" ? { ...row, url } : row));
  }
}

const LEDGER_COLUMNS = [
  "id",
  "created",
  "kind",
  "amount",
  "balance",
  "pool",
  "period",
  "message_id",
  "reference",
] as const satisfies (keyof LedgerRow)[];

export async function* ledger(db: Db, user: UserRow): Lines {
  yield Buffer.from(`${LEDGER_COLUMNS.join(",")}\n`);
  const all = db.selectFrom("ledger").select(LEDGER_COLUMNS).where("user_id", "=", user.id);
  const pages = pagesOf<Awaited<ReturnType<typeof all.execute>>[number]>((last, limit) => {
    const rest =
      last === undefined
        ? all
        : all.where((eb) => eb(eb.refTuple("period", "id"), ">", eb.tuple(last.period, last.id)));
    return rest.orderBy("period").orderBy("id").limit(limit).execute();
  });
  yield* linesOf(pages, (row) => LEDGER_COLUMNS.map((column) => csvOf(row[column])).join(","));
}

/** Returns a value as a field of CSV (RFC 4180 §2). */
function csvOf(value: string | number | null): string {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
