import type { Caller } from "../resources/accounts/sessions.ts";
import { refuseUnverified } from "../resources/accounts/verified.ts";
import { tellWhatStays } from "../resources/accounts/what-stays.ts";
import type { App } from "../app.ts";
import { remainingCredits, resetsAt } from "../resources/billing/ledger.ts";
import { openConnectionOf } from "../resources/connections/connections.ts";
import { inboxOfConversation, ownConversation } from "../resources/conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import type { InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { namedOrDefaultInboxId } from "../resources/inboxes/default-inbox.ts";
import { ownInbox } from "../resources/inboxes/inboxes.ts";
import { refusePaused } from "../resources/inboxes/pause.ts";
import { hasRoom, refuseResting } from "../resources/inboxes/room.ts";
import type { Job } from "../jobs/queue.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { RateVerdict } from "../lib/rate-limit.ts";
import { acceptCall, type IncomingFile } from "../inbound/accept.ts";
import { ownMessage, runView } from "../resources/messages/messages.ts";
import { refuseBadTexts } from "../resources/messages/call-texts.ts";
import { refuseBadMetadata } from "../resources/messages/metadata.ts";
import { mayStoreCall, takeRate } from "./call-limits.ts";
import { sizeOf } from "../resources/messages/run-use.ts";
import { type RunView, viewRun } from "../resources/messages/view.ts";
import type { CallInput } from "./call-shapes.ts";
import { modelLabels } from "./choose-connection.ts";
import { parseCommand } from "./command.ts";
import { filesOf } from "./files.ts";
import type { SentFile } from "../files/sent-file.ts";
import { acceptInline, awaitEnd, syncCommits } from "./inline.ts";
import { isAboutTimes } from "./schedule.ts";
import { sha256 } from "../lib/sha256.ts";

const ROUTE = "POST /v1/messages";
const KEY_FORM = /^[\x20-\x7e]{1,255}$/;
/** Seconds for which an Idempotency-Key is remembered. */
export const KEY_SECONDS = 86_400;

export interface CallOptions {
  /** Returns what the attachments held, in their order. To be called once: the bytes are then the caller's. */
  takeFiles: () => SentFile[];
  /** Called once no bytes of the request are held any more; not called when the call is refused. */
  onStored: () => void;
  idempotency_key: string | null;
  /** The client's own bound on the wait (RFC 7240 `wait`), in seconds. */
  wait_seconds: number | null;
  /** Called with what is left of the account's rate, even if that is nothing; not on a replay, which costs nothing. */
  onRate: (rate: RateVerdict) => void;
}

export interface CallOutcome {
  view: RunView;
  replayed: boolean;
  /** When credits come back, for a call over the credit cap. */
  resets_at?: number;
}

/** Runs an instruction through an inbox as a mail to it would be run; decision J gives the order of the checks. */
export async function runCall(
  app: App,
  caller: Caller,
  given: CallInput,
  options: CallOptions,
): Promise<CallOutcome> {
  const { user } = caller;
  const input = { ...given, instruction: given.instruction.trim() };
  const accepted = await acceptChecked(app, caller, input, options);
  options.onStored();
  if ("replay_of" in accepted) return replay(app, user, { message_id: accepted.replay_of, input, options });
  if (accepted.row.state === "limited")
    return {
      view: await readMade(app, user, accepted.row.id),
      replayed: false,
      resets_at: await resetsAt(app, app.db, user),
    };
  const { row, job } = accepted;
  const end = await awaitEnd(app, row.id, { job, ms: budgetMs(app, input, options) });
  // What this process has just written is not read from the database again.
  const view =
    end && !end.made_files
      ? viewRun(end.row, [], await remainingCredits(app, app.db, user))
      : await readMade(app, user, row.id);
  return { view: { ...view, ...end?.unstored }, replayed: false };
}

/**
 * Accepts a call once it is checked. Its files are held in memory only in here, for its caller may then wait for
 * minutes.
 */
