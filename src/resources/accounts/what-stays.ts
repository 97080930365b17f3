import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SecurityEvent } from "./security-events.ts";
import type { Caller } from "./sessions.ts";
import { countUntold } from "./untold.ts";

/**
 * What each change leaves behind that works on once the key that made it is revoked, in the words of the letter about it; null for
 * nothing, or for what has a letter of its own. A changed inbox is told setting by setting, in `inboxes/widened.ts`.
 */
const STAYS: Record<SecurityEvent["kind"], string | null> = {
  set_up: null,
  code_sign_in: null,
  password_sign_in: null,
  password_failed: null,
  password_set: null,
  password_reset: null,
  api_key_created: null,
  api_key_revoked: null,
  account_exported: null,
  session_ended: null,
  profile_changed: null,
  // Somebody who is signed in has to confirm it in a browser.
  connection_begun: null,
  connection_created: "a connection was added",
  connection_changed: "a connection was changed",
  connection_deleted: null,
  inbox_created: null,
  inbox_changed: null,
  inbox_rotated: null,
  inbox_deleted: null,
  messages_deleted: null,
  context_created: "a context was added",
  context_changed: "a context was changed",
  // It may have held what no answer may say.
  context_deleted: "a context was deleted",
  recipe_applied: "what a recipe consists of was added",
  schedule_created: "a schedule was added, which pauses once the key is revoked",
  schedule_changed: "a schedule was changed",
  schedule_deleted: null,
  domain_created: null,
  domain_deleted: null,
  webhook_created: "a webhook was added",
  webhook_changed: "a webhook was changed",
  webhook_deleted: null,
  webhook_secret_shown: "the signing secret of a webhook was read",
  webhook_secret_rotated: "the signing secret of a webhook was replaced, and read",
  billing_opened: null,
  administered: null,
};

/** Has the owner mailed within the hour what a key leaves behind by a change, if it leaves something. */
export async function tellIfItStays(
  app: App,
  tx: Db,
  caller: Caller,
  kind: SecurityEvent["kind"],
): Promise<void> {
  const what = STAYS[kind];
  if (what !== null) await tellWhatStays(app, tx, caller, [what]);
}

/** The same for one change of several things, each in the words of the letter. What a person does is not mailed. */
export async function tellWhatStays(
  app: App,
  tx: Db,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  what: string[],
): Promise<void> {
  if (key_id === null || what.length === 0) return;
  await countUntold(app, tx, { user_id: user.id, about: "command", what });
}
