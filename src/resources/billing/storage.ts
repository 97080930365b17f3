import type { App } from "../../app.ts";
import { storedBytes } from "../../db/account-storage.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { moreOf, planLimits } from "./plans.ts";
import { MB } from "../../lib/sizes.ts";

/** How much of an account's bound the mail of others may fill: whoever writes to it must not keep its owner out. */
export const STRANGERS_PERCENT = 80;

/** Who caused the bytes: the owner and those whom the owner has listed, or anybody else. */
export type Whose = "household" | "strangers";

/** What an account stores and may store, in bytes; `limit_bytes` is null without a limit. */
export interface Storage {
  bytes: number;
  limit_bytes: number | null;
}

/**
 * The bytes of an account: its mails as they came in and were sent, the files of its messages, what its calls brought
 * along, the words of its messages (instruction, answer and steps), what events say of them, what is remembered of the words of
 * tools, and its contexts. The database counts them itself.
 */
export async function storageOf(app: App, db: Db, user: Pick<UserRow, "id" | "plan">): Promise<Storage> {
  const [row] = await storedBytes(db, { user_id: user.id });
  const { storage_mb } = planLimits(app.config, user.plan);
  return { bytes: row?.bytes ?? 0, limit_bytes: storage_mb === 0 ? null : storage_mb * MB };
}

/** The bytes that an account has room for; negative beyond its bound, and without end where it has none. */
export function freeFor({ bytes, limit_bytes }: Storage, whose: Whose): number {
  if (limit_bytes === null) return Number.POSITIVE_INFINITY;
  return (whose === "household" ? limit_bytes : (STRANGERS_PERCENT / 100) * limit_bytes) - bytes;
}

/** Throws `storage_full` when an account has no room for `adding` bytes more. */
export async function refuseFull(app: App, db: Db, user: UserRow, adding: number): Promise<void> {
  const full = await whyFull(app, db, user, adding);
  if (full !== undefined) throw full;
}

/** Returns what `refuseFull` throws; undefined where there is room. */
export async function whyFull(
  app: App,
  db: Db,
  user: UserRow,
  adding: number,
): Promise<StorageFull | undefined> {
  const { bytes, limit_bytes } = await storageOf(app, db, user);
  if (limit_bytes === null || bytes + adding <= limit_bytes) return undefined;
  return new StorageFull(app, user, { bytes, limit_bytes, adding });
}

/** The mend, in a sentence. */
export function howToMakeRoom({ config }: Pick<App, "config">, plan: UserRow["plan"]): string {
  return `Choose fewer “Days to keep content” in the settings of an inbox (what is older goes within the hour), delete contexts, or ${moreOf(config, plan, "storage_mb")}.`;
}

/** What the caller hears; `bytes` are those that found no room. */
export class StorageFull extends AppError {
  readonly bytes: number;

  constructor(
    app: Pick<App, "config">,
    { plan }: UserRow,
    { bytes, limit_bytes, adding }: Record<"bytes" | "limit_bytes" | "adding", number>,
  ) {
    const room = `You may store ${inMb(limit_bytes)}, of which ${inMb(bytes)} are used`;
    const what = adding === 0 ? "this" : `the ${inMb(adding)} of this`;
    super("storage_full", `${room}, so there is no room for ${what}.`, {
      fix: howToMakeRoom(app, plan),
      members: { limit: limit_bytes, current: bytes },
    });
    this.bytes = adding;
  }
}

/**
 * Bytes beside a bound in MB: "3.2 MB", "1,000 MB". Rounded up unless asked otherwise: what was too large must not seem
 * to fit.
 */
export function inMb(bytes: number, round: (tenths: number) => number = Math.ceil): string {
  const digits = { maximumFractionDigits: bytes < 10 * MB ? 1 : 0 };
  return `${(round((bytes * 10) / MB) / 10).toLocaleString("en-US", digits)} MB`;
}
