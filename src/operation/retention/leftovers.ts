import { sweepUnproven } from "../../resources/accounts/unproven.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import { JOB_KINDS, type JobKind } from "../../jobs/kinds.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import { deleteJob } from "../../jobs/remove.ts";
import { firstSortableIdAt } from "../../lib/sortable-id.ts";
import { leaveRequest } from "../../resources/approvals/approvals.ts";
import { STATE_SECONDS } from "../../resources/integrations/oauth-states.ts";
import { KEY_SECONDS as MAIL_KEY_SECONDS } from "../../inbound/same-mail.ts";
import { KEY_SECONDS } from "../../pipeline/call.ts";
import { notedCalls } from "../../pipeline/tool-journal.ts";
import { WRITTEN_SECONDS } from "../../pipeline/written-texts.ts";
import type { Age } from "./bytes.ts";
import { isUntold } from "./ended.ts";
import { goThrough, type Step } from "../../jobs/shift.ts";
import { DAY_SECONDS, dayAt } from "../../lib/durations.ts";

/** Rows in one step. */
const ROWS = 50;
/** How long a request for consent is shown after it has expired. */
const APPROVAL_SECONDS = 30 * DAY_SECONDS;
/** How long the payment provider may repeat an event. */
const MIN_PAYMENT_SECONDS = 30 * DAY_SECONDS;

/** Returns steps that delete rows which are useless after a fixed time. */
export function purgeExpired(app: App): Step[] {
  const now = app.calmNow();
  return [
    deleting(oldKeys, { before: now - KEY_SECONDS }, deleteKey),
    deleting(oldMailKeys, { before: now - MAIL_KEY_SECONDS }, deleteMailKey),
    deleting(oldTexts, { before: now - WRITTEN_SECONDS }, deleteText),
    deleting(callsOfEnded, {}, deleteCall),
    deleting(leftRequests, {}, (tx, row) => endLeftRequest(app, tx, row)),
    deleting(oldApprovals, { before: now - APPROVAL_SECONDS }, deleteApproval),
    async (tx) => {
      await sweepUnproven(app, tx);
      await tx.deleteFrom("sessions").where("expires", "<=", now).execute();
      await tx
        .deleteFrom("oauth_states")
        .where("created", "<=", now - STATE_SECONDS)
        .execute();
      await tx.deleteFrom("rate_limits").where("full_at", "<=", app.calm.nowMs()).execute();
      return false;
    },
  ];
}

/** Returns steps that delete deliveries, events and the like from before `before`. */
export function purgeNews({ before, now }: Age): Step[] {
  const day = dayAt(before);
  return [
    purgeEvents(before),
    deleting(oldSubmissions, { before }, deleteSubmission),
    deleting(oldPayments, { before: Math.min(before, now - MIN_PAYMENT_SECONDS) }, deletePayment),
    deleting(oldNotices, { day }, deleteNotice),
    ...JOB_KINDS.map((kind) => deleting(deadJobs, { kind, before }, deleteJob)),
  ];
}

function deleting<Key, Row>(
  find: (db: Db, key: Key) => Promise<Row[]>,
  key: Key,
  remove: (db: Db, row: Row) => Promise<unknown>,
): Step {
  return async (tx) => {
    const found = await find(tx, key);
    for (const row of found) await remove(tx, row);
    return found.length === ROWS;
  };
}

type Keyed = { user_id: string; route: string; key: string };

const oldKeys = prepared((db, old: { before: number }) =>
  db
    .selectFrom("idempotency_keys")
    .select(["user_id", "route", "key"])
    .where("created", "<=", old.before)
    .limit(ROWS),
);

const deleteKey = prepared((db, row: Keyed) =>
  db
    .deleteFrom("idempotency_keys")
    .where("user_id", "=", row.user_id)
    .where("route", "=", row.route)
    .where("key", "=", row.key),
);

const oldMailKeys = prepared((db, old: { before: number }) =>
  db.selectFrom("mail_keys").select(["inbox_id", "key_hash"]).where("created", "<=", old.before).limit(ROWS),
);

const deleteMailKey = prepared((db, row: Awaited<ReturnType<typeof oldMailKeys>>[number]) =>
  db.deleteFrom("mail_keys").where("inbox_id", "=", row.inbox_id).where("key_hash", "=", row.key_hash),
);

const oldTexts = prepared((db, old: { before: number }) =>
  db.selectFrom("written_texts").select("id").where("created", "<=", old.before).limit(ROWS),
);

const deleteText = prepared((db, row: { id: string }) =>
  db.deleteFrom("written_texts").where("id", "=", row.id),
);

