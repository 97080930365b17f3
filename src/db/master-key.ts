import type { Db, Write } from "./database.ts";
import { AppError } from "../errors.ts";
import { loadMasterKey, type Secrets } from "../lib/secrets.ts";
import { saveEachMinute } from "./each-minute.ts";
import type { WatchLog } from "./watch.ts";

const CHECK = "key_check";

/**
 * Returns the master key of this data folder, and creates it at the first start. Throws at a lost or foreign key:
 * nothing sealed before could be opened, and what would be sealed from now on would need another key.
 */
export async function openMasterKey(
  { db, write }: { db: Db; write: Write },
  options: { configured: string; dir: string },
): Promise<Secrets> {
  const known = await db
    .selectFrom("installation")
    .select("value")
    .where("name", "=", CHECK)
    .executeTakeFirst();
  const secrets = await loadMasterKey({ ...options, create: known === undefined });
  if (known) refuseForeignKey(secrets, known.value);
  else
    await write((tx) =>
      tx
        .insertInto("installation")
        .values({ name: CHECK, value: secrets.seal(CHECK, CHECK) })
        .onConflict((conflict) => conflict.column("name").doNothing())
        .execute(),
    );
  return secrets;
}

/**
 * Restores the key file when it disappears from the data folder of a running server, which has the key in memory:
 * without the file no backup can be made, and the next start would fail. `mayWrite` says whether the folder is still
 * the server's own.
 */
export function keepMasterKey(secrets: Secrets, mayWrite: () => boolean, log: WatchLog): AsyncDisposable {
  return saveEachMinute(async () => {
    try {
      if (mayWrite() && (await secrets.putBack()))
        log.warn({}, "the file master.key was gone from the data folder, and has been put back");
    } catch (error) {
      log.warn({ err: error }, "it cannot be seen whether master.key is in the data folder");
    }
  });
}

/**
 * Returns whether the master key is the one that sealed `value`, the `key_check` of another database such as one in a
 * backup.
 */
export async function opensKeyCheck(
  value: Uint8Array,
  options: { configured: string; dir: string },
): Promise<boolean> {
  const secrets = await loadMasterKey({ ...options, create: false });
  try {
    secrets.open(value, CHECK);
    return true;
  } catch {
    return false;
  }
}

function refuseForeignKey(secrets: Secrets, sealed: Uint8Array): void {
  try {
    secrets.open(sealed, CHECK);
  } catch {
    throw new AppError("unavailable", "The master key is not the one this database was made with.", {
      fix: "Put back the master.key of this data folder, or set security.master_key to the key used before.",
    });
  }
}
