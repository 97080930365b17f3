import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { ApprovalRow, MessageRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { decodeCursor, type Page, pageOf } from "../../lib/pagination.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { shownArguments } from "../../trust/shown/shown-call.ts";

export const STATUSES = ["pending", "approved", "done", "failed", "unknown", "refused", "expired"] as const;
export type ApprovalStatus = (typeof STATUSES)[number];

/** What a request says of itself to people. */
export function statusOf(
  { state, expires_at }: Pick<ApprovalRow, "state" | "expires_at">,
  now: number,
): ApprovalStatus {
  if (state === "pending") return expires_at > now ? "pending" : "expired";
  return state === "called" ? "approved" : state;
}

/** Where requests are read, and the present, by which they expire. */
type Reading = Pick<App, "db" | "calmNow">;

type Shown = ApprovalRow & Pick<MessageRow, "sender" | "subject">;

export type ApprovalView = ReturnType<typeof viewOf>;

/** The requests of an account, the newest first. */
export async function listApprovals(
  { db, calmNow }: Reading,
  user: UserRow,
  { limit, cursor, status }: { limit: number; cursor?: string; status?: ApprovalStatus },
): Promise<Page<ApprovalView>> {
  const at = calmNow();
  const rows = await withOrigin(db)
    .where("approvals.user_id", "=", user.id)
    .$if(cursor !== undefined, (query) =>
      query.where("approvals.id", "<", decodeCursor(cursor ?? "", ["id"])[0]),
    )
    .$if(status === "pending", (query) => query.where("approvals.expires_at", ">", at))
    .$if(status === "expired", (query) => query.where("approvals.expires_at", "<=", at))
    .$if(status !== undefined, (query) => query.where("approvals.state", "in", STATES[status ?? "pending"]))
    .orderBy("approvals.id", "desc")
    .limit(limit + 1)
    .execute();
  return pageOf(rows, limit, { view: (row) => viewOf(row, at), key: ({ id }) => [id] });
}

const STATES: Record<ApprovalStatus, ApprovalRow["state"][]> = {
  pending: ["pending"],
  approved: ["approved", "called"],
  done: ["done"],
  failed: ["failed"],
  unknown: ["unknown"],
  refused: ["refused"],
  expired: ["pending"],
};

export async function readApproval(
  { db, calmNow }: Reading,
  user: Pick<UserRow, "id">,
  id: string,
): Promise<ApprovalView> {
  return viewOf(await ownApproval(db, user, id), calmNow());
}

/** Some requests of an account, the oldest first, for its export. */
export async function approvalsAfter(
  { db, calmNow }: Reading,
  user: UserRow,
  { after, limit }: { after: string; limit: number },
): Promise<ApprovalView[]> {
  const rows = await withOrigin(db)
    .where("approvals.user_id", "=", user.id)
    .where("approvals.id", ">", after)
    .orderBy("approvals.id")
    .limit(limit)
    .execute();
  return rows.map((row) => viewOf(row, calmNow()));
}

/** The user's own request, or `not_found`, whether it is unknown or somebody else's. */
export async function ownApproval(db: Db, user: Pick<UserRow, "id">, id: string): Promise<Shown> {
  const row = await withOrigin(db)
    .where("approvals.id", "=", id)
    .where("approvals.user_id", "=", user.id)
    .executeTakeFirst();
  if (row) return row;
  throw new AppError("not_found", "There is no such request.");
}

/** How many requests of an account wait for an answer. */
export async function waitingCount(db: Db, user_id: string, now: number): Promise<number> {
  const [row] = await waiting(db, { user_id, now });
  return row?.count ?? 0;
}

const waiting = prepared((db, key: { user_id: string; now: number }) =>
  db
    .selectFrom("approvals")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", key.user_id)
    .where("state", "=", "pending")
    .where("expires_at", ">", key.now),
);

export const approvalById = prepared((db, key: { id: string; user_id: string }) =>
  db.selectFrom("approvals").selectAll().where("id", "=", key.id).where("user_id", "=", key.user_id),
);

/** What is to be done is gone with the message that wanted it. */
function withOrigin(db: Db) {
  return db
    .selectFrom("approvals")
    .innerJoin("messages as origin", "origin.id", "approvals.message_id")
    .where("origin.deleted_at", "is", null)
    .selectAll("approvals")
    .select(["origin.sender", "origin.subject"]);
}

/** The arguments of a stored call; null where a damaged disk has left none. */
export function argumentsOf({
  arguments: text,
}: Pick<ApprovalRow, "arguments">): Record<string, unknown> | null {
  return storedJson<Record<string, unknown> | null>(text, null);
}

function shownNow(args: Record<string, unknown>): string | null {
  const shown = shownArguments(args);
  return "text" in shown ? shown.text : null;
}

function viewOf(row: Shown, now: number) {
  const args = argumentsOf(row);
  return {
    id: row.id,
    inbox_id: row.inbox_id,
    message_id: row.message_id,
    run_id: row.run_id,
    target: row.target,
    tool: row.tool,
    arguments: args ?? {},
    shown: args === null ? null : (row.shown ?? shownNow(args)),
    changes: row.changes,
    hash: row.hash,
    cause: row.cause,
    read_others: row.tainted === 1,
    status: statusOf(row, now),
    outcome: row.outcome,
    sender: row.sender,
    subject: row.subject,
    expires_at: row.expires_at,
    decided_at: row.decided_at,
    created: row.created,
  };
}
