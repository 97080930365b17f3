import type { Db } from "../../db/database.ts";
import type { ConnectionRow } from "../../db/schema.ts";

/**
 * Whether a connection still has the address and the secrets that it had when its row was read: a credential that was entered since
 * belongs to another address, or to another account there.
 */
export async function isStillAt(
  db: Db,
  { id, user_id, base_url, secrets_id }: ConnectionRow,
): Promise<boolean> {
  const now = await db
    .selectFrom("connections")
    .select(["base_url", "secrets_id"])
    .where("id", "=", id)
    .where("user_id", "=", user_id)
    .executeTakeFirst();
  return now !== undefined && now.base_url === base_url && now.secrets_id === secrets_id;
}
