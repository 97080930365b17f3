import type { App } from "../app.ts";
import { afterCommit, type Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import { tryAgainNow } from "./again.ts";
import type { KeyRange } from "./keyed.ts";

const PREFIX = "tries:";
/** Jobs that one step looks at. */
const ROWS = 50;

interface Try {
  user_id: string;
  message_id: string;
  /** The connection whose model has failed for the moment. */
  connection_id: string;
}

/** Returns the key of a job that waits until a model is asked again, by which it is found once that is mended. */
export function untilNextTry({ user_id, message_id, connection_id }: Try): string {
  return `${PREFIX}${user_id}:${message_id}:${connection_id}`;
}

/** Whether a message waits until its model is asked again. */
export async function waitsForTry(
  app: Pick<App, "now">,
  db: Db,
  message: { id: string; user_id: string },
): Promise<boolean> {
  return (await waitingIn(db, { ...keysOf(message), now: app.now(), limit: 1 })).length > 0;
}

/** Whether any message of an account waits until its model is asked again. */
export async function isAnyWaiting(app: App, user_id: string): Promise<boolean> {
  return (await waitingIn(app.db, { ...keysOfAccount(user_id), now: app.now(), limit: 1 })).length > 0;
}

/** Has the model of a message asked again now; false if it does not wait for that. */
export async function tryNow(app: App, tx: Db, message: { id: string; user_id: string }): Promise<boolean> {
  const found = await waitingIn(tx, { ...keysOf(message), now: app.now(), limit: 1 });
  await hastenAll(app, tx, found);
  return found.length > 0;
}

/**
 * Has messages of an account tried now that wait for one of these connections: of some that come behind the key `after`. Returns the
 * last key, and undefined once there are no more. Such a try does not count as one of theirs.
 */
export async function trySome(
  app: App,
  tx: Db,
  {
    user_id,
    connection_ids,
    after,
  }: { user_id: string; connection_ids: string[]; after?: string | undefined },
): Promise<string | undefined> {
  const { from, below } = keysOfAccount(user_id);
  const found = await waitingIn(tx, { from: after ?? from, below, now: app.now(), limit: ROWS });
  const ids = new Set(connection_ids);
  await hastenAll(
    app,
    tx,
    found.filter(({ dedupe_key }) => ids.has(partsOf(dedupe_key).connection_id)),
  );
  return found.length < ROWS ? undefined : (found.at(-1)?.dedupe_key ?? undefined);
}

type Waiting = Awaited<ReturnType<typeof waitingIn>>[number];

async function hastenAll(app: App, tx: Db, waiting: Waiting[]): Promise<void> {
  for (const { id, dedupe_key } of waiting) {
    await tryAgainNow(tx, { id, now: app.now() });
    const { user_id, message_id } = partsOf(dedupe_key);
    afterCommit(tx, () => app.changes.tell(user_id, message_id));
  }
  if (waiting.length > 0) app.worker?.wake("route_message");
}

function partsOf(key: string | null): Try {
  const [, user_id = "", message_id = "", connection_id = ""] = key?.split(":") ?? [];
  return { user_id, message_id, connection_id };
}

function keysOfAccount(user_id: string): KeyRange {
  return { from: `${PREFIX}${user_id}:`, below: `${PREFIX}${user_id};` };
}

function keysOf({ id, user_id }: { id: string; user_id: string }): KeyRange {
  return { from: `${PREFIX}${user_id}:${id}:`, below: `${PREFIX}${user_id}:${id};` };
}

const waitingIn = prepared((db, { from, below, now, limit }: KeyRange & { now: number; limit: number }) =>
  db
    .selectFrom("jobs")
    .select(["id", "dedupe_key"])
    .where("dedupe_key", ">", from)
    .where("dedupe_key", "<", below)
    .where("status", "=", "pending")
    .where("run_at", ">", now)
    .orderBy("dedupe_key")
    .limit(limit),
);
