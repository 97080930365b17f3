import { scopeOf, storedAllowlist } from "../../db/inbox-columns.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow } from "../../db/schema.ts";
import type { Caller } from "../accounts/sessions.ts";
import { countUntold } from "../accounts/untold.ts";

type Powers = Pick<InboxRow, "allowlist_senders" | "scope">;

/**
 * Has the owner mailed that a key lets more be ordered in an inbox: somebody new give orders, or tools change things
 * unnamed. Whoever had a key for a minute could else stay for good as a listed sender.
 */
export async function tellIfWidened(
  app: App,
  tx: Db,
  caller: Caller,
  { before, after }: { before: Powers; after: Powers },
): Promise<void> {
  if (caller.key_id === null || !isWider(before, after)) return;
  await countUntold(app, tx, { user_id: caller.user.id, about: "command" });
}

function isWider(before: Powers, after: Powers): boolean {
  return [listedIn, unnamedIn].some((entriesOf) => {
    const had = new Set(entriesOf(before));
    return entriesOf(after).some((entry) => !had.has(entry));
  });
}

/** Nobody where the list is damaged: whoever mends it lists people anew. */
function listedIn(inbox: Powers): string[] {
  return storedAllowlist(inbox) ?? [];
}

function unnamedIn(inbox: Powers): string[] {
  return scopeOf(inbox)?.autonomous ?? [];
}
