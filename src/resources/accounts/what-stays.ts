import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { SecurityEvent } from "./security-events.ts";
import type { Caller } from "./sessions.ts";
import { countUntold } from "./untold.ts";

/**
 * What each change leaves behind that works on once the key that made it is revoked, in the words of the letter about it, whichever
 * members of it are changed; or why nobody is told. A changed inbox is told setting by setting, in `inboxes/widened.ts`.
 */
const STAYS: Record<SecurityEvent["kind"], string | { untold: string }> = {
  set_up: { untold: "No key can." },
  code_sign_in: { untold: "No key can." },
  code_shown: { untold: "It takes away." },
  password_sign_in: { untold: "No key can." },
  password_failed: { untold: "It lets nobody in." },
  password_set: { untold: "No key can, and it has a letter of its own." },
  password_reset: { untold: "No key can." },
  api_key_created: { untold: "It has a letter of its own." },
  api_key_revoked: { untold: "It takes away." },
  account_exported: { untold: "It has a letter of its own." },
  session_ended: { untold: "It takes away." },
  profile_changed:
    "your name, your time zone or the footer of your answers was changed, or your monthly budget was lowered",
  connection_begun: { untold: "Somebody who is signed in has to confirm it in a browser." },
  connection_created: "a connection was added",
  connection_changed: "a connection was changed",
  connection_deleted: { untold: "It takes away." },
  inbox_created: {
    untold: "Its settings are told one by one; without any it reads as a stranger's mail is read.",
  },
  inbox_changed: { untold: "Its settings are told one by one." },
  inbox_rotated: "an inbox was given another address",
  inbox_deleted: "an inbox was deleted, after which calls that name none may go to another one",
  messages_deleted: { untold: "It takes away." },
  context_created: "a context was added",
  context_changed: "a context was changed",
  // It may have held what no answer may say.
  context_deleted: "a context was deleted",
  recipe_applied: "what a recipe consists of was added",
  schedule_created: "a schedule was added, which pauses once the key is revoked",
  schedule_changed: "a schedule was changed",
  schedule_deleted: { untold: "It takes away." },
  domain_created: "a domain was added",
  domain_deleted: { untold: "It takes away." },
  webhook_created: "a webhook was added",
  webhook_changed: "a webhook was changed",
  webhook_deleted: { untold: "It takes away." },
  webhook_secret_shown: "the signing secret of a webhook was read",
  webhook_secret_rotated: "the signing secret of a webhook was replaced, and read",
  billing_opened: { untold: "It opens a page, on which a person acts." },
  administered: { untold: "It is about the server, and not about what the account lets others do." },
};

/** Has the owner mailed within the hour what a key leaves behind by a change, if it leaves something. */
export async function tellIfItStays(
  app: App,
  tx: Db,
  caller: Caller,
  kind: SecurityEvent["kind"],
): Promise<void> {
  const what = STAYS[kind];
  if (typeof what === "string") await tellWhatStays(app, tx, caller, [what]);
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
