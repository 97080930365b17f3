import { createHash } from "node:crypto";
import type { Tool, ToolOutcome } from "../ai/tool.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { canonicalJson } from "../lib/canonical-json.ts";

export interface JournalEntry {
  message_id: string;
  fingerprint: string;
}

type Kept = Pick<ToolOutcome, "ok" | "text" | "places">;

/** Names a call within its run, so that the same run done again finds it: the `nth` of this tool with these arguments. */
export function fingerprintOf(
  { target, name }: Pick<Tool, "target" | "name">,
  args: Record<string, unknown>,
  nth: number,
): string {
  return createHash("sha256")
    .update(JSON.stringify([target, name, nth]))
    .update(canonicalJson(args))
    .digest("hex");
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
    await tx
      .insertInto("tool_calls")
      .values({ ...entry, outcome: null, created: app.now() })
      .execute();
    return null;
  });
}

export async function endCall(app: App, entry: JournalEntry, { ok, text, places }: Kept): Promise<void> {
  await app.write((tx) =>
    tx
      .updateTable("tool_calls")
      .set({ outcome: JSON.stringify({ ok, text, places }) })
      .where("message_id", "=", entry.message_id)
      .where("fingerprint", "=", entry.fingerprint)
      .execute(),
  );
}

/** Once a run has ended it is never done again. */
export async function forgetCalls(tx: Db, message_id: string): Promise<void> {
  await tx.deleteFrom("tool_calls").where("message_id", "=", message_id).execute();
}

const UNKNOWN: Kept = {
  ok: false,
  text: "This call was begun once already and the server stopped before its answer came, so it may or may not have been done. It was not made again; look there before you repeat it.",
};
