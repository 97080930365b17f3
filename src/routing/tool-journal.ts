import type { Tool, ToolOutcome } from "../ai/tool.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { excerptOf } from "./redact.ts";
import { type StepDraft, warning } from "./steps.ts";
import { sha256 } from "../lib/sha256.ts";

export interface JournalEntry {
  message_id: string;
  fingerprint: string;
}

/** Without the bytes of files, which are not kept. */
type Kept = Pick<ToolOutcome, "ok" | "text" | "places"> & { files?: string[]; step?: StepDraft };

/** A call as it was noted; `outcome` is null while nobody knows it. */
export interface NotedCall {
  fingerprint: string;
  outcome: string | null;
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
 * Notes a call that changes something before it is made. If an earlier try of the run has noted it already, gives what
 * came of it: a run is done again after a crash, its calls are not.
 */
export async function beginCall(app: App, entry: JournalEntry): Promise<Kept | null> {
  return app.write(async (tx) => {
    const known = await tx
      .selectFrom("tool_calls")
      .select("outcome")
      .where("message_id", "=", entry.message_id)
      .where("fingerprint", "=", entry.fingerprint)
      .executeTakeFirst();
    if (known) return known.outcome === null ? UNKNOWN : (JSON.parse(known.outcome) as Kept);
    const [message] = await messageOf(tx, { id: entry.message_id });
    if (!message) return GONE;
    await tx
      .insertInto("tool_calls")
      .values({ ...entry, outcome: null, created: app.now() })
      .execute();
    return null;
  });
}

/** Only while its inbox is there: who deletes that wants nothing more to be done. */
const messageOf = prepared((db, key: { id: string }) =>
  db
    .selectFrom("messages")
    .innerJoin("inboxes", "inboxes.id", "messages.inbox_id")
    .select("messages.id")
    .where("messages.id", "=", key.id)
    .where("inboxes.deleted_at", "is", null),
);

const GONE: Kept = { ok: false, text: "Not called: the inbox of this message has been deleted meanwhile." };

/** Notes what came of a call, with the step that tells of it. */
export async function endCall(
  app: App,
  entry: JournalEntry,
  { ok, text, places, files, step }: ToolOutcome & { step: StepDraft },
): Promise<void> {
  const kept: Kept = { ok, text, files: files.map(({ filename }) => filename), step };
  if (places !== undefined) kept.places = places;
  await app.write((tx) =>
    tx
      .updateTable("tool_calls")
      .set({ outcome: JSON.stringify(kept) })
      .where("message_id", "=", entry.message_id)
      .where("fingerprint", "=", entry.fingerprint)
      .execute(),
  );
}

/** The calls that this try of a run, or an earlier one, has noted. */
export const notedCalls = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("tool_calls")
    .select(["fingerprint", "outcome"])
    .where("message_id", "=", key.message_id)
    .orderBy("created"),
);

/** What an earlier try did and this one did not ask for again: it was done all the same. */
export function stepsOfEarlier(noted: NotedCall[], asked: Set<string>): StepDraft[] {
  return noted.filter(({ fingerprint }) => !asked.has(fingerprint)).map(stepOfEarlier);
}

function stepOfEarlier({ outcome }: NotedCall): StepDraft {
  const step = outcome === null ? undefined : (JSON.parse(outcome) as Kept).step;
  if (step === undefined) return warning(BEGUN);
  return { ...step, output: excerptOf(`In an earlier try: ${step.output}`) };
}

const BEGUN =
  "An earlier try of this message began a call that changes something and was stopped before its answer came, so it may or may not have been done.";

/** Once a run has ended it is never done again. */
export async function forgetCalls(tx: Db, message_id: string): Promise<void> {
  await tx.deleteFrom("tool_calls").where("message_id", "=", message_id).execute();
}

const UNKNOWN: Kept = {
  ok: false,
  text: "This call was begun once already and the server stopped before its answer came, so it may or may not have been done. It was not made again; look there before you repeat it.",
};
