import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { InboxRow, UserRow } from "../db/schema.ts";
import { ownDomain } from "../domains/domains.ts";
import { addressOf, freeLocalPart, newLocalPart, retireAddress } from "./addresses.ts";

/** Removes a custom domain. Its inboxes go on under the service's domain, where their threads stay as they are. */
export async function deleteDomain(app: App, user: UserRow, id: string): Promise<void> {
  await app.write(async (tx) => {
    const domain = await ownDomain(tx, user, id);
    const inboxes = await tx.selectFrom("inboxes").selectAll().where("domain_id", "=", domain.id).execute();
    for (const inbox of inboxes) await moveHome(app, tx, inbox);
    await tx.deleteFrom("custom_domains").where("id", "=", domain.id).execute();
  });
}

/** The local part stays, unless somebody has, or once had, that address. */
async function moveHome(app: App, tx: Db, inbox: InboxRow): Promise<void> {
  await retireAddress(app, tx, addressOf(inbox));
  const { domain } = app.config.smtp;
  let next = inbox.local_part;
  const local_part = await freeLocalPart(tx, { prefix: inbox.prefix, domain }, (prefix) => {
    const tried = next;
    next = newLocalPart(prefix);
    return tried;
  });
  await tx
    .updateTable("inboxes")
    .set({ local_part, domain, domain_id: null, updated: app.now() })
    .where("id", "=", inbox.id)
    .execute();
}
