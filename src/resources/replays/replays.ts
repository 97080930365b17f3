import type { Caller } from "../accounts/sessions.ts";
import { refuseUnverified } from "../accounts/verified.ts";
import { releaseCredit, reserveCredit } from "../billing/ledger.ts";
import { historySince } from "../billing/plans.ts";
import { refuseFull } from "../billing/storage.ts";
import { refuseUnkeptVersions } from "../contexts/given-versions.ts";
import { ownInbox } from "../inboxes/inboxes.ts";
import { refusePaused } from "../inboxes/pause.ts";
import { refuseNoModel } from "../inboxes/references.ts";
import { refuseResting } from "../inboxes/room.ts";
import { isForgotten } from "../messages/forgotten.ts";
import { ownMessage } from "../messages/messages.ts";
import { sizeToRepeat } from "../messages/repeatable.ts";
import { purged } from "../messages/retry.ts";
import { runUse } from "../messages/run-use.ts";
import { scheduleById } from "../schedules/view.ts";
import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import { insertRow, prepared } from "../../db/prepared.ts";
import type { MessageRow, ReplayRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { enqueue } from "../../jobs/queue.ts";
import { type Asked, type ReplayView, viewReplay, viewReplayCard } from "./view.ts";

/** More of one message are no comparison any more, and each keeps its result. */
export const MAX_REPLAYS = 20;

/**
 * Has a message run once more beside the run that counts: nothing is mailed, no tool is called, no event is recorded, and the message
 * stays as it is. Throws where that cannot be: `not_found`, `conflict` where there is nothing to compare with or too
 * many replays, `plan_limit_reached` without credits.
 */
export async function createReplay(
  app: App,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  { id, asked, admit }: { id: string; asked: Asked; admit: () => void },
): Promise<ReplayView> {
  refuseUnverified(user);
  const row = await app.write(async (tx) => {
    app.refuseIntake();
    await refuseForeign(tx, user, asked);
    const { message, bytes } = await readyToRun(app, tx, user, id);
    await refuseMore(tx, message);
    admit();
    const created = blankReplay(app, { message, asked, key_id, of: BY_ITSELF });
    await addReplay(app, tx, user, { created, bytes });
    return created;
  });
  return viewReplay(row);
}

/**
 * Looks up a message that is to be run again, in the transaction that has it run, with the bytes of what that run will read. Throws where
 * it would have to wait, or has nothing to read any more.
 */
export async function readyToRun(app: App, tx: Db, user: UserRow, id: string) {
  const message = await replayable(app, tx, user, id);
  const inbox = await ownInbox(tx, user, message.inbox_id ?? "");
  await refuseResting(app, tx, user, inbox);
  refusePaused(inbox);
  return { message, bytes: await sizeToRepeat(tx, message) };
}

/** Stores a replay with its job, and takes the credit for it. `bytes`: what its run will hold of the message. */
export async function addReplay(
  app: App,
  tx: Db,
  user: UserRow,
  { created, bytes }: { created: ReplayRow; bytes: number },
): Promise<void> {
  const { id, message_id, asked, expected } = created;
  await refuseFull(app, tx, user, Buffer.byteLength(asked) + Buffer.byteLength(expected ?? ""));
  if (!(await reserveCredit(app, tx, user, { message_id: id }))) throw withoutCredits();
  await insertRow(tx, "replays", created);
  await enqueue(app, tx, {
    kind: "replay_message",
    payload: { replay_id: id, message_id },
    ...runUse(app, user, { bytes }),
  });
  tellPages(app, tx, created);
}

/** The replays of a message that were asked for by themselves, without their results, oldest first. */
export async function listReplays(app: App, user: UserRow, message_id: string) {
  await ownOf(app, app.db, user, message_id);
  const rows = await app.db
    .selectFrom("replays")
    .select(CARD)
    .where("message_id", "=", message_id)
    .where("test_run_id", "is", null)
    .orderBy("id")
    .limit(MAX_REPLAYS)
    .execute();
  return rows.map(viewReplayCard);
}

/** A page asks for the list each second while one is under way: the results of all would be read each time. */
const CARD = [
  "id",
  "user_id",
  "message_id",
  "key_id",
  "asked",
  "state",
  "reason",
  "error",
  "model",
  "input_tokens",
  "output_tokens",
  "cost",
  "credits_charged",
  "created",
  "completed",
  "duration_ms",
  "test_run_id",
] as const;

export async function readReplay(app: App, user: UserRow, key: ReplayKey): Promise<ReplayView> {
  await ownOf(app, app.db, user, key.message_id);
  const [row] = await replayOf(app.db, key);
  if (row) return viewReplay(row);
  throw noReplay();
}

/** Deletes a replay, also one that is still to come or under way: that comes to nothing then, and costs nothing. */
export async function deleteReplay(app: App, user: UserRow, key: ReplayKey): Promise<void> {
  await app.write(async (tx) => {
    await ownOf(app, tx, user, key.message_id);
    const [row] = await replayOf(tx, key);
    if (!row) throw noReplay();
    await removeReplay(app, tx, row);
  });
}

/** Deletes a replay in the transaction of the caller. */
export async function removeReplay(
  app: App,
  tx: Db,
  row: Pick<ReplayRow, "id" | "user_id" | "message_id" | "state">,
): Promise<void> {
  if (row.state === "received") await releaseCredit(app, tx, row);
  await tx.deleteFrom("replays").where("id", "=", row.id).execute();
  tellPages(app, tx, row);
}

interface ReplayKey {
  message_id: string;
  replay_id: string;
}

const replayOf = prepared((db, key: ReplayKey) =>
  db
    .selectFrom("replays")
    .selectAll()
    .where("id", "=", key.replay_id)
    .where("message_id", "=", key.message_id),
);

/** Pages that show the message read it again. */
export function tellPages(
  app: App,
  tx: Db,
  { user_id, message_id }: Pick<ReplayRow, "user_id" | "message_id">,
): void {
  afterCommit(tx, () => app.changes.tell(user_id, message_id));
}

/** Where a replay belongs to, and what its answer should be. */
export type ReplayOf = Pick<ReplayRow, "test_run_id" | "expected">;

const BY_ITSELF: ReplayOf = { test_run_id: null, expected: null };

/** A replay that is still to come. */
export function blankReplay(
  app: App,
  {
    message,
    asked,
    key_id,
    of,
  }: { message: Pick<MessageRow, "id" | "user_id">; asked: Asked; key_id: string | null; of: ReplayOf },
): ReplayRow {
  return {
    id: app.newId(),
    user_id: message.user_id,
    message_id: message.id,
    key_id,
    asked: JSON.stringify(asked),
    state: "received",
    reason: null,
    error: null,
    result: "",
    steps: "[]",
    contexts: "[]",
    model: null,
    input_tokens: null,
    output_tokens: null,
    cost: null,
    credits_charged: 0,
    created: app.now(),
    completed: null,
    duration_ms: null,
    ...of,
    passed: null,
    differs: null,
  };
}

async function ownOf(app: App, db: Db, user: UserRow, id: string): Promise<MessageRow> {
  const [message] = await ownMessage(db, { user_id: user.id, id, since: historySince(app, user) });
  if (!message) throw new AppError("not_found", "There is no such message.");
  return message;
}

/** A message that a model has worked on, or was to work on, and whose content is still here. */
export async function replayable(app: App, db: Db, user: UserRow, id: string): Promise<MessageRow> {
  const message = await ownOf(app, db, user, id);
  const why = await whyNot(db, message);
  if (why !== null) throw new AppError("conflict", why.message, { fix: why.fix });
  if (isForgotten(message)) throw purged();
  return message;
}

interface Words {
  message: string;
  fix: string;
}

async function whyNot(db: Db, message: MessageRow): Promise<Words | null> {
  const { state, model, approval_id, schedule_id, read_from, inbox_id } = message;
  if (state === "received") return NOT_YET;
  if (state !== "done" && state !== "failed") return NOT_WORKED_ON;
  if (approval_id !== null) return A_YES;
  if (state === "done" && model === null) return NO_MODEL;
  if (inbox_id === null) return NO_INBOX;
  const [schedule] = schedule_id === null ? [] : await scheduleById(db, { id: schedule_id });
  return read_from !== null || (schedule && schedule.over !== null) ? A_DIGEST : null;
}

const NOT_YET: Words = {
  message: "This message has not come to its end yet.",
  fix: "Run it again once it has (`GET /v1/messages/{id}` tells).",
};
const NOT_WORKED_ON: Words = {
  message: "This message was not worked on, so there is no run to compare another one with.",
  fix: "“Try again” has it worked on, where that can be done (`POST /messages/{message_id}/retry`).",
};
const A_YES: Words = {
  message: "This message answered a request for consent: it had one call made, and no model chose it.",
  fix: "Run the message again that asked for it.",
};
const NO_MODEL: Words = {
  message: "No model was asked about this message.",
  fix: "Run a message again that a model has worked on.",
};
const NO_INBOX: Words = {
  message: "The inbox of this message has been deleted.",
  fix: "Send it again, to another inbox.",
};
const A_DIGEST: Words = {
  message: "This message is a digest: what it has read is not kept with it.",
  fix: "Run one of the messages again that it was about.",
};

/** Refuses a model or contexts that are not the user's own. */
export async function refuseForeign(tx: Db, user: UserRow, asked: Asked): Promise<void> {
  const { connection_id = null, context_versions = {} } = asked;
  await refuseNoModel(tx, user, connection_id, {
    path: "body.connection_id",
    words: "There is no such model connection.",
  });
  await refuseUnkeptVersions(tx, user, context_versions);
}

async function refuseMore(tx: Db, { id }: MessageRow): Promise<void> {
  const [counted] = await countOf(tx, { message_id: id });
  if ((counted?.count ?? 0) < MAX_REPLAYS) return;
  throw new AppError("conflict", `Of this message ${MAX_REPLAYS} replays are kept already.`, {
    fix: "Delete one of them (`DELETE /messages/{message_id}/replays/{replay_id}`).",
  });
}

const countOf = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("replays")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("message_id", "=", key.message_id)
    .where("test_run_id", "is", null),
);

function withoutCredits(): AppError {
  return new AppError("plan_limit_reached", "The account has no credits left, so nothing can be run again.", {
    fix: "Try it again when there are some: with the next month, or when you are given more (`mailwright user set-plan`).",
  });
}

function noReplay(): AppError {
  return new AppError("not_found", "There is no such replay of this message.", {
    fix: "The page of the message lists those that there are (`GET /messages/{message_id}/replays`).",
  });
}
