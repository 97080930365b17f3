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

/**
 * Moves the inboxes of a service domain that is neither the one of now nor listed in `smtp.former_domains`, and gives their
 * number. Their addresses are not retired: when the change of the setting is taken back, they have them again.
 */
export async function moveToServiceDomain(app: App, tx: Db): Promise<number> {
  const { domain } = app.config.smtp;
  const moved = await tx
    .updateTable("inboxes")
    .set({ domain, updated: app.now() })
    .where("id", "in", strandedInboxes(app, tx).select("inboxes.id"))
    .where((eb) => {
      const taken = eb.selectFrom("inboxes as other").select("other.id").where("other.domain", "=", domain);
      return eb.not(eb.exists(taken.whereRef("other.local_part", "=", "inboxes.local_part")));
    })
    .executeTakeFirst();
  // Local parts are long and random: there is next to never one that two domains have.
  const rest = await strandedInboxes(app, tx).selectAll().execute();
  for (const inbox of rest) await moveHome(app, tx, inbox);
  return Number(moved.numUpdatedRows) + rest.length;
}

/** Those without a custom domain whose address is at no domain of the service. */
export function strandedInboxes(app: App, db: Db) {
  const { domain, former_domains } = app.config.smtp;
  return db
    .selectFrom("inboxes")
    .where("domain_id", "is", null)
    .where("domain", "not in", [domain, ...former_domains]);
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
