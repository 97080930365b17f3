import type { App } from "../../app.ts";
import { runShare } from "../billing/plans.ts";
import type { Whose } from "../billing/storage.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { isCausedByStranger } from "../../db/strangers.ts";
import type { Use } from "../../jobs/shares.ts";
import type { AcceptedCall } from "../../inbound/accept.ts";
import { MB } from "../../lib/sizes.ts";

/** Bytes that a run holds in memory beside its input: the prompt and the answers. */
const RUN_BYTES = 2 * MB;
/** How many copies of its input a run holds at once. */
const COPIES = 4;

/** Returns what a run with `bytes` of input takes of the worker. `strangers`: mail of strangers caused it. */
export function runUse(
  app: App,
  user: UserRow,
  { bytes, strangers = false }: { bytes: number; strangers?: boolean },
): Use {
  const share = { ...runShare(app, user), strangers };
  return { share, weight: RUN_BYTES + COPIES * bytes, target: null };
}

/** Whose turn the work on a message takes: that of its account, or of strangers to it. */
export function sourceOf(message: Pick<MessageRow, "user_id" | "authority" | "retry_of">): {
  account: string;
  strangers: boolean;
} {
  return { account: message.user_id, strangers: isCausedByStranger(message) };
}

/** Who has caused the work on a message, and so spends a budget. */
export function causeOf(message: Parameters<typeof isCausedByStranger>[0]): Whose {
  return isCausedByStranger(message) ? "strangers" : "household";
}

/** The bytes that a call brought along. */
export function sizeOf({ content, files }: Pick<AcceptedCall, "content" | "files">): number {
  return files.reduce((sum, { bytes }) => sum + bytes.byteLength, Buffer.byteLength(content ?? ""));
}
