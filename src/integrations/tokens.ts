import type { App } from "../app.ts";
import { openSealed } from "../connections/sealed.ts";

/**
 * A token of a connection that is good for at least a minute, refreshed if need be; null when its owner has to
 * connect it again. `refused` is one that the provider has just turned down.
 */
export async function freshToken(app: App, connection_id: string, refused?: string): Promise<string | null> {
  const row = await app.db
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", connection_id)
    .executeTakeFirst();
  const credential = row === undefined ? "" : openSealed(app, row).credential;
  return credential === "" || credential === refused ? null : credential;
}
