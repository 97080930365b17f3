import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { ApprovalRow, MessageRow } from "../../db/schema.ts";
import { AppError, invalid } from "../../errors.ts";
import { acceptConsent } from "../../inbound/accept-button.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { writtenMoment } from "../../lib/written-moment.ts";
import { type Caller, refuseEnded } from "../accounts/sessions.ts";
import { refuseUnverified } from "../accounts/verified.ts";
import { ownInbox } from "../inboxes/inboxes.ts";
import { refuseResting } from "../inboxes/room.ts";
import { messageById } from "../messages/messages.ts";
import { excerptOf } from "../../trust/shown/redact.ts";
import { type ApprovalView, approvalById, argumentsOf, ownApproval, readApproval, statusOf } from "./view.ts";

const WAITS_DAYS = 7;

/** What is known of a request when its run ends. */
export type NewApproval = Omit<
  ApprovalRow,
  "state" | "run_id" | "outcome" | "expires_at" | "decided_at" | "created"
>;

/** Until when a call that is asked about now can be allowed. A clock that leaps for a while changes nothing of that. */
export function lastMoment(app: Pick<App, "calmNow">): number {
  return app.calmNow() + WAITS_DAYS * DAY_SECONDS;
}

/** When the owner said what a message says: it may wait for long before it is worked on, and a clock may be ahead meanwhile. */
export function whenSaid(app: Pick<App, "calmNow">, { created }: Pick<MessageRow, "created">): number {
  return Math.min(app.calmNow(), created);
}

/** Stores a request for consent in the transaction that ends the run which wanted the call. */
export async function addApproval(app: App, tx: Db, request: NewApproval): Promise<void> {
  const row: ApprovalRow = {
    ...request,
    state: "pending",
    run_id: null,
    outcome: null,
    expires_at: lastMoment(app),
    decided_at: null,
    created: app.now(),
  };
  await tx.insertInto("approvals").values(row).execute();
  app.metrics.count("mailwright_approvals_total", { status: "pending" });
}

/**
 * Consents to a call by the button of its page: stores the message that makes it, with its job, in the transaction that takes the
 * consent. `hash`: what its page has shown.
 */
export async function approve(
  app: App,
  caller: Caller,
  { id, hash }: { id: string; hash: string },
): Promise<ApprovalView> {
  const { user } = caller;
  refuseUnverified(user);
  return app.write(async (tx) => {
    app.refuseIntake();
    await refuseEnded(app, tx, caller);
    const approval = await ownApproval(tx, user, id);
    refuseDecided(app, approval, user.timezone);
    if (approval.hash !== hash)
      throw invalid("body.hash", "other_call", "This is not the hash of the call that waits. Read it again.");
    const inbox = await ownInbox(tx, user, approval.inbox_id);
    await refuseResting(app, tx, user, inbox);
    const [origin] = await messageById(tx, { id: approval.message_id });
    if (!origin) throw new AppError("not_found", "There is no such request.");
    const message = await acceptConsent(app, tx, { user, inbox, origin, approval });
    await take(app, tx, { id, run_id: message.id, from: ["pending"], state: "approved" });
    return readApproval({ db: tx, calmNow: app.calmNow }, user, id);
  });
}

/** Refuses a call: it can never be made then. */
export async function refuse(app: App, caller: Caller, id: string): Promise<ApprovalView> {
  return app.write(async (tx) => {
    await refuseEnded(app, tx, caller);
    const approval = await ownApproval(tx, caller.user, id);
    refuseDecided(app, approval, caller.user.timezone);
    await take(app, tx, { id, run_id: null, from: ["pending"], state: "refused" });
    return readApproval({ db: tx, calmNow: app.calmNow }, caller.user, id);
  });
}

/**
 * Takes the decision about a request, in the transaction of whoever acts on it: false where it has been taken before, so that of two
 * answers at once one counts.
 */
export async function take(
  app: App,
  tx: Db,
  {
    id,
    run_id,
    from,
    state,
  }: Pick<ApprovalRow, "id" | "run_id" | "state"> & { from: ApprovalRow["state"][] },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("approvals")
    .set({ state, run_id, decided_at: app.now() })
    .where("id", "=", id)
    .where("state", "in", from)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  if (state !== "called") app.metrics.count("mailwright_approvals_total", { status: state });
  await tellPage(app, tx, id);
  return true;
}

