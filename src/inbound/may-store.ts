import type { App } from "../app.ts";
import type { Delivery, Examined } from "./decide.ts";
import { busyFor } from "./inbound-limits.ts";
import { withoutRoom } from "./mail-storage.ts";
import { casesOf, isOfHousehold, type Standing } from "./standing.ts";

/**
 * Returns what of a mail the transaction that decides about it may store: the whole, unless it is clear by now that it will be
 * refused or is known already, as who sends such mail must not have the disk write it.
 */
export async function mayStore(app: App, delivery: Delivery, mail: Examined): Promise<Buffer[]> {
  const cases = await casesOf(app, app.db, delivery, mail);
  const standings = cases.flatMap(({ standing }) => (standing && isTaken(standing, mail) ? [standing] : []));
  if (standings.length === 0 || busyFor(app, { mail, standings }).length > 0) return [];
  const full = await withoutRoom(app, app.db, delivery.raw.byteLength, cases);
  if (full.length > 0) return [];
  app.refuseIntake();
  return [delivery.raw];
}

function isTaken(standing: Standing, { kind, junk }: Examined): boolean {
  const { verdict, unproven, skipped, original } = standing;
  if (!verdict.accepted || unproven || skipped || kind.kind === "hard") return false;
  return original === undefined && (!junk || isOfHousehold(standing));
}
