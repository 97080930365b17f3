import { createPrivateKey, type KeyObject } from "node:crypto";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import type { DkimKeyRow } from "../../db/schema.ts";
import { messageOf } from "../../errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Secrets } from "../../lib/secrets.ts";
import { type DkimKey, type DkimKeyMaker, type DkimKeys, pemOf, publicPart } from "./dkim.ts";

/** RSA first: the algorithm that every receiver knows. */
export const ALGORITHMS = ["rsa", "ed25519"] as const;

const SELECTOR_LETTERS = { rsa: "s", ed25519: "e" } as const;
const MAX_OPENED = 1_000;

interface KeyHome {
  db: Db;
  secrets: Secrets;
  log: Log;
}

/** Returns the keys that sign mail from the service's own domain. */
export async function serviceKeys(app: KeyHome): Promise<DkimKeys> {
  return signers(app, await rowsOfService(app.db, {}));
}

/** Returns the keys that sign mail from a custom domain. */
export async function domainKeys(app: KeyHome, domain_id: string): Promise<DkimKeys> {
  return signers(app, await rowsOfDomain(app.db, { domain_id }));
}

/** Returns all keys of a domain, RSA first and the oldest first; null for the service's own domain. */
export async function keyRows(db: Db, domain_id: string | null): Promise<DkimKeyRow[]> {
  const rows = await (domain_id === null ? rowsOfService(db, {}) : rowsOfDomain(db, { domain_id }));
  return ALGORITHMS.flatMap((algorithm) => rows.filter((row) => row.algorithm === algorithm));
}

/** Returns a new sealed key for the caller to insert. Called before a transaction, because RSA takes a while. */
export async function newKeyRow(
  app: { secrets: Secrets; now: () => number; makeDkimKey: DkimKeyMaker },
  key: Pick<DkimKeyRow, "domain_id" | "selector" | "algorithm" | "state" | "record">,
): Promise<DkimKeyRow> {
  return sealedRow(app, { ...key, private_key: await app.makeDkimKey(key.algorithm) });
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

/** The keys of this process. */
interface Opened {
  /** A cache: reading a key costs more than signing with it. */
  keys: Map<string, KeyObject>;
  /** Ids of those that could not be opened. */
  damaged: Set<string>;
}

const openedKeys = new WeakMap<Secrets, Opened>();

function openedBy(secrets: Secrets): Opened {
  const known = openedKeys.get(secrets) ?? { keys: new Map(), damaged: new Set() };
  openedKeys.set(secrets, known);
  return known;
}

/**
 * Opens the keys that sign. For a damaged one signs the one that it replaced, or that of the other algorithm, or none:
 * every run has its answer signed, and a mail without a signature is better than no mail.
 */
function signers(app: KeyHome, rows: DkimKeyRow[]): DkimKeys {
  const chosen = chosenKeys(rows);
  const damaged = damagedOf(app, chosen);
  if (damaged.length > 0)
    return signers(
      app,
      rows.filter((row) => !damaged.includes(row)),
    );
  return chosen.map((row) => {
    const { selector, algorithm } = row;
    return { selector, algorithm, private_key: opened(app.secrets, row) };
  });
}

/** Returns those of the keys that cannot be opened, and logs each of them once. */
export function damagedOf(app: Omit<KeyHome, "db">, rows: DkimKeyRow[]): DkimKeyRow[] {
  const { keys, damaged } = openedBy(app.secrets);
  return rows.filter(({ id, state, selector, domain_id, sealed }) => {
    if (state === "dropped") return false;
    try {
      if (!keys.has(id)) app.secrets.open(sealed ?? new Uint8Array(), id);
      damaged.delete(id);
      return false;
    } catch (error) {
      if (!damaged.has(id)) app.log.error({ domain_id, selector, problem: messageOf(error) }, DAMAGED);
      damaged.add(id);
      return true;
    }
  });
}

const DAMAGED =
  "a key for DKIM cannot be opened, and signs nothing: `mailwright doctor` says how to get another one";

/** Returns the keys that this process could not open, and that are to sign now or later. */
export async function damagedKeys({ db, secrets }: Pick<KeyHome, "db" | "secrets">): Promise<DkimKeyRow[]> {
  const { damaged } = openedBy(secrets);
  if (damaged.size === 0) return [];
  return db
    .selectFrom("dkim_keys")
    .selectAll()
    .where("id", "in", [...damaged])
    .where("state", "in", ["signing", "waiting"])
    .orderBy("id")
    .execute();
}

function opened(secrets: Secrets, { id, sealed }: DkimKeyRow): KeyObject {
  const { keys } = openedBy(secrets);
  const private_key = keys.get(id) ?? createPrivateKey(secrets.open(sealed ?? new Uint8Array(), id));
  keys.delete(id);
  keys.set(id, private_key);
  const [oldest] = keys.keys();
  if (keys.size > MAX_OPENED && oldest !== undefined) keys.delete(oldest);
  return private_key;
}