/** Requests that could no longer be answered for a month: none of them is being carried out. */
const oldApprovals = prepared((db, old: { before: number }) =>
  db
    .selectFrom("approvals")
    .select("id")
    .where("expires_at", "<=", old.before)
    .where("state", "not in", ["approved", "called"])
    .limit(ROWS),
);

/** Requests that are shown as being done by a message that has ended or is gone, which only an older version or a damaged disk leaves. */
const leftRequests = prepared((db, _none: object) =>
  db
    .selectFrom("approvals")
    .select(["id", "user_id", "run_id"])
    .where("state", "in", ["approved", "called"])
    .where("run_id", "is not", null)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom("messages")
            .select("messages.id")
            .where((run) =>
              run.or([
                run("messages.id", "=", run.ref("approvals.run_id")),
                run("messages.retry_of", "=", run.ref("approvals.run_id")),
              ]),
            )
            .where("messages.state", "=", "received"),
        ),
      ),
    )
    .limit(ROWS),
);

async function endLeftRequest(
  app: App,
  tx: Db,
  { id: approval_id, user_id, run_id }: Awaited<ReturnType<typeof leftRequests>>[number],
): Promise<void> {
  if (run_id === null) return;
  const run = { id: run_id, user_id, approval_id, retry_of: null };
  await leaveRequest(app, tx, run, await notedCalls(tx, run_id));
  app.log.error({ approval_id, message_id: run_id }, "a request was left by the message that answered it");
  await tellOwnerLater(app, tx, { user_id, kind: "approvals_waiting" });
}

const deleteApproval = prepared((db, row: { id: string }) =>
  db.deleteFrom("approvals").where("id", "=", row.id),
);

/** Calls that an ended run has not forgotten. The calls of a failed run are kept for whoever does its work again. */
const callsOfEnded = prepared((db, _none: object) =>
  db
    .selectFrom("tool_calls")
    .innerJoin("messages", "messages.id", "tool_calls.message_id")
    .select(["message_id", "fingerprint"])
    .where("messages.state", "not in", ["received", "failed"])
    .limit(ROWS),
);

const deleteCall = prepared((db, row: { message_id: string; fingerprint: string }) =>
  db
    .deleteFrom("tool_calls")
    .where("message_id", "=", row.message_id)
    .where("fingerprint", "=", row.fingerprint),
);

/** Deletes events with their deliveries. */
function purgeEvents(before: number): Step {
  const below = `evt_${firstSortableIdAt(before)}`;
  const find = (tx: Db, last?: { id: string }) => oldEvents(tx, { below, after: last?.id ?? "" });
  return goThrough(ROWS, find, async (tx, ended) => {
    for (const event of ended) await deleteEvent(tx, event);
  });
}

const oldEvents = prepared((db, old: { below: string; after: string }) =>
  db
    .selectFrom("events")
    .select("id")
    .select((eb) => eb.not(isUntold(eb)).as("ended"))
    .where("id", ">", old.after)
    .where("id", "<", old.below)
    .orderBy("id")
    .limit(ROWS),
);

const deleteEvent = prepared((db, row: { id: string }) => db.deleteFrom("events").where("id", "=", row.id));

const oldSubmissions = prepared((db, old: { before: number }) =>
  db.selectFrom("contact_submissions").select("id").where("created", "<", old.before).limit(ROWS),
);

const deleteSubmission = prepared((db, row: { id: string }) =>
  db.deleteFrom("contact_submissions").where("id", "=", row.id),
);

const oldPayments = prepared((db, old: { before: number }) =>
  db.selectFrom("billing_events").select("id").where("created", "<", old.before).limit(ROWS),
);

const deletePayment = prepared((db, row: { id: string }) =>
  db.deleteFrom("billing_events").where("id", "=", row.id),
);

const oldNotices = prepared((db, old: { day: string }) =>
  db.selectFrom("owner_notices").select(["user_id", "kind", "day"]).where("day", "<", old.day).limit(ROWS),
);

const deleteNotice = prepared((db, row: Awaited<ReturnType<typeof oldNotices>>[number]) =>
  db
    .deleteFrom("owner_notices")
    .where("user_id", "=", row.user_id)
    .where("kind", "=", row.kind)
    .where("day", "=", row.day),
);

/** Selects jobs that were given up long ago (see `buryJob`). */
const deadJobs = prepared((db, old: { kind: JobKind; before: number }) =>
  db
    .selectFrom("jobs")
    .select("id")
    .where("kind", "=", old.kind)
    .where("status", "=", "dead")
    .where("run_at", "<", old.before)
    .limit(ROWS),
);
