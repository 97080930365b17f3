import type { App } from "../../app.ts";
import { planLimits } from "../../resources/billing/plans.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { dropWaiting } from "../../jobs/paused.ts";
import { type Shift, takeTurns } from "../../jobs/shift.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { failMessage } from "../../pipeline/fail.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const AT_ONCE = 100;
/** How many messages one transaction ends. */
const ROWS = 10;

const FAILURE = {
  reason: "paused_too_long",
  error:
    "The inbox was paused for longer than it keeps what it gets, so the mail was never worked on. Send it again.",
} as const;

/**
 * Ends mail that has waited in a paused inbox for longer than the inbox keeps messages: its result would be deleted at
 * once.
 */
export async function endOutwaited(shift: Shift): Promise<void> {
  const { app } = shift;
  let inboxes: Paused[] = [];
  do {
    inboxes = await pausedAfter(app.db, inboxes.at(-1)?.id ?? "");
    for (const inbox of inboxes) await endWaitingIn(shift, inbox);
  } while (inboxes.length === AT_ONCE);
}

type Paused = Pick<InboxRow, "id" | "user_id" | "retention_days"> & Pick<UserRow, "plan">;

function pausedAfter(db: Db, after: string): Promise<Paused[]> {
  return db
    .selectFrom("inboxes")
    .innerJoin("users", "users.id", "inboxes.user_id")
    .select(["inboxes.id", "inboxes.user_id", "retention_days", "plan"])
    .where("paused", "is not", null)
    .where("inboxes.id", ">", after)
    .orderBy("inboxes.id")
    .limit(AT_ONCE)
    .execute();
}

async function endWaitingIn(shift: Shift, inbox: Paused): Promise<void> {
  const { app } = shift;
  const days = keptDays(app, inbox);
  if (days === null) return;
  const below = firstIdAt(app.calmNow() - days * DAY_SECONDS);
  await takeTurns(shift, async (tx) => {
    const message_ids = await dropWaiting(tx, { inbox_id: inbox.id, below, limit: ROWS });
    const share = { account: inbox.user_id, slots: null };
    for (const message_id of message_ids)
      await failMessage(app, tx, { payload: { message_id }, share }, FAILURE);
    return message_ids.length === ROWS;
  });
}

/** Returns how many days waiting messages are kept, the same as for ended ones; null for ever. */
function keptDays({ config }: App, { retention_days, plan }: Paused): number | null {
  const { history_days } = planLimits(config, plan);
  const days = [retention_days ?? 0, history_days].filter((some) => some > 0);
  return days.length === 0 ? null : Math.min(...days);
}
