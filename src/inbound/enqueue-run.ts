import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow, UserRow } from "../db/schema.ts";
import { isCausedByStranger } from "../db/strangers.ts";
import { untilResumed } from "../jobs/paused.ts";
import { enqueue, type Job } from "../jobs/queue.ts";
import { broughtBy } from "../resources/messages/brought.ts";
import { runUse } from "../resources/messages/run-use.ts";

type Enqueued = {
  row: MessageRow;
  user: UserRow;
  claimed: boolean;
  bytes: number;
  /** What a call came with. */
  material?: Parameters<typeof broughtBy>[0];
  waits?: boolean;
};

/** Queues the run of a message. Returns its job, or null where the key of another one has been taken. */
export function enqueueRun(
  app: App,
  tx: Db,
  { row, user, claimed, bytes, material = { content: null, files: [] }, waits = false }: Enqueued,
): Promise<Job | null> {
  const brought = broughtBy(material);
  return enqueue(app, tx, {
    kind: "route_message",
    payload: { message_id: row.id, ...(brought === undefined ? {} : { brought }) },
    claimed,
    ...runUse(app, user, { bytes, strangers: isCausedByStranger(row) }),
    ...(row.conversation_id === null ? {} : { lane: row.conversation_id }),
    ...(waits ? untilResumed(row.inbox_id ?? "", row.id) : {}),
  });
}
