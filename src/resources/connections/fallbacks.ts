import type { Db } from "../../db/database.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { storedJson } from "../../lib/stored-json.ts";
import type { ConnectionBody, ConnectionInput } from "./body-shapes.ts";
import { isModelKind, notOfModel } from "./kinds.ts";

/**
 * Returns the list of fallbacks that a body asks for, and undefined where it leaves them as they are. The single member is
 * the list of that one; with both, it has to be the first of the list.
 */
export function fallbacksIn(body: ConnectionBody): ConnectionInput["fallback_connection_ids"] {
  const { fallback_connection_id: first, fallback_connection_ids: all } = body;
  if (all === undefined) return first === undefined ? undefined : first === null ? [] : [first];
  if (first !== undefined && first !== (all[0] ?? null))
    throw invalid(
      "body.fallback_connection_id",
      "not_the_first",
      "The first connection to ask instead is named twice, and differently. Send one of the two (`fallback_connection_id`, `fallback_connection_ids`).",
    );
  return all;
}

/** Returns the ids of the connections to ask where this one does not answer, in order. */
export function fallbacksOf({
  fallback_connection_ids,
}: Pick<ConnectionRow, "fallback_connection_ids">): string[] {
  return storedJson<string[]>(fallback_connection_ids, []);
}

/** Throws unless each fallback is another model connection of the same account, for a model connection. */
export async function refuseBadFallbacks(tx: Db, row: ConnectionRow): Promise<void> {
  const ids = fallbacksOf(row);
  if (ids.length === 0) return;
  const path = "body.fallback_connection_ids";
  if (!isModelKind(row.kind))
    throw invalid(path, "no_fallback", "Only a connection to a model can have a fallback.");
  if (ids.includes(row.id)) throw invalid(path, "own_fallback", "A connection cannot be its own fallback.");
  if (new Set(ids).size < ids.length)
    throw invalid(path, "repeated", "A fallback is asked once; name each connection once.");
  const others = await tx
    .selectFrom("connections")
    .select(["kind", "label"])
    .where("id", "in", ids)
    .where("user_id", "=", row.user_id)
    .execute();
  const other = others.find(({ kind }) => !isModelKind(kind));
  if (other) throw invalid(path, "no_model", notOfModel(other));
  if (others.length < ids.length) throw invalid(path, "connection_not_found", "connection not found");
}

/** Takes a connection that is deleted out of the fallbacks of the account's others. */
export async function removeFallback(
  tx: Db,
  { id, user_id }: Pick<ConnectionRow, "id" | "user_id">,
): Promise<void> {
  const rows = await tx
    .selectFrom("connections")
    .select(["id", "fallback_connection_ids"])
    .where("user_id", "=", user_id)
    .execute();
  for (const row of rows) {
    const ids = fallbacksOf(row);
    if (!ids.includes(id)) continue;
    const fallback_connection_ids = JSON.stringify(ids.filter((other) => other !== id));
    await tx.updateTable("connections").set({ fallback_connection_ids }).where("id", "=", row.id).execute();
  }
}
