import type { App } from "../app.ts";
import { KB } from "../lib/sizes.ts";
import type { Delivery, Examined } from "./decide.ts";
import { busyFor } from "./inbound-limits.ts";
import { isKept, withoutRoom } from "./mail-storage.ts";
import { casesOf, isOfHousehold, type Standing } from "./standing.ts";

/** Looking ahead costs more than writing less than this in vain, which is given back at once. */
const LOOKED_AT_BYTES = 256 * KB;

/**
 * Returns what of a mail the transaction that decides about it may store: the whole, unless it is clear by now that a large one will
 * be refused or is known already, as who sends such mail must not have the disk write it.
 */
export async function mayStore(app: App, delivery: Delivery, mail: Examined): Promise<Buffer[]> {
  const { raw } = delivery;
  if (raw.byteLength >= LOOKED_AT_BYTES && !(await isWanted(app, delivery, mail))) return [];
  app.refuseIntake();
  return [raw];
}

async function isWanted(app: App, delivery: Delivery, mail: Examined): Promise<boolean> {
  const cases = await casesOf(app, app.db, delivery, mail);
  const standings = cases.flatMap(({ standing }) => (standing && isTaken(standing, mail) ? [standing] : []));
  if (standings.length === 0 || busyFor(app, { mail, standings }).length > 0) return false;
  const full = await withoutRoom(app, app.db, delivery.raw.byteLength, cases);
  return full.length === 0;
}

function isTaken(standing: Standing, { junk }: Examined): boolean {
  return isKept(standing) && !standing.unproven && (!junk || isOfHousehold(standing));
}
