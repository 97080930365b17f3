import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow } from "../db/prepared.ts";
import type { InboxRow, MessageRow, ScheduleRow, UserRow } from "../db/schema.ts";
import { refuseFull } from "../resources/billing/storage.ts";
import { startConversation } from "../resources/conversations/conversations.ts";
import { blankMessage } from "../resources/messages/blank-message.ts";
import { storedBrought } from "../resources/messages/brought.ts";
import { recordState } from "../resources/messages/events.ts";
import { sizeOf } from "../resources/messages/run-use.ts";
import { type AcceptedRetry, sameAs, storeMaterial } from "./accept.ts";
import { insertAndReserve, tellOfLimit } from "./credit.ts";
import { enqueueRun } from "./enqueue-run.ts";

/**
 * Stores one run of a schedule, with a credit reserved and a job of its own. It begins a conversation, so that no run reads what
 * earlier ones said. The run of a call is answered by mail to the owner, as nobody waits for it.
 */
export async function acceptScheduled(
  app: App,
  tx: Db,
  run: Omit<AcceptedRetry, "failed"> & { origin: MessageRow; schedule: Pick<ScheduleRow, "id" | "title"> },
): Promise<MessageRow> {
  const { origin, inbox, user, schedule } = run;
  await refuseFull(app, tx, user, sizeOf(run));
  const row: MessageRow = {
    ...(await sameAs(app, tx, { message: origin, inbox, user })),
    sender: origin.sender ?? user.email,
    ...(origin.raw_mail_id === null ? { subject: schedule.title } : {}),
    conversation_id: await startConversation(app, tx, { inbox, subject: origin.subject ?? schedule.title }),
    schedule_id: schedule.id,
    // A consent is given once, and by nobody but its owner.
    approval_id: null,
    brought: storedBrought(run),
  };
  const owes = await insertAndReserve(app, tx, row);
  if (row.state === "limited") {
    await tellOfLimit(app, tx, row);
    return row;
  }
  await storeMaterial(app, tx, row, run);
  const bytes = run.raw_size + sizeOf(run);
  await enqueueRun(app, tx, { row, user, claimed: false, bytes, material: run, owes });
  return row;
}

/** What somebody wants done at times to come. */
interface Order {
  inbox: InboxRow;
  user: UserRow;
  subject: string;
  instruction: string;
  content: string | null;
  /** The API key of whoever wants it. */
  key_id: string | null;
  /** What is promised. */
  result: string;
}

/** Stores an instruction that is not worked on now, but by a schedule: its message is done at once, and costs nothing. */
export async function storeOrder(app: App, tx: Db, order: Order): Promise<MessageRow> {
  app.refuseIntake();
  const { inbox, user, subject, instruction, content, key_id, result } = order;
  await refuseFull(app, tx, user, Buffer.byteLength(instruction + (content ?? "")));
  const row: MessageRow = {
    ...blankMessage(app, inbox),
    source: "api",
    conversation_id: await startConversation(app, tx, { inbox, subject }),
    authority: "owner",
    key_id,
    subject,
    instruction,
    state: "done",
    result,
    completed: app.now(),
    duration_ms: 0,
    brought: storedBrought({ content, files: [] }),
  };
  await insertRow(tx, "messages", row);
  await storeMaterial(app, tx, row, { content, files: [] });
  await recordState(app, tx, row);
  return row;
}