async function acceptChecked(
  app: App,
  caller: Caller,
  input: CallInput,
  options: CallOptions,
): Promise<Accepted> {
  const { user } = caller;
  refuseBadTexts(input);
  refuseBadMetadata(input.metadata ?? {});
  const files = filesOf(input.attachments ?? [], options.takeFiles());
  refuseBadKey(options.idempotency_key);
  refuseUnverified(user);
  // This comes before all that may have changed since: a retry gets its result whatever became of the inbox.
  const keyed = keyOf(input, options);
  const earlier = keyed && (await findKeyed(app, app.db, user, keyed));
  if (earlier) return { replay_of: earlier, job: null };
  const inbox = await chooseInbox(app, user, input);
  refusePaused(inbox);
  if (input.conversation_id !== undefined)
    await ownConversation(app.db, user, { id: input.conversation_id, inbox_id: inbox.id });
  await refuseWithoutModel(app, inbox);
  return acceptOnce(app, { caller, inbox, input, files, keyed, onRate: options.onRate });
}

/** The inbox that a call names, else that of the conversation it names, else the default one. */
async function chooseInbox(
  app: App,
  user: UserRow,
  { inbox_id, conversation_id }: Pick<CallInput, "inbox_id" | "conversation_id">,
): Promise<InboxRow> {
  const named = inbox_id ?? (conversation_id && (await inboxOfConversation(app.db, user, conversation_id)));
  const id = await namedOrDefaultInboxId(app.db, user, named);
  const inbox = await ownInbox(app.db, user, id);
  if (named === undefined && !(await hasRoom(app, app.db, user, inbox))) throw defaultRests(inbox);
  await refuseResting(app, app.db, user, inbox);
  return inbox;
}

/**
 * Refuses a call to a default inbox beyond the plan: another inbox would do the work by rules that its owner did not
 * choose.
 */
function defaultRests({ label }: InboxRow): AppError {
  return new AppError(
    "plan_limit_reached",
    `The default inbox "${label}" is one more than your account may have, so it takes no calls.`,
    {
      fix: 'Name another inbox (`inbox_id`), or make another one the default (`PATCH /inboxes/{inbox_id}` with `{"is_default": true}`).',
    },
  );
}

async function refuseWithoutModel(app: App, inbox: InboxRow): Promise<void> {
  if (await openConnectionOf(app, inbox)) return;
  const labels = (await modelLabels(app, inbox.user_id)).map((label) => `"${label}"`);
  throw new AppError("inbox_not_routed", "This inbox has no model connection.", {
    fix:
      labels.length === 0
        ? "Connect a model, and choose it in the settings of the inbox (`POST /connections`, then `default_connection_id` with `PATCH /inboxes/{inbox_id}`)."
        : `Choose one of yours, ${labels.join(", ")}, in the settings of the inbox (\`PATCH /inboxes/${inbox.id}\` with \`default_connection_id\`; \`GET /connections\` has their ids).`,
  });
}

function refuseBadKey(key: string | null): void {
  if (key !== null && !KEY_FORM.test(key))
    throw new AppError(
      "invalid_idempotency_key",
      "An Idempotency-Key has 1 to 255 printable ASCII characters.",
    );
}

interface Keyed {
  key: string;
  fingerprint: string;
}

function keyOf(input: CallInput, { idempotency_key }: CallOptions): Keyed | null {
  if (idempotency_key === null) return null;
  const form = (input.attachments ?? []).length > 0 ? BY_CONTENT : "";
  return { key: idempotency_key, fingerprint: form + sha256(canonicalJson(input), "hex") };
}

/** Prefix of the fingerprint of a call with files, which contains a hash of the content of each file. */
const BY_CONTENT = "content:";

/**
 * Whether a key's known fingerprint and the one of a call that uses the key again may be of the same call. Earlier
 * versions hashed the base64 of a file as it was written, which is not known any more at this point. For the day in
 * which such a key is remembered, a call with files therefore counts as the call of its key. To refuse it would make
 * the client use another key, and what it asked for before the upgrade would be run and paid for a second time.
 */
function isSameCall(known: string, asked: string): boolean {
  return known === asked || (asked.startsWith(BY_CONTENT) && !known.startsWith(BY_CONTENT));
}

/** The message that an earlier call with this key made. Throws if that call said something else. */
async function findKeyed(app: App, db: Db, user: UserRow, keyed: Keyed): Promise<string | undefined> {
  const row = await db
    .selectFrom("idempotency_keys")
    .select(["message_id", "fingerprint"])
    .where("user_id", "=", user.id)
    .where("route", "=", ROUTE)
    .where("key", "=", keyed.key)
    .where("created", ">", app.calmNow() - KEY_SECONDS)
    .executeTakeFirst();
  if (row && !isSameCall(row.fingerprint, keyed.fingerprint))
    throw new AppError("idempotency_key_reuse", "This Idempotency-Key was used with another body.", {
      fix: "Use a new key for a new request.",
    });
  return row?.message_id;
}

