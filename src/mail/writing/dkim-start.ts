import { createPrivateKey, type KeyObject } from "node:crypto";
import { rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Db, Write } from "../../db/database.ts";
import type { DkimKeyRow } from "../../db/schema.ts";
import { AppError, messageOf } from "../../errors.ts";
import { readIfThere } from "../../lib/durable-file.ts";
import type { Secrets } from "../../lib/secrets.ts";
import type { Log } from "../../lib/log.ts";
import { type DkimKey, type DkimKeyMaker, publicPart } from "./dkim.ts";
import { ALGORITHMS, damagedOf, keyRows, newKeyRow, sealedRow, selectorOf } from "./dkim-keys.ts";

interface Start {
  db: Db;
  write: Write;
  secrets: Secrets;
  now: () => number;
  makeDkimKey: DkimKeyMaker;
  log: Log;
}

/**
 * Creates missing DKIM keys, so that every domain has both. Takes the service's keys from the file in which earlier
 * versions kept them, and deletes that: in the database they are sealed. Says which keys are damaged, before a mail
 * needs them.
 */
export async function prepareDkimKeys(app: Start, dir: string): Promise<void> {
  const path = join(dir, "dkim", "keys.json");
  if ((await keyRows(app.db, null)).length === 0) await addServiceKeys(app, await readKeyFile(path));
  await removeKeyFile(app, path);
  await completeDomains(app);
  damagedOf(app, await app.db.selectFrom("dkim_keys").selectAll().execute());
}

async function addServiceKeys(app: Start, stored: DkimKey[] | undefined): Promise<void> {
  const key = { domain_id: null, state: "signing", record: "unknown" } as const;
  const rows = stored
    ? stored.map((one) => sealedRow(app, { ...one, ...key }))
    : await Promise.all(
        ALGORITHMS.map((algorithm) =>
          newKeyRow(app, { ...key, algorithm, selector: selectorOf(algorithm, 1) }),
        ),
      );
  await app.write(async (tx) => {
    // Another process that started at the same time may have been faster.
    if ((await keyRows(tx, null)).length === 0) await tx.insertInto("dkim_keys").values(rows).execute();
  });
}

async function readKeyFile(path: string): Promise<DkimKey[] | undefined> {
  const text = await readIfThere(path);
  if (text === undefined) return undefined;
  try {
    const stored = JSON.parse(text) as (Pick<DkimKeyRow, "selector" | "algorithm"> & {
      /** PEM, PKCS #8 */
      private_key: string;
    })[];
    return stored.map(({ selector, algorithm, private_key }) => ({
      selector,
      algorithm: checkedAlgorithm(algorithm, createPrivateKey(private_key)),
      private_key: createPrivateKey(private_key),
    }));
  } catch (error) {
    throw new AppError("unavailable", `${path} does not hold DKIM keys (${messageOf(error)}).`, {
      fix: "Put it back from a backup, or remove it to get new keys and publish their DNS records.",
    });
  }
}

function checkedAlgorithm(name: DkimKey["algorithm"], key: KeyObject): DkimKey["algorithm"] {
  if (key.asymmetricKeyType === name) return name;
  throw new Error(`a key is of type ${key.asymmetricKeyType ?? "unknown"} and not ${name}`);
}

/** Deletes the key file only if the database has all its keys: otherwise somebody put it there, and may want it. */
async function removeKeyFile(app: Start, path: string): Promise<void> {
  const stored = await readKeyFile(path).catch(() => []);
  if (!stored) return;
  const known = new Set((await keyRows(app.db, null)).map(({ public_part }) => public_part));
  if (stored.length > 0 && stored.every((key) => known.has(publicPart(key)))) {
    await unlink(path);
    await rmdir(dirname(path)).catch(() => undefined);
  } else
    app.log.warn({ path }, "this file holds other DKIM keys than the database; it is not used: remove it");
}

/**
 * Adds the second key to custom domains, which in earlier versions had only an RSA key. Its record is not published
 * yet.
 */
async function completeDomains(app: Start): Promise<void> {
  const rows = await app.db
    .selectFrom("custom_domains")
    .select("id")
    .where("id", "not in", (eb) =>
      eb
        .selectFrom("dkim_keys")
        .select("domain_id")
        .where("algorithm", "=", "ed25519")
        .where("domain_id", "is not", null)
        .$castTo<{ domain_id: string }>(),
    )
    .execute();
  if (rows.length === 0) return;
  const made = await Promise.all(
    rows.map(({ id }) =>
      newKeyRow(app, {
        domain_id: id,
        selector: selectorOf("ed25519", 1),
        algorithm: "ed25519",
        state: "signing",
        record: "absent",
      }),
    ),
  );
  await app.write(async (tx) => {
    for (const row of made)
      await tx
        .insertInto("dkim_keys")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute();
  });
}
