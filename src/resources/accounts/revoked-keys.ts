import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { MessageRow } from "../../db/schema.ts";

/**
 * Whether a message was asked for with an API key that is gone since. Whoever revokes a key takes back what was asked for with it,
 * as nobody knows which of that was theirs.
 */
export async function isKeyRevoked(db: Db, { key_id }: Pick<MessageRow, "key_id">): Promise<boolean> {
  return key_id !== null && (await keyOf(db, { id: key_id })).length === 0;
}

const keyOf = remembered((db, key: { id: string }) =>
  db.selectFrom("api_keys").select("id").where("id", "=", key.id),
);
