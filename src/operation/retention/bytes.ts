import type { ExpressionBuilder, SqlBool } from "kysely";
import type { Db } from "../../db/database.ts";
import { mailsGivenUp, messagesGivenUp } from "../../db/orphans.ts";
import { packed } from "../../db/packed-row.ts";
import { prepared } from "../../db/prepared.ts";
import type { Schema } from "../../db/schema.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { isLeft } from "../../db/tries.ts";
import { rangesOf } from "../../lib/segments.ts";
import { areForgotten } from "../../resources/messages/forgotten.ts";
import { NO_BYTES } from "../../resources/messages/stored-bytes.ts";
import { endedBefore } from "./ended.ts";
import { MESSAGES_AT_ONCE } from "./messages.ts";
import { goThrough, type Step } from "../../jobs/shift.ts";

/** Rows in one step: few, because one may hold a megabyte in the database, and takes its words from the index. */
const ROWS = MESSAGES_AT_ONCE;

/** How far back letters are looked through every hour, where mail is kept for years. */
const LOOKED_BACK_SECONDS = 30 * DAY_SECONDS;

/** How long what was over a limit is kept besides, so that it can be worked on with the credits of the next period. */
const UNDONE_SECONDS = 31 * DAY_SECONDS;

/** The age of rows to delete: all that ended before `before`. `now` is stored as the time of deletion. */
export interface Age {
  before: number;
  now: number;
}

/** Deletes the bytes of received mails once all messages made from them have ended. */
export function purgeRawMails(age: Age): Step {
  return purge(age, keptMails, forgetMail);
}

/** Deletes the bytes of files; their rows stay. */
export function purgeAttachments(age: Age): Step {
  return purge(age, keptFiles, forgetFile);
}

/** Deletes the contents of calls over HTTP. */
export function purgeContents(age: Age): Step {
  return purge(age, keptContents, forgetContent);
}

/** Deletes the text of mails that were sent or captured. */
export function purgeOutgoingMails(age: Age): Step {
  return purge(age, sentMails, forgetSent);
}

/**
 * Deletes the letters that took mail to the owner which is not kept here. Until then one that comes back is all that there is of it.
 */
export function purgeForwards(age: Age): Step {
  return purge(age, sentForwards, forgetReply);
}

/**
 * Builds the condition that a message had ended at `before`, that the operator cannot retry it either, and that it is not starred: a
 * starred one is run again.
 */
function isDone(eb: ExpressionBuilder<Schema, "messages">, before: number) {
  const star = eb
    .selectFrom("starred_messages")
    .select("starred_messages.message_id")
    .whereRef("starred_messages.message_id", "=", "messages.id");
  return eb.and([
    endedBefore(eb, before),
    eb("messages.id", "not in", messagesGivenUp()),
    eb.not(eb.exists(star)),
  ]);
}

/** Builds the condition that a message has ended so that nothing needs its bytes any more. */
function isOver(eb: ExpressionBuilder<Schema, "messages">, { before, undone_since }: Old) {
  return eb.and([isDone(eb, before), eb.not(isUndone(eb, undone_since))]);
}

/** Builds the condition that a message was over a limit, and that its owner may still have it worked on. */
function isUndone(eb: ExpressionBuilder<Schema, "messages">, since: number) {
  const end = eb.fn.coalesce("messages.completed", "messages.created");
  return eb.and([eb("messages.state", "=", "limited"), isLeft(eb), eb(end, ">=", since)]);
}

interface Kept {
  id: string;
  created?: number;
  ended: SqlBool;
  segment?: number | null;
  segment_offset?: number | null;
  size?: number;
}

/** Where the next step begins: `since` and `after` are the time and id of the last row. */
interface Old {
  before: number;
  undone_since: number;
  below: string;
  /** How far back at most. */
  from: number;
  since: number;
  after: string;
}

/** Returns a step that deletes rows; those that are still needed are left for the next purge. */
function purge<Row extends Kept>(
  { before, now }: Age,
  find: (db: Db, old: Old) => Promise<Row[]>,
  forget: (db: Db, row: Row & { now: number }) => Promise<unknown>,
): Step {
  const old = {
    before,
    undone_since: before - UNDONE_SECONDS,
    below: firstIdAt(before),
    from: before - LOOKED_BACK_SECONDS,
  };
  const findAfter = (tx: Db, last?: Row) =>
    find(tx, { ...old, since: last?.created ?? 0, after: last?.id ?? "" });
  return goThrough(ROWS, findAfter, async (tx, ended, ranges) => {
    for (const row of ended) {
      await forget(tx, { ...row, now });
      const { segment = null, segment_offset = null, size = 0 } = row;
      ranges.push(...rangesOf({ segment, segment_offset, size }));
    }
  });
}

