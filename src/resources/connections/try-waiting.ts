import type { App } from "../../app.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import { isAnyWaiting, trySome } from "../../jobs/tries.ts";
import { fallbacksOf } from "./fallbacks.ts";
import { isModelKind } from "./kinds.ts";

/**
 * Has what waits because a model has failed for the moment tried now, as its connection was mended, or works: all that is asked by it,
 * or by one that falls back on it. They have their turns as ever.
 */
export async function tryWaiting(
  app: App,
  { id, user_id, kind }: Pick<ConnectionRow, "id" | "user_id" | "kind">,
): Promise<void> {
  if (!isModelKind(kind) || !(await isAnyWaiting(app, user_id))) return;
  const rows = await app.db
    .selectFrom("connections")
    .select(["id", "fallback_connection_ids"])
    .where("user_id", "=", user_id)
    .execute();
  const falling = rows.filter((row) => fallbacksOf(row).includes(id));
  const connection_ids = [id, ...falling.map((row) => row.id)];
  let after: string | undefined;
  await takeTurns(endlessShift(app), async (tx) => {
    after = await trySome(app, tx, { user_id, connection_ids, after });
    return after !== undefined;
  });
}

/** As `tryWaiting`, where a change of a connection may have mended it. */
export async function tryIfMended(
  app: App,
  { before, after }: Record<"before" | "after", ConnectionRow>,
): Promise<void> {
  const same = ({ sealed, base_url, model, fallback_connection_ids }: ConnectionRow) =>
    Bun.deepEquals(
      [sealed, base_url, model, fallback_connection_ids],
      [before.sealed, before.base_url, before.model, before.fallback_connection_ids],
    );
  if (!same(after)) await tryWaiting(app, after);
}
