import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { keyMarksOf, shownKey } from "./key-marks.ts";
import { noteSecurityEvent, type SecurityEvent } from "./security-events.ts";
import { type Caller, refuseEnded } from "./sessions.ts";
import { tellIfItStays } from "./what-stays.ts";

/**
 * Notes who makes a change, with the name of the key, and has the owner told of what outlives it; to be called in its transaction, before the change. Throws
 * `unauthorized` when the caller's credential has ended meanwhile.
 */
export async function noteChange(
  app: App,
  tx: Db,
  caller: Caller,
  kind: SecurityEvent["kind"],
): Promise<void> {
  await refuseEnded(app, tx, caller);
  const api_key = shownKey(await keyMarksOf(tx, caller.key_id));
  await noteSecurityEvent(app, tx, { user_id: caller.user.id, kind, client: caller.client(), api_key });
  await tellIfItStays(app, tx, caller, kind);
}
