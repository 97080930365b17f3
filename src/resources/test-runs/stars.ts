import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { refuseFull } from "../billing/storage.ts";
import { fitting } from "../messages/list.ts";
import { replayable } from "../replays/replays.ts";
import type { Expected } from "./expected.ts";
import { shortText } from "./short-text.ts";

/** The whole set is one answer and one page. */
const MAX_STARRED = 200;

/** Stars a message with what its answer should be, in the transaction of the caller; null takes the star away. */
export async function starMessage(
  app: App,
  tx: Db,
  user: UserRow,
  { id, expected }: { id: string; expected: Expected | null },
): Promise<void> {
  if (expected === null) {
    await tx.deleteFrom("starred_messages").where("message_id", "=", id).execute();
    return;
  }
  await replayable(app, tx, user, id);
  const [known] = await starOf(tx, { message_id: id });
  if (known === undefined) await refuseMore(tx, user);
  const row = {
    message_id: id,
    user_id: user.id,
    expected: JSON.stringify(expected),
    created: known?.created ?? app.now(),
  };
  await refuseFull(app, tx, user, Buffer.byteLength(row.expected));
  await tx
    .insertInto("starred_messages")
    .values(row)
    .onConflict((conflict) => conflict.column("message_id").doUpdateSet({ expected: row.expected }))
    .execute();
}

async function refuseMore(tx: Db, { id }: Pick<UserRow, "id">): Promise<void> {
  const [counted] = await countOf(tx, { user_id: id });
  if ((counted?.count ?? 0) < MAX_STARRED) return;
  throw new AppError("conflict", `The test set has ${MAX_STARRED} messages already.`, {
    fix: 'Take one out of it (`PATCH /messages/{message_id}` with `{"expected": null}`).',
  });
}

const countOf = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("starred_messages")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", key.user_id),
);

export const starOf = prepared((db, key: { message_id: string }) =>
  db.selectFrom("starred_messages").selectAll().where("message_id", "=", key.message_id),
);

/** What an answer should be, as it is stored; null where nothing is, and where a damaged disk has left nothing of it. */
export function expectedOf(stored: string | null | undefined): Expected | null {
  return typeof stored === "string" ? storedJson<Expected | null>(stored, null) : null;
}

interface Which {
  /** The begin of the history that the account sees; all without it. */
  since?: number;
  tag?: string | undefined;
}

/** The starred messages of an account that are still there, oldest first. */
export async function starredOf(db: Db, user: Pick<UserRow, "id">, { since = 0, tag }: Which) {
  const rows = await db
    .selectFrom("starred_messages as star")
    .innerJoin("messages", "messages.id", "star.message_id")
    .select(["star.message_id", "star.expected", "star.created"])
    .select(["messages.subject", "messages.instruction", "messages.inbox_id"])
    .select(["messages.command", "messages.tags", "messages.metadata"])
    .where("star.user_id", "=", user.id)
    .where("messages.deleted_at", "is", null)
    .where("messages.created", ">=", since)
    .orderBy("star.message_id")
    .limit(MAX_STARRED)
    .execute();
  const fits = fitting(tag === undefined ? {} : { tag });
  return fits === undefined ? rows : rows.filter(fits);
}

/** The test set as it is shown. */
export async function listTestSet(db: Db, user: UserRow, which: Which) {
  const rows = await starredOf(db, user, which);
  return rows.map((row) => ({
    message_id: row.message_id,
    inbox_id: row.inbox_id,
    subject: row.subject,
    instruction: shortText(row.instruction ?? ""),
    expected: expectedOf(row.expected),
    created: row.created,
  }));
}