const keptMails = prepared((db, old: Old) =>
  db
    .selectFrom("raw_mails as kept")
    .select(["kept.id", "kept.created", "kept.segment", "kept.segment_offset", "kept.size"])
    .select((eb) =>
      eb
        .not(
          eb.exists(
            eb
              .selectFrom("messages")
              .select("messages.id")
              .whereRef("messages.raw_mail_id", "=", "kept.id")
              .where((eb) => eb.not(isOver(eb, old))),
          ),
        )
        .as("ended"),
    )
    .where("kept.purged_at", "is", null)
    .where("kept.created", "<", old.before)
    .where((eb) => eb(eb.refTuple("kept.created", "kept.id"), ">", eb.tuple(old.since, old.after)))
    .orderBy("kept.created")
    .orderBy("kept.id")
    .limit(ROWS),
);

const forgetMail = prepared((db, row: { id: string; now: number }) =>
  db
    .updateTable("raw_mails")
    .set({ ...NO_BYTES, purged_at: row.now, ...packed("raw_mails") })
    .where("id", "=", row.id),
);

const keptFiles = prepared((db, old: Old) =>
  db
    .selectFrom("attachments as kept")
    .innerJoin("messages", "messages.id", "kept.message_id")
    .select(["kept.id", "kept.created", "kept.segment", "kept.segment_offset", "kept.size"])
    .select((eb) => isOver(eb, old).as("ended"))
    .where("kept.purged_at", "is", null)
    .where("kept.created", "<", old.before)
    .where((eb) => eb(eb.refTuple("kept.created", "kept.id"), ">", eb.tuple(old.since, old.after)))
    .orderBy("kept.created")
    .orderBy("kept.id")
    .limit(ROWS),
);

const forgetFile = prepared((db, row: { id: string; now: number }) =>
  db
    .updateTable("attachments")
    .set({ ...NO_BYTES, purged_at: row.now, ...packed("attachments") })
    .where("id", "=", row.id),
);

const keptContents = prepared((db, old: Old) =>
  db
    .selectFrom("message_contents as kept")
    .innerJoin("messages", "messages.id", "kept.message_id")
    .select("kept.message_id as id")
    .select((eb) => isOver(eb, old).as("ended"))
    .where("kept.purged_at", "is", null)
    .where("kept.message_id", ">", old.after)
    .where("kept.message_id", "<", old.below)
    .orderBy("kept.message_id")
    .limit(ROWS),
);

const forgetContent = prepared((db, row: { id: string; now: number }) =>
  db
    .updateTable("message_contents")
    .set({ content: null, purged_at: row.now, ...packed("message_contents") })
    .where("message_id", "=", row.id),
);

const sentMails = prepared((db, { before, since, after }: Old) =>
  db
    .selectFrom("outgoing_mails")
    .select(["id", "created", "message_id"])
    .select((eb) => eb.and([eb("completed", "<", before), eb("id", "not in", mailsGivenUp())]).as("ended"))
    .where("raw", "is not", null)
    .where("created", "<", before)
    .where((eb) => eb(eb.refTuple("created", "id"), ">", eb.tuple(since, after)))
    .orderBy("created")
    .orderBy("id")
    .limit(ROWS),
);

const sentForwards = prepared((db, { before, from, since, after }: Old) =>
  db
    .selectFrom("outgoing_mails as kept")
    .innerJoin("messages", "messages.id", "kept.message_id")
    .select(["kept.id", "kept.created"])
    .select((eb) =>
      eb
        .and([eb("kept.completed", "<", before), areForgotten(eb), eb("kept.id", "not in", mailsGivenUp())])
        .as("ended"),
    )
    .where("kept.raw", "is not", null)
    .where("kept.kind", "=", "forward")
    .where("kept.created", ">", from)
    .where("kept.created", "<", before)
    .where((eb) => eb(eb.refTuple("kept.created", "kept.id"), ">", eb.tuple(since, after)))
    .orderBy("kept.created")
    .orderBy("kept.id")
    .limit(ROWS),
);

/** Deletes what was sent. A mail without a message is deleted with its row, because nothing shows it. */
function forgetSent(db: Db, row: { id: string; message_id: string | null }): Promise<unknown[]> {
  return row.message_id === null ? deleteNotice(db, row) : forgetReply(db, row);
}

const deleteNotice = prepared((db, row: { id: string }) =>
  db.deleteFrom("outgoing_mails").where("id", "=", row.id),
);

const forgetReply = prepared((db, row: { id: string }) =>
  db
    .updateTable("outgoing_mails")
    .set({ raw: null, ...packed("outgoing_mails") })
    .where("id", "=", row.id),
);
