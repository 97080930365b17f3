import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { DkimKeyRow } from "../../db/schema.ts";
import { ALGORITHMS, damagedOf, keyRows, newKeyRow, selectorOf } from "./dkim-keys.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** How long mails signed with an old key may be in transit or have their signatures checked. */
export const OVERLAP_SECONDS = 7 * DAY_SECONDS;

/** What the DNS showed for each key's record, by key id; a key is missing where the DNS did not answer. */
export type Sightings = ReadonlyMap<string, "seen" | "absent">;

/** Creates the next keys of a domain, which sign once their records are seen. Returns null while others are waiting. */
export async function addNextKeys(app: App, domain_id: string | null): Promise<DkimKeyRow[] | null> {
  const before = await keyRows(app.db, domain_id);
  if (waits(app, before)) return null;
  const number = 1 + Math.max(0, ...before.map(numberOf));
  const made = await Promise.all(
    ALGORITHMS.map((algorithm) =>
      newKeyRow(app, {
        domain_id,
        selector: selectorOf(algorithm, number),
        algorithm,
        state: "waiting",
        record: "absent",
      }),
    ),
  );
  return app.write(async (tx) => {
    const rows = await keyRows(tx, domain_id);
    if (waits(app, rows)) return null;
    // Those that still wait are damaged, and must not begin to sign.
    for (const { id } of rows.filter(isWaiting))
      await tx
        .updateTable("dkim_keys")
        .set({ state: "dropped", sealed: null })
        .where("id", "=", id)
        .execute();
    await tx.insertInto("dkim_keys").values(made).execute();
    return made;
  });
}

/** Records what the DNS shows, and changes key states accordingly: start signing, retire, drop, delete. */
export async function settleKeys(
  app: App,
  tx: Db,
  { domain_id, sightings }: { domain_id: string | null; sightings: Sightings },
): Promise<DkimKeyRow[]> {
  const now = app.now();
  const before = await keyRows(tx, domain_id);
  const looked = before.map((row) => sighted(row, sightings.get(row.id), now));
  const after = ALGORITHMS.flatMap((algorithm) =>
    stepped(
      looked.filter((row) => row.algorithm === algorithm),
      { now, calm: app.calmNow() },
    ),
  );
  for (const { id, sealed, state, record, seen_at, retired_at } of after)
    await tx
      .updateTable("dkim_keys")
      .set({ sealed, state, record, seen_at, retired_at })
      .where("id", "=", id)
      .execute();
  const kept = after.filter(({ state, record }) => state !== "dropped" || record !== "absent");
  for (const { id } of after.filter((row) => !kept.includes(row)))
    await tx.deleteFrom("dkim_keys").where("id", "=", id).execute();
  return kept;
}

/**
 * Returns whether the signing keys may change soon: a new record is awaited, or one that existed a day ago is missing.
 */
export function isUnsettled(rows: DkimKeyRow[], now: number): boolean {
  return rows.some(
    ({ state, record, created, seen_at }) =>
      (state === "waiting" && now - created < OVERLAP_SECONDS) ||
      (state === "signing" && record === "absent" && seen_at !== null && now - seen_at < DAY_SECONDS),
  );
}

function waits(app: App, rows: DkimKeyRow[]): boolean {
  const waiting = rows.filter(isWaiting);
  return damagedOf(app, waiting).length < waiting.length;
}

function isWaiting({ state }: DkimKeyRow): boolean {
  return state === "waiting";
}

function numberOf({ selector }: DkimKeyRow): number {
  return Number(/(?<!\d)\d+$/.exec(selector)?.[0] ?? 0);
}

function sighted(row: DkimKeyRow, seen: "seen" | "absent" | undefined, now: number): DkimKeyRow {
  if (seen === undefined) return row;
  return { ...row, record: seen, seen_at: seen === "seen" ? now : row.seen_at };
}

/** Returns the keys of one algorithm after their next step. */
function stepped(rows: DkimKeyRow[], { now, calm }: { now: number; calm: number }): DkimKeyRow[] {
  const next = rows.find(({ state, record }) => state === "waiting" && record === "seen");
  const turned = next ? rows.map((row) => (row === next ? signing(row) : replaced(row, now))) : rows;
  // While the new record is not visible, the old key may have to sign again.
  const works = turned.some(({ state, record }) => state === "signing" && record !== "absent");
  return works ? turned.map((row) => (isOver(row, calm) ? dropped(row) : row)) : turned;
}

function signing(row: DkimKeyRow): DkimKeyRow {
  return { ...row, state: "signing" };
}

function replaced(row: DkimKeyRow, now: number): DkimKeyRow {
  return row.state === "signing" ? { ...row, state: "retired", retired_at: now } : row;
}

function isOver({ state, retired_at }: DkimKeyRow, now: number): boolean {
  return state === "retired" && now - (retired_at ?? now) >= OVERLAP_SECONDS;
}

function dropped(row: DkimKeyRow): DkimKeyRow {
  return { ...row, state: "dropped", sealed: null };
}
