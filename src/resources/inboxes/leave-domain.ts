import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { keepNote, readNote } from "../../db/installation.ts";
import type { InboxRow } from "../../db/schema.ts";
import { ownDomain } from "../domains/domains.ts";
import { addressOf, freeLocalPart, newLocalPart, retireAddress } from "./addresses.ts";
import { dayAt } from "../../lib/durations.ts";

const ROW = "moved_inboxes";
/** How long the operator is told that inboxes have moved: by then, senders to old addresses have heard of it. */
const TOLD_SECONDS = 14 * 86_400;

/** Removes a custom domain. Its inboxes go on under the service's domain, where their threads stay as they are. */
export async function deleteDomain(app: App, caller: Caller, id: string): Promise<void> {
  await app.write(async (tx) => {
    await noteChange(app, tx, caller, "domain_deleted");
    const domain = await ownDomain(tx, caller.user, id);
    const inboxes = await tx.selectFrom("inboxes").selectAll().where("domain_id", "=", domain.id).execute();
    for (const inbox of inboxes) await moveHome(app, tx, inbox);
    await tx.deleteFrom("custom_domains").where("id", "=", domain.id).execute();
  });
}

/**
 * Moves inboxes from a former domain of the service that `smtp.former_domains` does not list to the present one, and
 * returns their number. Their addresses are not retired: if the setting is changed back, they have them again.
 */
export async function moveToServiceDomain(app: App, tx: Db): Promise<number> {
  const { domain } = app.config.smtp;
  const left = await strandedInboxes(app, tx).select("domain").distinct().orderBy("domain").execute();
  const moved = await tx
    .updateTable("inboxes")
    .set({ domain, updated: app.now() })
    .where("id", "in", strandedInboxes(app, tx).select("inboxes.id"))
    .$if(app.config.inboxes.chosen_addresses !== "everywhere", (some) => some.where("named", "=", 0))
    .where((eb) => {
      const taken = eb.selectFrom("inboxes as other").select("other.id").where("other.domain", "=", domain);
      return eb.not(eb.exists(taken.whereRef("other.local_part", "=", "inboxes.local_part")));
    })
    .executeTakeFirst();
  // The rest are chosen addresses that the domain does not take, and the few whose long, random local part is taken
  // there.
  const rest = await strandedInboxes(app, tx).selectAll().execute();
  for (const inbox of rest) await moveHome(app, tx, inbox);
  const inboxes = Number(moved.numUpdatedRows) + rest.length;
  if (inboxes === 0) return 0;
  const earlier = await movedLately(app, tx);
  // Inboxes that moved before may have moved again now.
  const known = Math.max(inboxes, earlier?.inboxes ?? 0);
  const from = new Set([...(earlier?.from ?? []), ...left.map((one) => one.domain)]);
  from.delete(domain);
  await keepNote(tx, ROW, { inboxes: known, from: [...from], to: domain, at: app.calmNow() } satisfies Moved);
  return inboxes;
}

interface Moved {
  inboxes: number;
  from: string[];
  to: string;
  /** When they moved, in unix seconds. */
  at: number;
}

/** The moves of the last two weeks, taken together. */
async function movedLately({ calmNow }: App, db: Db): Promise<Moved | undefined> {
  const moved = await readNote<Moved | null>(db, ROW);
  return moved && Array.isArray(moved.from) && calmNow() - moved.at <= TOLD_SECONDS ? moved : undefined;
}

/**
 * A warning that inboxes have moved in the last two weeks, so that mail to their old addresses is refused. Undefined
 * when none have.
 */
export async function movedWarning(app: App): Promise<string | undefined> {
  const moved = await movedLately(app, app.db);
  if (!moved) return undefined;
  const { inboxes, from, to, at } = moved;
  const day = dayAt(at);
  const listed = from.map((one) => JSON.stringify(one)).join(", ");
  return (
    `smtp.domain was changed: on ${day} ${inboxes} ${inboxes === 1 ? "inbox has" : "inboxes have"} moved from ${from.join(", ")} to ${to}, and mail to the old addresses is refused. ` +
    `To have them back, start once with the old smtp.domain, and then with the new one and smtp.former_domains = [${listed}].`
  );
}

/** Inboxes without a custom domain whose address is at no domain of the service. */
export function strandedInboxes(app: App, db: Db) {
  const { domain, former_domains } = app.config.smtp;
  return (
    db
      .selectFrom("inboxes")
      .where("domain_id", "is", null)
      // An inbox that is being erased has no address any more.
      .where("domain", "not in", ["", domain, ...former_domains])
  );
}

/**
 * Moves an inbox to the service's domain. Its local part stays, unless an inbox there has, or once had, that address,
 * or it was chosen and the service's domain takes no chosen ones.
 */
async function moveHome(app: App, tx: Db, inbox: InboxRow): Promise<void> {
  await retireAddress(app, tx, addressOf(inbox));
  const { domain } = app.config.smtp;
  const stays = inbox.named === 0 || app.config.inboxes.chosen_addresses === "everywhere";
  let next = stays ? inbox.local_part : newLocalPart(inbox.prefix);
  const local_part = await freeLocalPart(tx, { prefix: inbox.prefix, domain }, (prefix) => {
    const tried = next;
    next = newLocalPart(prefix);
    return tried;
  });
  const named = local_part === inbox.local_part ? inbox.named : 0;
  await tx
    .updateTable("inboxes")
    .set({ local_part, domain, domain_id: null, named, updated: app.now() })
    .where("id", "=", inbox.id)
    .execute();
}
