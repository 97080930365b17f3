import type { App } from "../../app.ts";
import { planLimits } from "../billing/plans.ts";
import type { Db } from "../../db/database.ts";
import type { CustomDomainRow, DkimKeyRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { keyRows } from "../../mail/writing/dkim-keys.ts";
import { isUnsettled, settleKeys } from "../../mail/writing/dkim-rotation.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import {
  activeDomain,
  checkLater,
  type DomainView,
  ownDomain,
  PENDING_CHECK_SECONDS,
  rankOf,
  viewDomain,
} from "./domains.ts";
import { lookForRecords, sightingsOf } from "./findings.ts";
import type { Findings } from "./records.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** How long a new domain waits for its records. */
const GIVE_UP_SECONDS = 7 * DAY_SECONDS;
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
    const since = app.now();
    const run_at = since + intervalOf(checked, keys, since);
    await checkLater(app, tx, { domain_id: id, user_id: user.id, since, run_at });
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
  const letter = await lossLetter(app, row, findings);
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    const before = await domainById(tx, domain_id);
    if (!before) return;
    const { passes, hindrance, columns } = await judge(app, tx, before, findings);
    const misses = isMiss(app, before, findings) ? before.misses + 1 : before.misses;
    const keys = await settle(app, tx, domain_id, findings);
    const checked = { ...before, ...columns, misses: passes ? 0 : misses };
    if (checked.misses === MISSES_TO_TELL && before.misses < MISSES_TO_TELL) await letter?.(tx);
    if (checked.status === "pending" && app.calmNow() - since >= GIVE_UP_SECONDS)
      return save(tx, {
        ...checked,
        status: "failed",
        error: hindrance ?? `${GIVEN_UP} ${checked.error}`,
      });
    await save(tx, checked);
    const run_at = app.after(intervalOf(checked, keys, app.now()));
    await checkLater(app, tx, { domain_id, user_id: before.user_id, since, run_at });
  });
}

const TAKEN = "This domain is active in another account, and it can be in one only.";
const NO_ROOM =
  "Your plan has no room for another active domain. Remove one, or get a larger plan, and verify this one again.";
const GIVEN_UP = "The records were not seen within 7 days. Publish them and verify the domain again.";

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

/** Returns those of the two required records of a domain that were not seen. */
function unseen({ ownership, inbound_mx }: Findings) {
  return [
    { label: "Ownership", ...ownership },
    { label: "Inbound mail", ...inbound_mx },
  ].filter(({ status }) => status !== "verified");
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

/** The letter for the miss at which the owner is told; it is made before the transaction that counts the miss. */
async function lossLetter(
  app: App,
  row: CustomDomainRow,
  findings: Findings,
): Promise<QueueLetter | undefined> {
  if (!isMiss(app, row, findings) || row.misses + 1 !== MISSES_TO_TELL) return undefined;
  const { email } = await app.db
    .selectFrom("users")
    .select("email")
    .where("id", "=", row.user_id)
    .executeTakeFirstOrThrow();
  return prepareLetter(app, {
    user_id: row.user_id,
    to: email,
    subject: `The DNS records of ${row.domain} are not there any more`,
    markdown: [
      `For ${MISSES_TO_TELL} days the DNS has not shown what your domain **${row.domain}** needs, so mail to its addresses may not arrive.`,
      ...unseen(findings).map(({ label, reason }) => `- ${label}: ${reason}`),
      "The domain stays active here, and nothing was removed. The list of your custom domains shows every record with its value; once they are back, all is well again.",
    ].join("\n\n"),
  });
}
