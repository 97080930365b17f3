import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { scopeOf } from "../db/inbox-columns.ts";
import type { ApprovalRow, ConnectionRow, MessageRow, UserRow } from "../db/schema.ts";
import { userById } from "../db/users.ts";
import { authorityNow } from "../inbound/judge-sender.ts";
import { deadline } from "../lib/deadline.ts";
import { refuseWithoutHandles } from "../lib/own-faults.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import { isRunOf, take, whenSaid, whyDecided } from "../resources/approvals/approvals.ts";
import { approvalById, argumentsOf } from "../resources/approvals/view.ts";
import { hashOf } from "../resources/approvals/hash.ts";
import { howToMakeRoom } from "../resources/billing/storage.ts";
import { targetsOf } from "../resources/connections/targets.ts";
import { inboxById } from "../resources/inboxes/inboxes.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { CANCELLED_REASON } from "../resources/messages/cancelled.ts";
import { messageById } from "../resources/messages/messages.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import { shortTarget } from "../trust/shown/call-name.ts";
import type { Run } from "./close.ts";
import { keepMade } from "./made-files.ts";
import { doneStep, warningStep } from "./steps.ts";
import { makeTextFile } from "./text-work.ts";
import { NO_ROOM, NOTHING_TO_NOTE, toNote } from "./to-note.ts";
import { beginCall, endCall, UNKNOWN } from "./tool-journal.ts";
import { openToolbox, withoutCode } from "./toolbox.ts";
import { noteWritten, TOO_LONG, type ToNote, writingRoom } from "./written-texts.ts";

/** What became of a call to which its owner has consented. */
export type Outcome =
  | { called: true; state: "done" | "failed" | "unknown"; text: string }
  /** Nothing was called; `why` says the reason and what to do. */
  | { called: false; why: string };

/**
 * Makes exactly the call that an approval is for, once: what it needs is looked at anew, and it is noted before it is made, in the
 * transaction that uses up the consent. A run that was interrupted finds the note, and does not make it again.
 */
export async function callApproved(app: App, run: Run, approval: ApprovalRow): Promise<Outcome> {
  const [earlier] = run.journal.earlier;
  if (earlier !== undefined) {
    if (earlier.step !== undefined) run.steps.push(earlier.step);
    const state = earlier.unknown === true ? "unknown" : earlier.ok ? "done" : "failed";
    return { called: true, state, text: earlier.text };
  }
  const why = await whyNot(app, app.db, run, approval.id);
  if (why !== null) return { called: false, why };
  using cap = deadline(run.signal, app.config.routing.hard_cap_seconds * 1_000);
  const found = await findTool(app, run, approval, cap.signal);
  if ("why" in found) return { called: false, why: found.why };
  return makeOnce(app, run, approval, { ...found, signal: cap.signal });
}

interface Found {
  tool: Tool;
  args: Record<string, unknown>;
}

/** The tool as it is by now. Another one than the owner was asked about is not called. */
async function findTool(
  app: App,
  run: Run,
  approval: ApprovalRow,
  signal: AbortSignal,
): Promise<Found | { why: string }> {
  const args = argumentsOf(approval);
  const standing = await standingOf(app, app.db, approval);
  if ("why" in standing || args === null) return { why: "why" in standing ? standing.why : CHANGED };
  const { connection } = standing;
  const box = await openToolbox(app, [{ name: approval.target, connection, anew: true }], signal);
  if (run.signal.aborted) throw run.signal.reason;
  const missing = box.missing.get(approval.target);
  if (missing !== undefined) return { why: `Its tools could not be used: ${missing} ${STILL_OPEN}` };
  const tool = box.tools.find((offered) => offered.tool.name === approval.tool)?.tool;
  if (tool === undefined)
    return { why: `There is no tool of this name at @${shortTarget(approval)} any more. ${ANEW}` };
  return hashOf(connection, tool, args) === approval.hash ? { tool, args } : { why: CHANGED };
}

const ANEW = "If you still want it done, ask for it again in a new mail.";
const STILL_OPEN = "Nothing was called, so that you can still allow it: once that is mended, say yes again.";
const CHANGED = `Its tool, where that is, or the account it is used with has changed since you were asked, so it would not be what you have seen. ${ANEW}`;

type Standing = { connection: ConnectionRow; user: UserRow } | { why: string };

/** Whether what a consent needs is still there: whoever wanted the call, the right of the inbox to it, and the connection. */
async function standingOf(app: App, db: Db, approval: ApprovalRow): Promise<Standing> {
  const [origin] = await messageById(db, { id: approval.message_id });
  const [user] = await userById(db, { id: approval.user_id });
  const [inbox] = await inboxById(db, { id: approval.inbox_id });
  if (!origin || origin.deleted_at !== null || !inbox || user?.deleted_at !== null)
    return { why: "The message that wanted it, or its inbox, has been deleted." };
  const authority = await authorityNow(db, { inbox, user }, origin);
  if (!hasAuthority({ authority })) return { why: await whyNoMore(db, origin) };
  const { target } = approval;
  const asked = { authority, scope: scopeOf(inbox), target, tools: true, allow_destructive: true };
  if (!app.guard.powersOf(asked).mayUse(target))
    return {
      why: `@${shortTarget(approval)} may not be used in this inbox any more. Tick it on its page under “Tools”.`,
    };
  const { attached } = await targetsOf(db, inbox);
  const connection = attached.find(({ name }) => name === target)?.connection;
  return connection?.id === approval.connection_id
    ? { connection, user }
    : {
        why: `The connection that it was to go through is not that of @${shortTarget(approval)} any more. ${ANEW}`,
      };
}

