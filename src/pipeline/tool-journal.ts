import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { storedJson } from "../lib/stored-json.ts";
import { excerptOf } from "../trust/shown/redact.ts";
import { type Step, type StepDraft, toSteps, warningStep } from "./steps.ts";
import { sha256 } from "../lib/sha256.ts";

export interface JournalEntry {
  message_id: string;
  fingerprint: string;
}

/** What is noted of a call: its outcome, without the bytes of files. */
interface Kept extends Pick<ToolOutcome, "ok" | "text" | "places"> {
  /** True if nobody knows what came of the call. */
  unknown?: boolean;
  files?: string[];
  /** The call itself; undefined if an earlier version of the server noted it. */
  step?: StepDraft;
}

/** A call that an earlier try of a run has noted. */
export interface EarlierCall extends Kept {
  fingerprint: string;
}

/**
 * Names a call within its run, so that the same run done again recognises it: `nth` counts the calls of this tool with
 * these arguments.
 */
export function fingerprintOf(
  { target, name }: Pick<Tool, "target" | "name">,
  args: Record<string, unknown>,
  nth: number,
): string {
  return sha256(JSON.stringify([target, name, nth]) + canonicalJson(args), "hex");
}

/**
 * Notes a call that changes something before it is made; `step` says which call it is. Returns null if the call is to
 * be made. It is not if its inbox has been deleted, if it is not `granted` any more, or if it is noted already, as two
 * tries of a run may overlap.
 */
export async function beginCall(
  app: App,
  { message_id, fingerprint }: JournalEntry,
  {
    step,
    granted,
    alongside,
  }: { step: StepDraft; granted: (tx: Db) => Promise<boolean>; alongside?: (tx: Db) => Promise<void> },
): Promise<Kept | null> {
  return app.write(async (tx) => {
    const [message] = await messageOf(tx, { id: message_id });
    if (!message) return GONE;
    if (message.state !== "received") return ENDED;
    if (!(await granted(tx))) return WITHDRAWN;
    const outcome = JSON.stringify({ ...UNKNOWN, step } satisfies Kept);
    const { numInsertedOrUpdatedRows } = await tx
      .insertInto("tool_calls")
      .values({ message_id, fingerprint, outcome, created: app.now() })
      .onConflict((conflict) => conflict.doNothing())
      .executeTakeFirst();
    if (numInsertedOrUpdatedRows === 0n) return UNKNOWN;
    await alongside?.(tx);
    return null;
  });
}

/** The state of a message whose inbox still exists: whoever deletes an inbox wants nothing more to be done for it. */
const messageOf = prepared((db, key: { id: string }) =>
  db
    .selectFrom("messages")
    .innerJoin("inboxes", "inboxes.id", "messages.inbox_id")
    .select("messages.state")
    .where("messages.id", "=", key.id)
    .where("inboxes.deleted_at", "is", null),
);

const GONE: Kept = { ok: false, text: "Not called: the inbox of this message has been deleted meanwhile." };

const ENDED: Kept = { ok: false, text: "Not called: the run was cancelled before." };

const WITHDRAWN: Kept = {
  ok: false,
  text: "Not called: since this run began, its inbox or its sender has lost the right to use this tool so.",
};

export const UNKNOWN: Kept = {
  ok: false,
  text: "This call was begun once already and ended before its answer came, so it may or may not have been done. It was not made again; look there before you repeat it.",
  unknown: true,
};

/** Notes what came of a call, with the step that tells of it. It came from outside and cannot be asked for again, so that a disk is waited for. */
export async function endCall(
  app: App,
  signal: AbortSignal,
  { message_id, fingerprint }: JournalEntry,
  { ok, text, places, files, step, unanswered = false }: ToolOutcome & { step: StepDraft },
): Promise<void> {
  const kept: Kept = { ok, text, files: files.map(({ filename }) => filename), step };
  if (unanswered) kept.unknown = true;
  if (places !== undefined) kept.places = places;
  await writeOutcome(app, signal, (tx) =>
    tx
      .updateTable("tool_calls")
      .set({ outcome: JSON.stringify(kept) })
      .where("message_id", "=", message_id)
      .where("fingerprint", "=", fingerprint)
      .execute(),
  );
}

/** The calls that tries of a run have noted, in the order in which they were begun. */
export async function notedCalls(db: Db, message_id: string): Promise<EarlierCall[]> {
  const rows = await callsOf(db, { message_id });
  return rows.map(({ fingerprint, outcome }) => Object.assign({ fingerprint }, keptIn(outcome)));
}

/** The note of a call. One without an outcome was begun and not ended; of one that is damaged as little is known. */
function keptIn(outcome: string | null): Kept {
  return outcome === null ? UNKNOWN : storedJson<Kept>(outcome, UNKNOWN);
}

const callsOf = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("tool_calls")
    .select(["fingerprint", "outcome"])
    .where("message_id", "=", key.message_id)
    .orderBy(db.dynamic.ref("rowid")),
);

/** The steps about calls that an earlier try made and this one did not ask for again. */
export function stepsOfEarlier(calls: EarlierCall[]): StepDraft[] {
  return calls.flatMap((call) => [
    ...doubtsAbout(call),
    ...(call.step === undefined ? [] : [inEarlierTry(call.step)]),
  ]);
}

/** The steps of a run that was ended in the middle: those it has told of, and those of calls it had noted besides. */
export function stepsWith(told: Step[], noted: EarlierCall[]): Step[] {
  const keys = told.map(keyOfStep);
  const untold = noted.filter(({ step }) => {
    const at = step === undefined ? -1 : keys.indexOf(keyOfStep(step));
    if (at !== -1) keys.splice(at, 1);
    return at === -1;
  });
  return toSteps([...told, ...untold.flatMap((call) => call.step ?? [])]);
}

function keyOfStep({ server, name, arguments: args }: StepDraft): string {
  return JSON.stringify([server, name, args]);
}

/** The step of a call that this try does not make, for an earlier one has made it. */
export function inEarlierTry(step: StepDraft): StepDraft {
  return { ...step, output: excerptOf(`In an earlier try: ${step.output}`) };
}

/** Warnings to the sender about a call that an earlier try made. */
export function doubtsAbout({ unknown = false, files = [] }: EarlierCall): StepDraft[] {
  const lost = files.map((name) => `${name} was made in an earlier try, and lost.`);
  return [...(unknown ? [BEGUN] : []), ...lost].map(warningStep);
}

const BEGUN =
  "An earlier try of this message began a call that changes something and heard no answer to it, so it may or may not have been done.";

/** Deletes the noted calls of a message: once its work is done it is never done again. */
export async function forgetCalls(tx: Db, message_id: string): Promise<void> {
  await tx.deleteFrom("tool_calls").where("message_id", "=", message_id).execute();
}

/**
 * Keeps the calls of a failed run for the run that does its work again, for as long as the message exists. Of the
 * outcomes only as much is kept as the steps show.
 */
export async function keepCalls(tx: Db, message_id: string): Promise<void> {
  for (const { fingerprint, ...call } of await notedCalls(tx, message_id)) {
    const outcome = JSON.stringify({ ...call, text: excerptOf(call.text) } satisfies Kept);
    await tx
      .updateTable("tool_calls")
      .set({ outcome })
      .where("message_id", "=", message_id)
      .where("fingerprint", "=", fingerprint)
      .execute();
  }
}
