import type { App } from "../app.ts";
import { freeFor, storageOf } from "../resources/billing/storage.ts";
import { waitingNumbers } from "../resources/approvals/number.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { AskedCall } from "../trust/guard/guard.ts";
import type { Run } from "./close.ts";
import { workOnText } from "./text-work.ts";
import { bytesToNote, type hashesToNote, TOO_LONG, type ToNote } from "./written-texts.ts";

/** Returned for a call of whose words the account has no room to remember what is to be noted. */
export const NO_ROOM = "no room";

/** Returns what is to be noted of what a tool of others is to write, or why it cannot be. */
export async function toNote(
  app: App,
  { message, owner_plan: plan }: Pick<Run, "message" | "owner_plan">,
  given: Parameters<typeof hashesToNote>[0],
): Promise<ToNote | typeof TOO_LONG | typeof NO_ROOM> {
  const noted = await workOnText(app, "writes", given, sourceOf(message));
  if (noted === undefined || noted === TOO_LONG) return TOO_LONG;
  const storage = await storageOf(app, app.db, { id: message.user_id, plan });
  return bytesToNote(noted) <= freeFor(storage, "household") ? noted : NO_ROOM;
}

/** The numbers of requests for consent that may not be written: a letter about one may have gone out while this run went on. */
export async function numbersNow(app: App, run: Pick<Run, "message">, call: Written): Promise<string[]> {
  return isUnseen(run, call) ? waitingNumbers(app, run.message.user_id) : [];
}

type Written = Pick<AskedCall, "tool" | "tainted">;

/** Whether others than the owner may have chosen what a tool of others writes: a listed sender, who has an API key, or whose words were read. */
export function isUnseen({ message }: Pick<Run, "message">, { tool, tainted }: Written): boolean {
  const { source, authority, schedule_id } = message;
  const is_own = source === "email" && authority === "owner" && schedule_id === null && !tainted;
  return tool.foreign && !tool.read_only && !is_own;
}
