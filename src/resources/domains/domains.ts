import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { refuseOverCap } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import { remembered } from "../../db/prepared.ts";
import type { CustomDomainRow, DkimKeyRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { hasten } from "../../jobs/hasten.ts";
import { enqueue } from "../../jobs/queue.ts";
import { deleteJobWithKey } from "../../jobs/remove.ts";
import { randomToken } from "../../lib/secrets.ts";
import type { DkimKeys } from "../../mail/writing/dkim.ts";
import {
  ALGORITHMS,
  domainKeys,
  keyRows,
  newKeyRow,
  selectorOf,
  serviceKeys,
} from "../../mail/writing/dkim-keys.ts";
import { domainName } from "./domain-name.ts";
import { recordViews } from "./records.ts";
import { canBeLookedUp, withoutName } from "./nameless.ts";

/** How often the records of a domain that waits for them are looked for. */
export const PENDING_CHECK_SECONDS = 600;

const TOKEN_CHARS = 32;
const TOKEN_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export type DomainView = ReturnType<typeof viewDomain>;

export async function listDomains(app: App, user: UserRow): Promise<DomainView[]> {
  const rows = await app.db
    .selectFrom("custom_domains")
    .selectAll()
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  return Promise.all(
    rows.map(async (row) => viewDomain(app, user, { row, keys: await keyRows(app.db, row.id) })),
  );
}

/** Adds a domain, which waits for its records from now on. */
export async function createDomain(app: App, caller: Caller, name: string): Promise<DomainView> {
  const { user } = caller;
  const domain = domainName(app.config, name);
  // This is checked before the keys are made too: they cost too much time for a domain that is refused.
  await refuseAnother(app, app.db, { user, domain });
  const id = app.newId();
  const keys = await firstKeys(app, id);
  const row: CustomDomainRow = {
    id,
    user_id: user.id,
    domain,
    status: "pending",
    ownership_token: randomToken(TOKEN_CHARS, TOKEN_ALPHABET),
    findings: "{}",
    error: null,
    misses: 0,
    verified_at: null,
    last_checked_at: null,
    created: app.now(),
  };
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "domain_created");
    await refuseAnother(app, tx, { user, domain });
    await tx.insertInto("custom_domains").values(row).execute();
    await tx.insertInto("dkim_keys").values(keys).execute();
    const run_at = app.now() + PENDING_CHECK_SECONDS;
    await checkLater(app, tx, { domain_id: id, user_id: user.id, since: app.calmNow(), run_at });
    return viewDomain(app, user, { row, keys });
  });
}

/**
 * Makes the first keys. Nothing is known of the RSA record yet; the other one has not been asked for before, and
 * counts as absent.
 */
function firstKeys(app: App, domain_id: string): Promise<DkimKeyRow[]> {
  return Promise.all(
    ALGORITHMS.map((algorithm) =>
      newKeyRow(app, {
        domain_id,
        selector: selectorOf(algorithm, 1),
        algorithm,
        state: "signing",
        record: algorithm === "rsa" ? "unknown" : "absent",
      }),
    ),
  );
}

/** Plans the next look at the records, unless an earlier one is planned already. */
export async function checkLater(
  app: App,
  tx: Db,
  { run_at, user_id, ...payload }: { domain_id: string; user_id: string; since: number; run_at: number },
): Promise<void> {
  const dedupe_key = checkKey(payload.domain_id);
  // Such a job may wait long for name servers, so each account has a share.
  const share = { account: user_id, slots: null };
  const planned = await enqueue(app, tx, { kind: "check_domain", payload, run_at, dedupe_key, share });
  if (!planned) await hasten(app, tx, { kind: "check_domain", dedupe_key, run_at });
}

/** Ends the checks that are planned, and the one that is being made: it writes nothing any more. */
export async function endChecks(tx: Db, domain_id: string): Promise<void> {
  await deleteJobWithKey(tx, { dedupe_key: checkKey(domain_id) });
}

function checkKey(domain_id: string): string {
  return `check_domain:${domain_id}`;
}

/** The user's own domain, or `not_found`, whether it is unknown or somebody else's. */
export async function ownDomain(db: Db, user: UserRow, id: string): Promise<CustomDomainRow> {
  const row = await db
    .selectFrom("custom_domains")
    .selectAll()
    .where("id", "=", id)
    .where("user_id", "=", user.id)
    .executeTakeFirst();
  if (!row) throw new AppError("not_found", "There is no such domain.");
  return row;
}

/** Whether a domain (in lower case) is the service's own, now or formerly. */
function isServiceDomain({ config: { smtp } }: App, domain: string): boolean {
  return domain === smtp.domain || smtp.former_domains.includes(domain);
}

/** Whether addresses of this domain (in lower case) are ours: the service's own, or an active one of an account. */
export async function isOwnDomain(app: App, domain: string): Promise<boolean> {
  return isServiceDomain(app, domain) || (await activeDomain(app.db, { domain })).length > 0;
}

/** The keys that sign mail from a domain; undefined for one that is not, or no longer, ours. */
export async function signingKeys(app: App, domain: string): Promise<DkimKeys | undefined> {
  if (isServiceDomain(app, domain)) return serviceKeys(app);
  const [row] = await activeDomain(app.db, { domain });
  return row && domainKeys(app, row.id);
}

/** The active row of a domain, at most one. The query is compiled once, because every mail asks. */
export const activeDomain = remembered((db, key: { domain: string }) =>
  db.selectFrom("custom_domains").selectAll().where("domain", "=", key.domain).where("status", "=", "active"),
);

/**
 * The rank of a domain among those of its account, the oldest being the first: a smaller plan has no room for the
 * newest.
 */
export async function rankOf(
  db: Db,
  { id, user_id }: Pick<CustomDomainRow, "id" | "user_id">,
): Promise<{ rank: number; count: number }> {
  const rows = await db
    .selectFrom("custom_domains")
    .select("id")
    .where("user_id", "=", user_id)
    .orderBy("id")
    .execute();
  return { rank: rows.findIndex((row) => row.id === id) + 1, count: rows.length };
}

export function viewDomain(
  app: App,
  user: UserRow,
  { row, keys }: { row: CustomDomainRow; keys: DkimKeyRow[] },
) {
  const { hostname } = app.config.smtp;
  const publishable = canBeLookedUp(hostname);
  return {
    id: row.id,
    domain: row.domain,
    status: row.status,
    publishable,
    dns_records: recordViews(app, row, { owner_email: user.email, keys }),
    verified_at: row.verified_at,
    last_checked_at: row.last_checked_at,
    error: publishable ? row.error : withoutName(hostname),
    created: row.created,
  };
}

async function refuseAnother(
  app: App,
  db: Db,
  { user, domain }: { user: UserRow; domain: string },
): Promise<void> {
  const rows = await db
    .selectFrom("custom_domains")
    .select("domain")
    .where("user_id", "=", user.id)
    .execute();
  if (rows.some((row) => row.domain === domain))
    throw new AppError("conflict", `You have added ${domain} already.`, {
      fix: "It is on the page “Domains”, with the records to publish (`GET /custom-domains`).",
    });
  refuseOverCap(app, user, "custom_domains", { wanted: rows.length + 1 });
}
