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
  { db, write, log }: { db: Db; write: Write; log: Pick<WatchLog, "error"> },
  options: { configured: string; dir: string },
): Promise<Secrets> {
  const known = await db
    .selectFrom("installation")
    .select("value")
    .where("name", "=", CHECK)
    .executeTakeFirst();
  const others = await db
    .selectFrom("dkim_keys")
    .select(["id", "sealed"])
    .where("domain_id", "is", null)
    .execute();
  const secrets = await loadMasterKey({ ...options, create: known === undefined && others.length === 0 });
  if (known !== undefined && doesOpen(secrets, known.value, CHECK)) return secrets;
  // The key that opens something else is the right one: then the check is damaged.
  const is_right = others.some(({ id, sealed }) => sealed !== null && doesOpen(secrets, sealed, id));
  if (!is_right && (known !== undefined || others.length > 0)) throw foreignKey();
  if (is_right) log.error({}, "what the master key is checked by was damaged, and has been written anew");
  await write((tx) => noteCheck(tx, secrets));
  return secrets;
}

async function noteCheck(tx: Db, secrets: Secrets): Promise<void> {
  const value = secrets.seal(CHECK, CHECK);
  await tx
    .insertInto("installation")
    .values({ name: CHECK, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}

/**
 * Restores the key file when it disappears from the data folder of a running server or is replaced, which has the key in
 * memory: without the file no backup can be made, and the next start would fail. `mayWrite` says whether the folder is still
 * the server's own.
 */
export function keepMasterKey(secrets: Secrets, mayWrite: () => boolean, log: WatchLog): AsyncDisposable {
  return saveEachMinute(async () => {
    try {
      if (mayWrite() && (await secrets.putBack()))
        log.warn(
          {},
          "the file master.key was gone from the data folder, or another one; it has been put back, and another one is kept beside it (master.key.….other)",
        );
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
  return doesOpen(await loadMasterKey({ ...options, create: false }), value, CHECK);
}

function doesOpen(secrets: Secrets, sealed: Uint8Array, aad: string): boolean {
  try {
    secrets.open(sealed, aad);
    return true;
  } catch {
    return false;
  }
}

function foreignKey(): AppError {
  return new AppError("unavailable", "The master key is not the one this database was made with.", {
    fix: "Put back the master.key of this data folder, or set security.master_key to the key used before.",
  });
}
