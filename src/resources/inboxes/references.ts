import { MODEL_KINDS } from "../../ai/providers.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { invalid } from "../../errors.ts";
import { notOfModel } from "../connections/kinds.ts";

/** Where something is named that is not there, and what is said of it. */
interface Refused {
  path: string;
  words: string;
}

/** Throws `validation_error` unless `id` is null or a model connection of the user's own. */
export async function refuseNoModel(
  tx: Db,
  user: UserRow,
  id: string | null,
  { path, words }: Refused = { path: "body.default_connection_id", words: "connection not found" },
): Promise<void> {
  if (id === null) return;
  const row = await tx
    .selectFrom("connections")
    .select(["kind", "label"])
    .where("user_id", "=", user.id)
    .where("id", "=", id)
    .executeTakeFirst();
  if (!row) throw invalid(path, "connection_not_found", words);
  if (!Object.hasOwn(MODEL_KINDS, row.kind)) throw invalid(path, "no_model", notOfModel(row));
}

/** Throws `validation_error` for the first id that is no context of the user's own. */
export async function refuseForeignContexts(
  tx: Db,
  user: UserRow,
  ids: string[],
  { path, words }: Refused = { path: "body.context_ids", words: "context not found" },
): Promise<void> {
  if (ids.length === 0) return;
  const rows = await tx
    .selectFrom("contexts")
    .select("id")
    .where("user_id", "=", user.id)
    .where("id", "in", ids)
    .execute();
  const found = new Set(rows.map((row) => row.id));
  const missing = ids.findIndex((id) => !found.has(id));
  if (missing !== -1) throw invalid(`${path}.${missing}`, "context_not_found", words);
}
