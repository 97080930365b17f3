import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { messageOf } from "../errors.ts";

/** Of each account the newest are kept. */
const MAX_EVENTS = 100;

export const SECURITY_EVENT_KINDS = [
  "set_up",
  "code_sign_in",
  "password_sign_in",
  "password_failed",
  "password_set",
  "api_key_created",
  "api_key_revoked",
  "account_exported",
] as const;

export interface SecurityEvent {
  user_id: string;
  kind: (typeof SECURITY_EVENT_KINDS)[number];
  /** The address it came from; "" if that is not known. */
  client: string;
  /** The API key that did it, as it is shown; none for a session and for the shell. */
  api_key?: string | null;
}

/** Notes what happened to an account, in the transaction that lets it happen. */
export async function noteSecurityEvent(app: App, tx: Db, event: SecurityEvent): Promise<void> {
  const { user_id, kind, api_key = null } = event;
  const client = event.client || null;
  const row = { id: app.newId(), user_id, kind, client, api_key, created: app.now() };
  await tx.insertInto("security_events").values(row).execute();
  await tx
    .deleteFrom("security_events")
    .where("user_id", "=", event.user_id)
    .where("id", "<", (eb) =>
      eb
        .selectFrom("security_events")
        .select("id")
        .where("user_id", "=", event.user_id)
        .orderBy("id", "desc")
        .offset(MAX_EVENTS - 1)
        .limit(1),
    )
    .execute();
}

/** For a refusal: nobody waits for it, so that it takes no longer than the refusal of a stranger. */
export function noteRefusal(app: App, event: SecurityEvent): void {
  app
    .write(async (tx) => {
      const user = tx.selectFrom("users").select("id").where("id", "=", event.user_id);
      if (await user.executeTakeFirst()) await noteSecurityEvent(app, tx, event);
    })
    .catch((error: unknown) => app.log.warn({ err: messageOf(error) }, "a security event was not noted"));
}

export function listSecurityEvents(db: Db, user: UserRow) {
  return db
    .selectFrom("security_events")
    .select(["id", "kind", "client", "api_key", "created"])
    .where("user_id", "=", user.id)
    .orderBy("id", "desc")
    .limit(MAX_EVENTS)
    .execute();
}
