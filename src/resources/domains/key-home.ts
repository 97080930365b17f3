import { asciiHost } from "../../lib/web-address.ts";
import type { App } from "../../app.ts";
import type { CustomDomainRow, DkimKeyRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { deferJob, enqueue, type Job } from "../../jobs/queue.ts";
import { hasten } from "../../jobs/hasten.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import type { Db } from "../../db/database.ts";
import { damagedKeys, keyRows } from "../../mail/writing/dkim-keys.ts";
import { addNextKeys, isUnsettled, settleKeys } from "../../mail/writing/dkim-rotation.ts";
import { checkLater, PENDING_CHECK_SECONDS } from "./domains.ts";
import { lookForKeys, sightingsOf } from "./findings.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const SERVICE_JOB = { kind: "check_service_keys", dedupe_key: "check_service_keys" } as const;

/** A domain with keys: the service's own (`row` null), or a custom one. */
export interface KeyHome {
  domain: string;
  row: CustomDomainRow | null;
}

/** The home of keys that somebody names on the command line by its domain; the service's own if nobody names one. */
export async function findKeyHome(app: App, name?: string): Promise<KeyHome> {
  const { domain } = app.config.smtp;
  const ascii = asciiHost(name ?? domain)
    .toLowerCase()
    .replace(/\.$/, "");
  if (ascii === domain) return { domain, row: null };
  const rows = await app.db.selectFrom("custom_domains").selectAll().where("domain", "=", ascii).execute();
  const row = rows.find(({ status }) => status === "active") ?? (rows.length === 1 ? rows[0] : undefined);
  if (row) return { domain: row.domain, row };
  const known = rows.length > 1 ? "waits for its records in several accounts" : "is no domain of this server";
  throw new AppError("not_found", `${name} ${known}.`, {
    fix: `Leave the name out for ${domain}, or name an active custom domain.`,
  });
}

/** `made`: new keys wait for their records. `waiting`: those made before still do. `switched`: they sign now. */
export type RotationStep = "made" | "waiting" | "switched";

/** Begins a rotation, or goes on with one: looks whether the new records are there. */
export async function rotateKeys(
  app: App,
  home: KeyHome,
): Promise<{ step: RotationStep; keys: DkimKeyRow[] }> {
  const domain_id = home.row?.id ?? null;
  if (home.row?.status === "failed")
    throw new AppError("conflict", `The records of ${home.domain} were not seen within 7 days.`, {
      fix: "Let its owner verify the domain first.",
    });
  const made = await addNextKeys(app, domain_id);
  const keys = made ? await keyRows(app.db, domain_id) : await settleNow(app, home);
  await app.write((tx) => lookSoon(app, tx, home));
  const waits = keys.some(({ state }) => state === "waiting");
  return { step: made ? "made" : waits ? "waiting" : "switched", keys };
}

/** Keys that cannot be opened any more, so that others sign or none, and what is to be done; undefined without any. */
export async function damagedKeysWarning(app: App): Promise<{ found: string; mend: string } | undefined> {
  const damaged = await damagedKeys(app);
  if (damaged.length === 0) return undefined;
  const customs = await app.db.selectFrom("custom_domains").select(["id", "domain"]).execute();
  const domainOf = ({ domain_id }: DkimKeyRow) => customs.find(({ id }) => id === domain_id)?.domain;
  const named = damaged.map((key) => `${key.selector} of ${domainOf(key) ?? app.config.smtp.domain}`);
  const commands = [...new Set(damaged.map(domainOf))].map(
    (domain) => `\`mailwright dkim rotate${domain === undefined ? "" : ` ${domain}`}\``,
  );
  return {
    found: `What is stored of these DKIM keys is damaged: ${named.join(", ")}. They sign nothing; mail goes out with a signature of another key, or without one.`,
    mend: `Make new keys with ${commands.join(" and ")}, and publish the records that it prints.`,
  };
}

/** Plans the first check of the records of the service's keys; planning it again changes nothing. */
export async function checkServiceKeysLater(app: App, tx: Db): Promise<void> {
  const run_at = app.after(PENDING_CHECK_SECONDS);
  const planned = await enqueue(app, tx, { ...SERVICE_JOB, payload: {}, run_at });
  if (!planned) await hasten(app, tx, { ...SERVICE_JOB, run_at });
}

/** The check of the service's keys that a job makes from time to time; after it other keys may sign. */
export async function checkServiceKeysNow(
  app: App,
  job: Job<"check_service_keys">,
  signal: AbortSignal,
): Promise<void> {
  const { domain } = app.config.smtp;
  const found = await lookForKeys(app, domain, await keyRows(app.db, null));
  await writeOutcome(app, signal, async (tx) => {
    const sightings = sightingsOf(found, await keyRows(tx, null));
    const keys = await settleKeys(app, tx, { domain_id: null, sightings });
    const wait = isUnsettled(keys, app.now()) ? PENDING_CHECK_SECONDS : DAY_SECONDS;
    await deferJob(tx, job, app.after(wait));
  });
}

async function settleNow(app: App, { domain, row }: KeyHome): Promise<DkimKeyRow[]> {
  const domain_id = row?.id ?? null;
  const found = await lookForKeys(app, domain, await keyRows(app.db, domain_id));
  return app.write(async (tx) => {
    const sightings = sightingsOf(found, await keyRows(tx, domain_id));
    return settleKeys(app, tx, { domain_id, sightings });
  });
}

async function lookSoon(app: App, tx: Db, { row }: KeyHome): Promise<void> {
  if (row === null) return checkServiceKeysLater(app, tx);
  const since = app.calmNow();
  const { id: domain_id, user_id } = row;
  await checkLater(app, tx, { domain_id, user_id, since, run_at: app.after(PENDING_CHECK_SECONDS) });
}
