import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { MessageRow } from "../../db/schema.ts";
import { refuseOthers } from "./brought.ts";
import { broughtTo, purged, sizeOfRaw } from "./retry.ts";

/**
 * The bytes of what another run of a message reads, as its rows say them, without reading any. Throws when it is no longer kept. To be
 * called in the transaction that has it run, after which nothing purges it.
 */
export async function sizeToRepeat(tx: Db, message: MessageRow): Promise<number> {
  if (message.raw_mail_id !== null) return sizeOfRaw(tx, message);
  const key = { message_id: message.id };
  const [content] = await contentSize(tx, key);
  const files = await fileSizes(tx, key);
  if ([content, ...files].some((row) => row && row.purged_at !== null)) throw purged();
  refuseOthers(await broughtTo(tx, message), { content, files });
  return files.reduce((sum, { size }) => sum + size, content?.size ?? 0);
}

const contentSize = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("message_contents")
    .select((eb) => ["purged_at", eb.fn<number | null>("octet_length", ["content"]).as("size")])
    .where("message_id", "=", key.message_id),
);

const fileSizes = prepared((db, key: { message_id: string }) =>
  db
    .selectFrom("attachments")
    .select(["size", "purged_at"])
    .where("message_id", "=", key.message_id)
    .where("direction", "=", "in"),
);
