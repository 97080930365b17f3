import type { SqlBool } from "kysely";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { InboxRow, UserRow } from "../../db/schema.ts";
import { eraseAccountLater } from "../../resources/accounts/deletion.ts";
import { planLimits } from "../../resources/billing/plans.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { forOthers } from "../../inbound/same-mail.ts";
import { endedBefore } from "./ended.ts";
import { type Erasable, eraseMessages, MESSAGES_AT_ONCE } from "./messages.ts";
import { goThrough, isOver, type Shift, takeTurns } from "../../jobs/shift.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const AT_ONCE = 100;
/**
 * After a change to a plan with shorter history, nothing is deleted at first, so that whoever changes back finds
 * everything.
 */
const GRACE_DAYS = 30;

/** Deletes messages older than the history of their account's plan, or than their inbox keeps them. */
export async function purgeHistory(shift: Shift): Promise<void> {
  await forEach<UserRow>(shift, usersAfter, async (user) => {
    if (user.deleted_at !== null) return eraseAgain(shift, user);
    const days = planLimits(shift.app.config, user.plan).history_days;
    const settled = (user.plan_changed_at ?? 0) < daysAgo(shift, GRACE_DAYS);
    if (days > 0 && settled)
      await purgeOlder(shift, days, (db, key) => messagesOf(db, { ...key, of: user.id }));
  });
  await forEach<Pick<InboxRow, "id" | "retention_days">>(
    shift,
    inboxesAfter,
    async ({ id, retention_days }) => {
      await purgeOlder(shift, retention_days ?? 0, (db, key) => messagesIn(db, { ...key, of: id }));
    },
  );
}

/** Enqueues the erasure of a deleted account again, in case its job was lost. */
async function eraseAgain({ app }: Shift, { id }: UserRow): Promise<void> {
  await app.write((tx) => eraseAccountLater(app, tx, id));
}

/** Calls `work` for each row, in the order of their ids. */
async function forEach<Row extends { id: string }>(
  shift: Shift,
  find: (db: Db, key: { after: string }) => Promise<Row[]>,
  work: (row: Row) => Promise<void>,
): Promise<void> {
  let rows: Row[] = [];
  do {
    rows = await find(shift.app.db, { after: rows.at(-1)?.id ?? "" });
    for (const row of rows) await work(row);
    // Lets other work run between accounts.
    await Bun.sleep(0);
  } while (rows.length === AT_ONCE && !isOver(shift));
}

interface Old {
  below: string;
  before: number;
  /** The last message that was looked at. */
  after: string;
}

export type OldMessage = Erasable & { ended: SqlBool };

async function purgeOlder(
  shift: Shift,
  days: number,
  find: (db: Db, old: Old) => Promise<OldMessage[]>,
): Promise<void> {
  const before = daysAgo(shift, days);
  const findAfter = (db: Db, last?: OldMessage) =>
    find(db, { before, below: firstIdAt(before), after: last?.id ?? "" });
  // Most accounts have no old messages, and a read blocks nobody, unlike a transaction.
  if ((await findAfter(shift.app.db)).length === 0) return;
  const step = goThrough(MESSAGES_AT_ONCE, findAfter, async (tx, ended, ranges) => {
    ranges.push(...(await eraseMessages(shift.app, tx, ended)));
  });
  await takeTurns(shift, step);
}

function daysAgo({ app }: Shift, days: number): number {
  return app.calmNow() - days * DAY_SECONDS;
}

const usersAfter = prepared((db, key: { after: string }) =>
  db.selectFrom("users").selectAll().where("id", ">", key.after).orderBy("id").limit(AT_ONCE),
);

const inboxesAfter = prepared((db, key: { after: string }) =>
  db
    .selectFrom("inboxes")
    .select(["id", "retention_days"])
    .where("retention_days", "is not", null)
    .where("id", ">", key.after)
    .orderBy("id")
    .limit(AT_ONCE),
);

const messagesOf = prepared((db, key: Old & { of: string }) =>
  oldMessages(db, key).where("user_id", "=", key.of),
);

const messagesIn = prepared((db, key: Old & { of: string }) =>
  oldMessages(db, key).where("inbox_id", "=", key.of),
);

function oldMessages(db: Db, { below, before, after }: Old) {
  return keyedMessages(db, before)
    .where("messages.id", ">", after)
    .where("messages.id", "<", below)
    .orderBy("messages.id")
    .limit(MESSAGES_AT_ONCE);
}

/** Selects messages with what their deletion needs, and whether they had ended at `before`. */
export function keyedMessages(db: Db, before: number) {
  return db
    .selectFrom("messages")
    .select(["messages.id", "raw_mail_id", "conversation_id"])
    .select([
      "inbox_id",
      "dedupe_key",
      "authority",
      "vouched",
      "state",
      "reason",
      "no_reply_reason",
      "retry_of",
    ])
    .select(["messages.created", forOthers.as("for_others")])
    .select((eb) => endedBefore(eb, before).as("ended"));
}
