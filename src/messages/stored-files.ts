import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { IncomingFile } from "./accept.ts";
import { NO_BYTES, storeBytes } from "./stored-bytes.ts";

/** Files of a message, with a row for each. */
export async function storeFiles(
  app: App,
  tx: Db,
  stored: {
    message_id: string;
    direction: "in" | "out";
    files: IncomingFile[];
    /** Whether the bytes of a file are kept, and not its name and size alone; by default they are. */
    keeps?: (file: IncomingFile) => boolean;
  },
): Promise<void> {
  const { keeps = () => true } = stored;
  const gone = { ...NO_BYTES, purged_at: app.now() };
  for (const file of stored.files) {
    await tx
      .insertInto("attachments")
      .values({
        id: Bun.randomUUIDv7(),
        message_id: stored.message_id,
        direction: stored.direction,
        filename: file.filename,
        content_type: file.content_type,
        size: file.bytes.byteLength,
        created: app.now(),
        ...(keeps(file) ? { ...storeBytes(app, file.bytes), purged_at: null } : gone),
      })
      .execute();
  }
}
