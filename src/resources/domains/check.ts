import type { App } from "../../app.ts";
import { planLimits } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import type { CustomDomainRow, DkimKeyRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { isUnsettled, settleKeys } from "../../mail/writing/dkim-rotation.ts";
import type { QueueLetter } from "../../mail/writing/letters.ts";
import {
  activeDomain,
  checkLater,
  type DomainView,
  endChecks,
  ownDomain,
  PENDING_CHECK_SECONDS,
  rankOf,
  viewDomain,
} from "./domains.ts";
import { lookForRecords, sightingsOf } from "./findings.ts";
import { givenUpLetter, lossLetter, unseen } from "./letters.ts";
import type { Findings } from "./records.ts";
import { DAY_SECONDS, dayAt } from "../../lib/durations.ts";

/** How long a new domain waits for its records. */
const GIVE_UP_SECONDS = 7 * DAY_SECONDS;
/** How long after that they are still looked for, once a day. */
const LATE_SECONDS = 30 * DAY_SECONDS;
/** How many daily checks in a row must miss the records before the owner is told. */
const MISSES_TO_TELL = 3;

/** Looks for the records now, and says for each what it saw. */
export async function verifyDomain(app: App, user: UserRow, id: string): Promise<DomainView> {
  const findings = await look(app, await ownDomain(app.db, user, id));
  const { row, keys, hindrance } = await app.write(async (tx) => {
    const before = await ownDomain(tx, user, id);
    const verdict = await judge(app, tx, before, findings);
    // A failed domain begins anew, because somebody asks again on purpose.
    const checked = { ...before, ...verdict.columns, misses: verdict.passes ? 0 : before.misses };
    await save(tx, checked);
    const keys = await settle(app, tx, id, findings);
    if (before.status === "failed") await endChecks(tx, id);
    const run_at = app.now() + intervalOf(checked, keys, app.now());
    await checkLater(app, tx, { domain_id: id, user_id: user.id, since: app.calmNow(), run_at });
    return { row: checked, keys, hindrance: verdict.hindrance };
  });
  if (hindrance === TAKEN)
    throw new AppError("conflict", TAKEN, {
      fix: "Remove the domain from the other account first, or ask the operator of this server.",
    });
  return viewDomain(app, user, { row, keys });
}

/** The check that a job makes from time to time: it activates a domain, gives up, or tells the owner what got lost. */
export async function checkNow(app: App, job: Job<"check_domain">, signal: AbortSignal): Promise<void> {
  const { domain_id, since } = job.payload;
  const row = await domainById(app.db, domain_id);
  if (!row) return app.write((tx) => finishJob(tx, job));
  const findings = await look(app, row);
  const letter = await letterFor(app, row, { findings, since });
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    const before = await domainById(tx, domain_id);
    if (!before) return;
    const { passes, hindrance, columns } = await judge(app, tx, before, findings);
    const misses = passes ? 0 : before.misses + (isMiss(app, before, findings) ? 1 : 0);
    const keys = await settle(app, tx, domain_id, findings);
    const checked = { ...before, ...columns, misses };
    // A domain is given up together with its letter, and stays so until its records are seen, or somebody asks anew.
    if (checked.status === "pending" && (before.status === "failed" || letter !== undefined)) {
      checked.status = "failed";
      checked.error = givenUp(app, since, { hindrance, error: columns.error });
    }
    if (isToTell(before, checked)) await letter?.(tx);
    await save(tx, checked);
    if (checked.status === "failed" && isOver(app, since)) return;
    const run_at = app.after(intervalOf(checked, keys, app.now()));
    await checkLater(app, tx, { domain_id, user_id: before.user_id, since, run_at });
  });
}

/** Whether a check found what its owner is told: the last miss of a row, or that the domain is given up. */
function isToTell(before: CustomDomainRow, { status, misses }: CustomDomainRow): boolean {
  if (misses === MISSES_TO_TELL && before.misses < MISSES_TO_TELL) return true;
  return status === "failed" && before.status !== "failed";
}

const TAKEN = "This domain is active in another account, and it can be in one only.";
const NO_ROOM =
  "Your account may have no more active domains. Remove one, or get room for more, and verify this one again.";

function domainById(db: Db, id: string): Promise<CustomDomainRow | undefined> {
  return db.selectFrom("custom_domains").selectAll().where("id", "=", id).executeTakeFirst();
}

async function look(app: App, row: CustomDomainRow): Promise<Findings> {
  return lookForRecords(app, row, await keyRows(app.db, row.id));
}

