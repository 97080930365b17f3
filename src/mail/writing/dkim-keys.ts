import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { DkimKeyRow } from "../../db/schema.ts";
import type { Secrets } from "../../lib/secrets.ts";
import { type DkimKey, type DkimKeys, makeDkimKey, pemOf, publicPart } from "./dkim.ts";

/** RSA first: the algorithm that every receiver knows. */
export const ALGORITHMS = ["rsa", "ed25519"] as const;

const SELECTOR_LETTERS = { rsa: "s", ed25519: "e" } as const;
const MAX_OPENED = 1_000;

interface KeyHome {
  db: Db;
  secrets: Secrets;
}

/** Returns the keys that sign mail from the service's own domain. */
export async function serviceKeys(app: KeyHome): Promise<DkimKeys> {
  return opened(app.secrets, chosenKeys(await rowsOfService(app.db, {})));
}

/** Returns the keys that sign mail from a custom domain. */
export async function domainKeys(app: KeyHome, domain_id: string): Promise<DkimKeys> {
  return opened(app.secrets, chosenKeys(await rowsOfDomain(app.db, { domain_id })));
}

/** Returns all keys of a domain, RSA first and the oldest first; null for the service's own domain. */
export async function keyRows(db: Db, domain_id: string | null): Promise<DkimKeyRow[]> {
  const rows = await (domain_id === null ? rowsOfService(db, {}) : rowsOfDomain(db, { domain_id }));
  return ALGORITHMS.flatMap((algorithm) => rows.filter((row) => row.algorithm === algorithm));
}

/** Returns a new sealed key for the caller to insert. Called before a transaction, because RSA takes a while. */
export async function newKeyRow(
  app: { secrets: Secrets; now: () => number },
  key: Pick<DkimKeyRow, "domain_id" | "selector" | "algorithm" | "state" | "record">,
): Promise<DkimKeyRow> {
  return sealedRow(app, { ...key, private_key: await makeDkimKey(key.algorithm) });
}

/** Returns the row for an existing key. */
export function sealedRow(
  app: { secrets: Secrets; now: () => number },
  {
    private_key,
    ...key
  }: Pick<DkimKeyRow, "domain_id" | "selector" | "algorithm" | "state" | "record"> & {
    private_key: KeyObject;
  },
): DkimKeyRow {
  const id = Bun.randomUUIDv7();
  return {
    ...key,
    id,
    public_part: publicPart({ algorithm: key.algorithm, private_key }),
    sealed: app.secrets.seal(pemOf(private_key), id),
    seen_at: null,
    created: app.now(),
    retired_at: null,
  };
}

/** Returns the selector of the nth key of an algorithm: `s1`, `e1`. */
export function selectorOf(algorithm: DkimKey["algorithm"], number: number): string {
  return `${SELECTOR_LETTERS[algorithm]}${number}`;
}

/**
 * Returns the keys of a domain that sign: for each algorithm one whose record is not known to be absent, the newest in
 * use before those it replaced. Until any record has been seen, RSA signs whatever the DNS says.
 */
export function chosenKeys(rows: DkimKeyRow[]): DkimKeyRow[] {
  const [current, replaced] = (["signing", "retired"] as const).map((state) =>
    rows.filter((row) => row.state === state).toReversed(),
  ) as [DkimKeyRow[], DkimKeyRow[]];
  const present = [...current, ...replaced].filter(({ record }) => record !== "absent");
  const some_seen = present.some(({ record }) => record === "seen");
  return ALGORITHMS.flatMap((algorithm) => {
    const fits = (row: DkimKeyRow): boolean => row.algorithm === algorithm;
    const fallback = algorithm === "rsa" && !some_seen ? current.find(fits) : undefined;
    return present.find(fits) ?? fallback ?? [];
  });
}

const rowsOfService = prepared((db: Db) =>
  db.selectFrom("dkim_keys").selectAll().where("domain_id", "is", null).orderBy("id"),
);

const rowsOfDomain = prepared((db, key: { domain_id: string }) =>
  db.selectFrom("dkim_keys").selectAll().where("domain_id", "=", key.domain_id).orderBy("id"),
);

/** Cache of opened keys: reading a key costs more than signing with it. */
const openedKeys = new WeakMap<Secrets, Map<string, KeyObject>>();

function opened(secrets: Secrets, rows: DkimKeyRow[]): DkimKeys {
  const known = openedKeys.get(secrets) ?? new Map<string, KeyObject>();
  openedKeys.set(secrets, known);
  return rows.flatMap(({ id, selector, algorithm, sealed }) => {
    if (sealed === null) return [];
    const private_key = known.get(id) ?? createPrivateKey(secrets.open(sealed, id));
    known.delete(id);
    known.set(id, private_key);
    const [oldest] = known.keys();
    if (known.size > MAX_OPENED && oldest !== undefined) known.delete(oldest);
    return [{ selector, algorithm, private_key }];
  });
}
