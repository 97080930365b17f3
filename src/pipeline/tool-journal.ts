import type { Tool, ToolOutcome } from "../trust/guard/tool.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { excerptOf } from "../trust/shown/redact.ts";
import { type Step, type StepDraft, toSteps, warning } from "./steps.ts";
import { sha256 } from "../lib/sha256.ts";

export interface JournalEntry {
  message_id: string;
  fingerprint: string;
}

/** What is noted of a call: what came of it, without the bytes of files. */
interface Kept extends Pick<ToolOutcome, "ok" | "text" | "places"> {
  /** Nobody knows what came of it. */
  unknown?: boolean;
  files?: string[];
  /** Which call it is; undefined where an earlier version noted it. */
  step?: StepDraft;
}

/** A call that an earlier try of a run has noted. */
export interface EarlierCall extends Kept {
  fingerprint: string;
}

/** Names a call within its run, so that the same run done again finds it: the `nth` of this tool with these arguments. */
export function fingerprintOf(
  { target, name }: Pick<Tool, "target" | "name">,
  args: Record<string, unknown>,
  nth: number,
): string {
  return sha256(JSON.stringify([target, name, nth]) + canonicalJson(args), "hex");
}

/**
 * Notes a call that changes something before it is made; `step` says which. Null if it is to be made: not one of an inbox
 * that has been deleted, nor one that is not `granted` any more, nor one that is noted already, for two tries of a run may
 * overlap.
 */
export async function beginCall(
  app: App,
  { message_id, fingerprint }: JournalEntry,
  { step, granted }: { step: StepDraft; granted: (tx: Db) => Promise<boolean> },
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
    return numInsertedOrUpdatedRows === 0n ? UNKNOWN : null;
  });
}

/** Only while its inbox is there: who deletes that wants nothing more to be done. */
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

/** Notes what came of a call, with the step that tells of it. */
export async function endCall(
  app: App,
  { message_id, fingerprint }: JournalEntry,
  { ok, text, places, files, step }: ToolOutcome & { step: StepDraft },
): Promise<void> {
  const kept: Kept = { ok, text, files: files.map(({ filename }) => filename), step };
  if (places !== undefined) kept.places = places;
  await app.write((tx) =>
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

/** Earlier versions noted nothing before the end. */
function keptIn(outcome: string | null): Kept {
  return outcome === null ? UNKNOWN : (JSON.parse(outcome) as Kept);
}

const callsOf = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("tool_calls")
    .select(["fingerprint", "outcome"])
    .where("message_id", "=", key.message_id)
    .orderBy(db.dynamic.ref("rowid")),
);

/** What tells of calls that an earlier try made and this one did not ask for again. */
export function stepsOfEarlier(calls: EarlierCall[]): StepDraft[] {
  return calls.flatMap((call) => [
    ...doubtsAbout(call),
    ...(call.step === undefined ? [] : [inEarlierTry(call.step)]),
  ]);
}

/** The steps that a run which was ended in the middle has told of, and what it had noted besides. */
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

/** What the sender is told of a call that an earlier try made. */
export function doubtsAbout({ unknown = false, files = [] }: EarlierCall): StepDraft[] {
  const lost = files.map((name) => `${name} was made in an earlier try, and lost.`);
  return [...(unknown ? [BEGUN] : []), ...lost].map(warning);
}

const BEGUN =
  "An earlier try of this message began a call that changes something and was stopped before its answer came, so it may or may not have been done.";

/** Once the work of a message is done it is never done again. */
export async function forgetCalls(tx: Db, message_id: string): Promise<void> {
  await tx.deleteFrom("tool_calls").where("message_id", "=", message_id).execute();
}

/**
 * Keeps the calls of a run that has failed for whoever does its work again: as long as its message is there, and no more
 * of what came of them than its steps show.
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