/** Decides which keys sign from now on, by what was seen of their records. */
async function settle(app: App, tx: Db, domain_id: string, { dkim }: Findings): Promise<DkimKeyRow[]> {
  const sightings = sightingsOf(dkim, await keyRows(tx, domain_id));
  return settleKeys(app, tx, { domain_id, sightings });
}

interface Verdict {
  /** Whether the records prove the domain, or no proof is asked for. */
  passes: boolean;
  /** Why the domain is not activated although it passes. */
  hindrance: string | null;
  columns: Pick<CustomDomainRow, "status" | "error" | "findings" | "verified_at" | "last_checked_at">;
}

/** The new state of a domain after a check. An active domain stays active. */
async function judge(app: App, tx: Db, row: CustomDomainRow, findings: Findings): Promise<Verdict> {
  const passes = app.config.domains.verification === "trust" || unseen(findings).length === 0;
  const hindrance = passes && row.status !== "active" ? await hindranceOf(app, tx, row) : null;
  const active = row.status === "active" || (passes && hindrance === null);
  return {
    passes,
    hindrance,
    columns: {
      status: active ? "active" : "pending",
      error: passes ? hindrance : sentenceOf(findings),
      findings: JSON.stringify(findings),
      verified_at: active ? (row.verified_at ?? app.now()) : row.verified_at,
      last_checked_at: app.now(),
    },
  };
}

async function hindranceOf(app: App, tx: Db, row: CustomDomainRow): Promise<string | null> {
  const rivals = await activeDomain(tx, { domain: row.domain });
  if (rivals.length > 0) return TAKEN;
  const { plan } = await tx
    .selectFrom("users")
    .select("plan")
    .where("id", "=", row.user_id)
    .executeTakeFirstOrThrow();
  const { rank } = await rankOf(tx, row);
  return rank > planLimits(app.config, plan).custom_domains ? NO_ROOM : null;
}

function sentenceOf(findings: Findings): string {
  return unseen(findings)
    .map(({ label, reason }) => `${label}: ${reason}`)
    .join(" ");
}

/** A DNS that does not answer is no proof that a record is gone. */
function isMiss(app: App, row: CustomDomainRow, findings: Findings): boolean {
  return (
    row.status === "active" &&
    app.config.domains.verification !== "trust" &&
    unseen(findings).some(({ status }) => status !== "pending")
  );
}

function intervalOf({ status }: CustomDomainRow, keys: DkimKeyRow[], now: number): number {
  if (status === "failed") return DAY_SECONDS;
  return status === "active" && !isUnsettled(keys, now) ? DAY_SECONDS : PENDING_CHECK_SECONDS;
}

/** Saves the columns of a check; the rest of a row never changes. */
async function save(tx: Db, row: CustomDomainRow): Promise<void> {
  const { status, error, findings, misses, verified_at, last_checked_at } = row;
  await tx
    .updateTable("custom_domains")
    .set({ status, error, findings, misses, verified_at, last_checked_at })
    .where("id", "=", row.id)
    .execute();
}

/**
 * The letter that the outcome of a check may call for; it is made before the transaction with the outcome. Undefined
 * where none can be due.
 */
async function letterFor(
  app: App,
  row: CustomDomainRow,
  { findings, since }: { findings: Findings; since: number },
): Promise<QueueLetter | undefined> {
  if (isMiss(app, row, findings) && row.misses + 1 === MISSES_TO_TELL)
    return lossLetter(app, row, { findings, days: MISSES_TO_TELL });
  if (row.status !== "pending" || !hasWaited(app, since, GIVE_UP_SECONDS)) return undefined;
  const { hindrance, columns } = await judge(app, app.db, row, findings);
  if (columns.status === "active") return undefined;
  return givenUpLetter(app, row, { findings, hindrance, next: nextLooks(app, since) });
}

/** The error of a domain that is given up: why, and when it is looked for again. */
function givenUp(
  app: App,
  since: number,
  { hindrance, error }: { hindrance: string | null; error: string | null },
): string {
  const why = hindrance ?? `The records were not seen within 7 days. ${error}`;
  return `${why} ${nextLooks(app, since)} To have it look now, verify the domain again (“Look now” on the page “Domains”).`;
}

/** When the server looks for the records of a domain that is given up. */
function nextLooks(app: App, since: number): string {
  return isOver(app, since)
    ? "The server does not look again by itself."
    : `The server looks once a day until ${dayAt(since + GIVE_UP_SECONDS + LATE_SECONDS)}.`;
}

function isOver(app: App, since: number): boolean {
  return hasWaited(app, since, GIVE_UP_SECONDS + LATE_SECONDS);
}

function hasWaited(app: App, since: number, seconds: number): boolean {
  return app.calmNow() - since >= seconds;
}
