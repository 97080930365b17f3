import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow } from "../db/schema.ts";
import { freeFor, howToMakeRoom, storageOf } from "../resources/billing/storage.ts";
import { waitingNumbers } from "../resources/approvals/number.ts";
import { sourceOf } from "../resources/messages/run-use.ts";
import type { AskedCall } from "../trust/guard/guard.ts";
import type { Run } from "./close.ts";
import { workOnText } from "./text-work.ts";
import type { Talk } from "./tool-loop.ts";
import {
  bytesToNote,
  type hashesToNote,
  noteWritten,
  TOO_LONG,
  type ToNote,
  UNSEEN,
} from "./written-texts.ts";

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

/** For whom a tool would write, as the guard is told. */
export type WhoseWriting = Pick<AskedCall, "unseen" | "by_owner" | "numbers">;

/** Tells for whom a tool would write by a call, and which requests wait now: a letter about one may have gone out while this run went on. */
export async function whoseWriting(
  app: App,
  run: Pick<Run, "message">,
  call: Written,
): Promise<WhoseWriting> {
  const unseen = isUnseen(run, call);
  const numbers = unseen ? await waitingNumbers(app, run.message.user_id) : [];
  return { unseen, by_owner: isByOwner(run.message), numbers };
}

type Written = Pick<AskedCall, "tool" | "tainted">;

/**
 * Whether the owner may not have read what a tool of others writes, as others may have chosen it: a listed sender, who has
 * an API key, or whose words were read.
 */
export function isUnseen({ message }: Pick<Run, "message">, { tool, tainted }: Written): boolean {
  const is_own = isByOwner(message) && message.schedule_id === null && !tainted;
  return tool.foreign && !tool.read_only && !is_own;
}

/** Whether a message is the owner's in person: a mail of their own, or what somebody asks for who is signed in. */
export function isByOwner({
  source,
  authority,
  key_id,
}: Pick<MessageRow, "source" | "authority" | "key_id">): boolean {
  return key_id === null && (source !== "email" || authority === "owner");
}

/** What a call notes that has nothing to write. */
export const NOTHING_TO_NOTE: ToNote = {
  hashes: new Uint8Array(),
  own_hashes: new Uint8Array(),
  takes: { words: 0, chars: 0 },
};

const TOO_LONG_TO_KNOW =
  "Not called: in a run that has read words of others, or that another than the owner has asked for, tools write at most 8,000 words in all, as these must be known again if they come back by mail. Write less, or leave the rest to another one.";
const NO_ROOM_TO_KNOW =
  "Not called: what a tool writes in a run that has read words of others, or that another than the owner has asked for, has to be remembered, and this account has no room left for that.";

/**
 * Returns what is to be noted of what a tool of others is to write, or a sentence on why it is not to be written: nothing may be
 * written that would not be known again.
 */
export async function toNoteInTalk(
  app: App,
  run: Run,
  { own, writing: room }: Pick<Talk, "own" | "writing">,
  args: Record<string, unknown>,
): Promise<ToNote | string> {
  const noted = await toNote(app, run, { args, own, room });
  if (noted === TOO_LONG) return TOO_LONG_TO_KNOW;
  return noted === NO_ROOM ? `${NO_ROOM_TO_KNOW} ${howToMakeRoom(app, run.owner_plan)}` : noted;
}

/** Notes what a call writes that the owner may not have read. Words of the owner's own are theirs, should they come back. */
export async function noteUnseen(
  app: App,
  tx: Db,
  { message }: Pick<Run, "message">,
  { hashes, own_hashes }: ToNote,
): Promise<void> {
  const { user_id } = message;
  await noteWritten(app, tx, { user_id, hashes: Buffer.concat([UNSEEN, hashes]), author: null });
  if (isByOwner(message)) return;
  const author = message.source === "email" ? message.sender : null;
  await noteWritten(app, tx, { user_id, hashes: own_hashes, author });
}