/** Notes what came of the call, in the transaction that ends the message which made it. */
export async function settle(
  app: App,
  tx: Db,
  { id, state, outcome }: Pick<ApprovalRow, "id" | "outcome"> & { state: "done" | "failed" | "unknown" },
): Promise<void> {
  await tx
    .updateTable("approvals")
    .set({ state, outcome })
    .where("id", "=", id)
    // Another try of its message may find out more of one of which nothing is known.
    .where("state", "in", ["called", "unknown"])
    .execute();
  app.metrics.count("mailwright_approvals_total", { status: state });
}

/** Puts back a request of which nothing was called, so that it can be allowed again. */
export async function putBack(tx: Db, { id, run_id }: { id: string; run_id: string }): Promise<void> {
  await tx
    .updateTable("approvals")
    .set({ state: "pending", run_id: null, decided_at: null })
    .where("id", "=", id)
    .where("state", "=", "approved")
    .where("run_id", "=", run_id)
    .execute();
}

/**
 * Ends what a message had to do for a request, in whatever way the message ends. What it was to call and has not can be allowed
 * again; of what it has called stays known what its journal says.
 */
export async function leaveRequest(
  app: App,
  tx: Db,
  message: Pick<MessageRow, "id" | "user_id" | "approval_id" | "retry_of">,
  calls: { ok: boolean; text: string; unknown?: boolean }[],
): Promise<void> {
  const { approval_id, user_id } = message;
  if (approval_id === null) return;
  const [approval] = await approvalById(tx, { id: approval_id, user_id });
  if (approval === undefined || !isRunOf(approval, message)) return;
  const { id, state, run_id } = approval;
  if (state === "approved") await putBack(tx, { id, run_id: run_id ?? "" });
  if (state === "called") {
    const call = calls.at(-1);
    const heard = call === undefined || call.unknown === true ? "unknown" : call.ok ? "done" : "failed";
    const outcome = call === undefined ? null : excerptOf(call.text);
    await settle(app, tx, { id, state: heard, outcome });
  }
  await tellPage(app, tx, id);
}

async function tellPage(app: App, tx: Db, id: string): Promise<void> {
  const row = await tx
    .selectFrom("approvals")
    .select(["user_id", "message_id"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row) afterCommit(tx, () => app.changes.tell(row.user_id, row.message_id));
}

/** Why a request cannot be answered any more, and what to do instead; null while it can be. */
export function whyDecided(
  approval: Pick<ApprovalRow, "state" | "expires_at" | "decided_at" | "arguments">,
  { now, timezone }: { now: number; timezone: string },
): { sentence: string; mend: string } | null {
  const status = statusOf(approval, now);
  const when = (second: number | null): string => writtenMoment(second ?? 0, timezone);
  if (status === "expired")
    return { sentence: `It could be allowed until ${when(approval.expires_at)}, and no longer.`, mend: ANEW };
  if (status === "refused")
    return { sentence: `It was refused on ${when(approval.decided_at)}, and was not done.`, mend: ANEW };
  if (status === "approved")
    return {
      sentence: `It was allowed on ${when(approval.decided_at)}, and is being done.`,
      mend: "Wait for what comes of it: it is mailed to you, and stands on its page.",
    };
  if (status !== "pending")
    return {
      sentence: `It was allowed on ${when(approval.decided_at)}, and what came of it stands on its page. A consent is good for one call.`,
      mend: ANEW,
    };
  return argumentsOf(approval) === null
    ? {
        sentence: "What was to be called cannot be read any more: the database is damaged there.",
        mend: ANEW,
      }
    : null;
}

const ANEW = "If you still want it done, ask for it again in a new mail.";

function refuseDecided(app: App, approval: ApprovalRow, timezone: string): void {
  const why = whyDecided(approval, { now: app.calmNow(), timezone });
  if (why !== null) throw new AppError("conflict", why.sentence, { fix: why.mend });
}

/** Whether a message, or an earlier try of it, is the one that was to make the call. */
export function isRunOf(
  { run_id }: Pick<ApprovalRow, "run_id">,
  { id, retry_of }: Pick<MessageRow, "id" | "retry_of">,
): boolean {
  return run_id !== null && (run_id === id || run_id === retry_of);
}
