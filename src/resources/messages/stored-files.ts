import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { insertRow } from "../../db/prepared.ts";
import type { IncomingFile } from "../../inbound/accept.ts";
import { NO_BYTES, storeBytes } from "./stored-bytes.ts";

/** Returns what a write that stores files has to begin with. */
export function bytesOf(files: IncomingFile[]): Uint8Array[] {
  return files.map(({ bytes }) => bytes);
}

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
  const { message_id, direction, keeps = () => true } = stored;
  const created = app.now();
  const gone = { ...NO_BYTES, purged_at: created };
  for (const file of stored.files) {
    const id = app.newId();
    await insertRow(tx, "attachments", {
      id,
      message_id,
      direction,
      filename: file.filename,
      content_type: file.content_type,
      size: file.bytes.byteLength,
      created,
      ...(keeps(file) ? { ...storeBytes(app, id, file.bytes), purged_at: null } : gone),
    });
  }
}
