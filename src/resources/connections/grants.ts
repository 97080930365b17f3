import { scopeOf } from "../../db/inbox-columns.ts";
import type { Db } from "../../db/database.ts";
import { OWN_TARGETS } from "../../trust/target-names.ts";
import { targetNamed, toolServerNames } from "./targets.ts";

/**
 * Changes the tool servers of an account, and updates the scopes of its inboxes, because scopes name servers by names
 * that may change. A permission stays with the server that was meant, and ends with it: no other server may inherit it
 * with the name.
 */
export async function keepGrants<T>(tx: Db, user_id: string, change: () => Promise<T>): Promise<T> {
  const before = await toolServerNames(tx, user_id);
  const done = await change();
  const after = await toolServerNames(tx, user_id);
  const is_same = before.size === after.size && [...before].every(([name, id]) => after.get(name) === id);
  if (!is_same) await renameInScopes(tx, user_id, newNames(before, after));
  return done;
}

/** Returns the new name for each old one; null for a server that is gone. */
function newNames(before: Map<string, string>, after: Map<string, string>): Map<string, string | null> {
  const nameOf = new Map([...after].map(([name, id]) => [id, name]));
  return new Map([...before].map(([name, id]) => [name, nameOf.get(id) ?? null]));
}

async function renameInScopes(tx: Db, user_id: string, names: Map<string, string | null>): Promise<void> {
  const servers = [...names.keys()];
  const renamed = (targets: string[]): string[] =>
    targets.flatMap((target) => {
      const name = OWN_TARGETS.has(target) ? undefined : targetNamed(servers, target);
      return name === undefined ? target : (names.get(name) ?? []);
    });
  const inboxes = await tx
    .selectFrom("inboxes")
    .select(["id", "scope"])
    .where("user_id", "=", user_id)
    .where("scope", "is not", null)
    .execute();
  for (const inbox of inboxes) {
    const { targets = null, autonomous = [] } = scopeOf(inbox) ?? {};
    const scope = JSON.stringify({ targets: targets && renamed(targets), autonomous: renamed(autonomous) });
    if (scope !== inbox.scope)
      await tx.updateTable("inboxes").set({ scope }).where("id", "=", inbox.id).execute();
  }
}
