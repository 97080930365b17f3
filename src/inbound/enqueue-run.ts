import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow, UserRow } from "../db/schema.ts";
import { isCausedByStranger } from "../db/strangers.ts";
import { untilCredit } from "../jobs/credit-waits.ts";
import { PAUSED_AT, untilResumed } from "../jobs/paused.ts";
import { enqueue, type Job } from "../jobs/queue.ts";
import { broughtBy } from "../resources/messages/brought.ts";
import type { Owing } from "./credit.ts";
import { runUse } from "../resources/messages/run-use.ts";

type Enqueued = {
  row: MessageRow;
  user: UserRow;
  claimed: boolean;
  bytes: number;
  /** What a call came with. */
  material?: Parameters<typeof broughtBy>[0];
  waits?: boolean;
  /** Where it still waits for a credit. */
  owes?: Owing;
};

/** Queues the run of a message. Returns its job, or null where the key of another one has been taken. */
export function enqueueRun(
  app: App,
  tx: Db,
  { row, user, claimed, bytes, material = { content: null, files: [] }, waits = false, owes }: Enqueued,
): Promise<Job | null> {
  const { id: message_id, user_id, conversation_id: lane } = row;
  const brought = broughtBy(material);
  // What waits for its inbox looks for its credit once that goes on.
  const for_credit =
    owes && !waits ? untilCredit(app, { user_id, whose: owes.whose, message_id }, owes.until) : undefined;
  return enqueue(app, tx, {
    kind: "route_message",
    payload: {
      message_id,
      ...(brought === undefined ? {} : { brought }),
      ...(owes && { owes_until: waits ? PAUSED_AT : owes.until }),
    },
    claimed,
    ...runUse(app, user, { bytes, strangers: isCausedByStranger(row) }),
    ...(lane === null || for_credit ? {} : { lane }),
    ...(waits ? untilResumed(row.inbox_id ?? "", message_id) : for_credit),
  });
}
