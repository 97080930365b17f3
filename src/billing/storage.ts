import type { App } from "../app.ts";
import { storedBytes } from "../db/account-storage.ts";
import type { Db } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { planLimits } from "./plans.ts";

const MB = 1_048_576;

/** What an account stores and may store, in bytes; `limit_bytes` is null without a limit. */
export interface Storage {
  bytes: number;
  limit_bytes: number | null;
}

/**
 * The bytes of an account: its mails as they came in and were sent, the files of its messages, what its calls brought
 * along, the words of its messages (instruction, answer and steps) and its contexts. The database counts them itself.
 */
export async function storageOf(app: App, db: Db, user: Pick<UserRow, "id" | "plan">): Promise<Storage> {
  const [row] = await storedBytes(db, { user_id: user.id });
  const { storage_mb } = planLimits(app.config, user.plan);
  return { bytes: row?.bytes ?? 0, limit_bytes: storage_mb === 0 ? null : storage_mb * MB };
}

/** Whether an account has no room for `adding` bytes more. */
export async function isFull(app: App, db: Db, user: UserRow, adding: number): Promise<boolean> {
  const { bytes, limit_bytes } = await storageOf(app, db, user);
  return limit_bytes !== null && bytes + adding > limit_bytes;
}

/** Throws `storage_full` when an account has no room for `adding` bytes more. */
export async function refuseFull(app: App, db: Db, user: UserRow, adding: number): Promise<void> {
  const { bytes, limit_bytes } = await storageOf(app, db, user);
  if (limit_bytes === null || bytes + adding <= limit_bytes) return;
  throw new AppError(
    "storage_full",
    `Your plan stores ${inMb(limit_bytes)}, of which ${inMb(bytes)} are used, so there is no room for the ${inMb(adding)} of this.`,
    { fix: `${STORAGE_MEND}.`, members: { limit: limit_bytes, current: bytes } },
  );
}

export const STORAGE_MEND =
  "Have your inboxes keep messages for fewer days (retention_days of PATCH /inboxes/{inbox_id}; what is older goes within the hour), delete contexts, or ask the operator for a larger plan";

/** "3.2 MB", "1,000 MB". */
export function inMb(bytes: number): string {
  const digits = { maximumFractionDigits: bytes < 10 * MB ? 1 : 0 };
  return `${(Math.ceil((bytes * 10) / MB) / 10).toLocaleString("en-US", digits)} MB`;
}