interface Accepting {
  caller: Caller;
  inbox: InboxRow;
  input: CallInput;
  files: IncomingFile[];
  keyed: Keyed | null;
  onRate: CallOptions["onRate"];
}

type Accepted = { row: MessageRow; job: Job | null } | { replay_of: string; job: null };

/** Stores the call, and claims its job when a slot is free, so that it runs at once and in this request. */
async function acceptOnce(app: App, accepting: Accepting): Promise<Accepted> {
  const { caller, inbox, input, files, keyed } = accepting;
  const { user, key_id } = caller;
  const { instruction, content = null, conversation_id = null, metadata = {} } = input;
  // Looked at now, as nobody knows later whose key it came with.
  const lasts = isAboutTimes(parseCommand(instruction).options);
  const subject = subjectOf(instruction);
  const bytes = sizeOf({ content, files });
  const stores = await mayStoreCall(app, user, { files, bytes });
  const inline = { user, wanted: input.async !== true, bytes, stores };
  return acceptInline(app, inline, async (tx, slot): Promise<Accepted> => {
    const earlier = keyed && (await findKeyed(app, tx, user, keyed));
    if (earlier) return { replay_of: earlier, job: null };
    takeRate(app, user, accepting.onRate);
    // The inbox is looked up again, because it may have been deleted or paused since.
    refusePaused(await ownInbox(tx, user, inbox.id));
    const call = {
      user,
      key_id,
      inbox,
      subject,
      instruction,
      content,
      conversation_id,
      files,
      metadata,
      slot,
    };
    const accepted = await acceptCall(app, tx, { ...call, source: "api" });
    if (lasts) await tellWhatStays(app, tx, caller, [BY_CALL]);
    if (keyed && accepted.row.state !== "limited")
      await rememberKey(app, tx, { user, keyed, message_id: accepted.row.id });
    return accepted;
  });
}

/** The first line of what is asked. Flags and tags are nothing that a conversation is about. */
function subjectOf(instruction: string): string {
  const stays = (): boolean => false;
  const asked = parseCommand(instruction, { aims: false, isContext: stays, isMacro: stays }).command;
  return (asked || instruction).split("\n", 1)[0]?.trim() ?? "";
}

/** What is told of a call by a key that makes a schedule, or changes the times of one. */
const BY_CALL = "a schedule was added or changed by a call";

async function rememberKey(
  app: App,
  tx: Db,
  known: { user: UserRow; keyed: Keyed; message_id: string },
): Promise<void> {
  const { user, keyed, message_id } = known;
  const row = { user_id: user.id, route: ROUTE, ...keyed, message_id, created: app.after(0) };
  await tx
    .insertInto("idempotency_keys")
    .values(row)
    .onConflict((conflict) => conflict.columns(["user_id", "route", "key"]).doUpdateSet(row))
    .execute();
}

async function replay(
  app: App,
  user: UserRow,
  { message_id, input, options }: { message_id: string; input: CallInput; options: CallOptions },
): Promise<CallOutcome> {
  const ended = app.finished.wait(message_id, budgetMs(app, input, options));
  const now = await readMade(app, user, message_id);
  if (now.status !== "processing") return { view: now, replayed: true };
  await ended;
  const then = await readMade(app, user, message_id);
  // The answer names a message whose commit may not be synced yet: the caller who made it may still wait for its end.
  if (then.status === "processing") await syncCommits(app);
  return { view: then, replayed: true };
}

/**
 * The message that this call made, or that an earlier call with its key made. Throws if its owner has deleted it since.
 */
async function readMade(app: App, user: UserRow, id: string): Promise<RunView> {
  const [row] = await ownMessage(app.db, { user_id: user.id, id, since: 0 });
  if (row) return runView(app, user, row);
  throw new AppError("not_found", "The message of this call has been deleted.", {
    fix: "The same Idempotency-Key does not make it again. To have the same done again, call without that key, or with a new one.",
  });
}

function budgetMs(app: App, input: CallInput, { wait_seconds }: CallOptions): number {
  if (input.async === true) return 0;
  return Math.min(app.config.routing.sync_budget_seconds, wait_seconds ?? Number.POSITIVE_INFINITY) * 1_000;
}
