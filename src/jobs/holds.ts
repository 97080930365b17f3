import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { remembered } from "../db/prepared.ts";
import type { HeldKindRow } from "../db/schema.ts";
import { isTime } from "../lib/is-time.ts";
import { JOB_KINDS, JOB_RULES, type JobKind } from "./kinds.ts";

/** Why a mail that was queued for delivery waits while outgoing mail is captured. */
export const HELD_WHILE_CAPTURED =
  'outbound.mode is "capture"; what was queued for delivery waits for "relay" or "direct"';

/**
 * Kinds of jobs that act for people and reach others. While they are held, nothing leaves the server and no run begins.
 */
export const HELD_BY_DEFAULT = JOB_KINDS.filter((kind) => JOB_RULES[kind].held_by_default);

/** Holds kinds of jobs until they are released, also over a restart. Running jobs continue. */
export async function holdKinds(tx: Db, kinds: JobKind[], now: number): Promise<void> {
  for (const kind of kinds)
    await tx
      .insertInto("held_kinds")
      .values({ kind, since: now })
      .onConflict((conflict) => conflict.column("kind").doNothing())
      .execute();
}

export async function releaseKinds(tx: Db, kinds: JobKind[]): Promise<void> {
  await tx.deleteFrom("held_kinds").where("kind", "in", kinds).execute();
}

export function heldKinds(db: Db): Promise<HeldKindRow[]> {
  return db.selectFrom("held_kinds").selectAll().orderBy("kind").execute();
}

/** Returns the kinds of which no job starts, with the reason: the operator holds it, or outgoing mail is captured. */
export async function restingKinds({
  db,
  config,
}: Pick<App, "db" | "config">): Promise<Map<JobKind, string>> {
  const resting = new Map<JobKind, string>();
  if (config.outbound.mode === "capture") resting.set("send_mail", HELD_WHILE_CAPTURED);
  for (const { kind, since } of await heldKinds(db))
    resting.set(
      kind as JobKind,
      isTime(since) ? `held since ${new Date(since * 1_000).toISOString()}` : "held",
    );
  return resting;
}

export async function isHeld(tx: Db, kind: JobKind): Promise<boolean> {
  return (await heldKind(tx, { kind })).length > 0;
}

const heldKind = remembered(holdOn);

/** Selects the hold on a kind, if there is one. */
function holdOn(db: Db, { kind }: { kind: JobKind }) {
  return db.selectFrom("held_kinds").select("held_kinds.kind").where("held_kinds.kind", "=", kind);
}