/** Why whoever wanted a call may not have it made any more. */
async function whyNoMore(db: Db, origin: MessageRow): Promise<string> {
  if (await isKeyRevoked(db, origin)) return `The API key that wanted it has been revoked. ${ANEW}`;
  return `${origin.sender ?? "Whoever wanted it"} may not give instructions to this inbox any more. Put the address on its list of “Who may write” again, or ask for it yourself.`;
}

/** Why a call may not be made by this run, by what is stored. */
async function whyNot(
  app: App,
  db: Db,
  { message, owner_timezone }: Run,
  id: string,
): Promise<string | null> {
  const [approval] = await approvalById(db, { id, user_id: message.user_id });
  if (approval === undefined || approval.inbox_id !== message.inbox_id) return GONE;
  const is_mine = approval.state === "approved" && isRunOf(approval, message);
  const decided = is_mine
    ? null
    : whyDecided(approval, { now: whenSaid(app, message), timezone: owner_timezone });
  if (decided !== null) return `${decided.sentence} ${decided.mend}`;
  if (!is_mine && (await wasCancelled(db, message))) return WITHDRAWN;
  const standing = await standingOf(app, db, approval);
  return "why" in standing ? standing.why : null;
}

/** Whether the owner has cancelled an earlier try of a message, and with it what it says: a key may try it again. */
async function wasCancelled(db: Db, { retry_of }: MessageRow): Promise<boolean> {
  if (retry_of === null) return false;
  const tries = db.selectFrom("messages").select("id").where("reason", "=", CANCELLED_REASON);
  const cancelled = tries.where((eb) => eb.or([eb("id", "=", retry_of), eb("retry_of", "=", retry_of)]));
  return (await cancelled.executeTakeFirst()) !== undefined;
}

const WITHDRAWN = "Your yes was cancelled before it was done. Say yes again, if you still want it done.";
export const GONE = "There is no such request any more: it was deleted with the message that wanted it.";

async function makeOnce(
  app: App,
  run: Run,
  { id, hash }: ApprovalRow,
  { tool, args, signal }: Found & { signal: AbortSignal },
): Promise<Outcome> {
  const { message } = run;
  const noted = await toNoteOf(app, run, { tool, args });
  if (typeof noted === "string") return { called: false, why: noted };
  refuseWithoutHandles();
  const entry = { message_id: message.id, fingerprint: hash };
  const begun = doneStep(tool, args, UNKNOWN);
  let why: string | null = null;
  const kept = await beginCall(app, entry, {
    step: begun,
    granted: async (tx) => (why = await whyNot(app, tx, run, id)) === null,
    async alongside(tx) {
      await take(app, tx, { id, run_id: message.id, from: ["pending", "approved"], state: "called" });
      await noteWritten(app, tx, { user_id: message.user_id, hashes: noted.hashes, author: null });
    },
  });
  if (why !== null) return { called: false, why };
  if (kept !== null && kept !== UNKNOWN) return { called: false, why: kept.text };
  run.changed = true;
  if (kept !== null) return { called: true, state: "unknown", text: UNKNOWN.text };
  const began = performance.now();
  const said = await answerOf(run, withoutCode(app, message, tool.call(args, signal)));
  const { ok, unanswered = false } = said;
  const step = { ...doneStep(tool, args, said), duration_ms: Math.round(performance.now() - began) };
  await endCall(app, run.signal, entry, { ...said, step });
  const left_out = await keepMade(run.made, said.files, (file, trust) =>
    makeTextFile(app, file, trust, sourceOf(message)),
  );
  run.steps.push(step, ...left_out.map(warningStep));
  return { called: true, state: unanswered ? "unknown" : ok ? "done" : "failed", text: said.text };
}

/** What a tool answers; that it did not in time is an answer as well, but not that this server stops. */
async function answerOf({ signal }: Run, answer: Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await answer;
  } catch (error) {
    if (signal.aborted) throw error;
    return { ok: false, text: "No answer came in time.", files: [], unanswered: true };
  }
}

/** What is to be remembered of what a tool of others writes: it may come back as a mail in the owner's name. */
async function toNoteOf(app: App, run: Run, { tool, args }: Found): Promise<ToNote | string> {
  if (!tool.foreign || tool.read_only) return NOTHING_TO_NOTE;
  const noted = await toNote(app, run, { args, own: "", room: writingRoom() });
  if (noted === TOO_LONG) return `It is too long to be known again, should it come back by mail. ${ANEW}`;
  if (noted !== NO_ROOM) return noted;
  return `What a tool writes has to be remembered, and this account has no room left for that. ${howToMakeRoom(app, run.owner_plan)} ${STILL_OPEN}`;
}
