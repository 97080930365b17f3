import { deleteJobWithKey } from "../jobs/remove.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { hasten } from "../jobs/hasten.ts";
import { deferJob, enqueue, finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { AppError } from "../errors.ts";
import { AcmeError, reasonOf } from "./acme-error.ts";
import { certificateNames } from "./names.ts";
import { orderOnThread } from "./order-thread.ts";
import { type Certificate, factsOf, nameFault, pairFault } from "./pem.ts";
import { forgetOrder, readStoredCertificate, type StoredCertificate } from "./store.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

/** A certificate with less time left than this should have been replaced long ago. */
const NOTICE_SECONDS = 14 * DAY_SECONDS;
const FIRST_RETRY_SECONDS = 300;
/**
 * Shortest wait after a restart: Let's Encrypt allows a name that has failed five times in an hour one further attempt
 * each 12 minutes.
 */
const RESTART_RETRY_SECONDS = 12 * 60;
const KEY = "keep_certificate";

/** Enqueues the check of the certificate at the start of the server, when its names may have changed. */
export async function keepCertificateLater(app: App): Promise<void> {
  const { config } = app;
  if (config.server.tls !== "acme") return;
  const payload = { directory: config.acme.directory, names: certificateNames(config) };
  await app.write(async (tx) => {
    const waiting = await waitingJob(tx);
    if (waiting && waiting.payload !== JSON.stringify(payload))
      await deleteJobWithKey(tx, { dedupe_key: KEY });
    await enqueue(app, tx, { kind: "keep_certificate", payload, dedupe_key: KEY });
    const failed = waiting !== undefined && waiting.failures > 0;
    const run_at = failed
      ? waiting.run_at - retrySeconds(waiting.failures) + RESTART_RETRY_SECONDS
      : app.now();
    await hasten(app, tx, { kind: "keep_certificate", dedupe_key: KEY, run_at });
  });
}

/** Orders the certificate now, whatever failed before: somebody has fixed something. */
export async function keepCertificateSoon(app: App): Promise<void> {
  await app.write((tx) => hasten(app, tx, { kind: "keep_certificate", dedupe_key: KEY, run_at: app.now() }));
}

/** Renews the certificate once two thirds of its life are over, and presents it; otherwise plans the next check. */
export async function keepCertificateNow(
  app: App,
  job: Job<"keep_certificate">,
  signal: AbortSignal,
): Promise<void> {
  if (app.config.server.tls !== "acme") return app.write((tx) => finishJob(tx, job));
  const stored = await fittingCertificate(app);
  if (stored && renewalOf(stored) > app.now()) {
    // Left behind by a process that was killed when all else was done.
    await forgetOrder(app.config);
    await show(app, stored);
    return writeOutcome(app, signal, (tx) => deferJob(tx, job, renewalOf(stored)));
  }
  const certificate = await orderOnThread(app, signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return comeBack(app, { job, signal, error });
  });
  if (!certificate) return;
  await show(app, certificate);
  const { names, until } = factsOf(certificate.cert);
  app.log.info({ names, until: dayOf(until) }, "there is a new certificate");
  await writeOutcome(app, signal, (tx) => deferJob(tx, job, nextLook(app, certificate)));
}

const WRONG_NAME = "Put one for that name in its place, or mend server.base_url.";

/** Returns a warning about the certificate; undefined when all is well. */
export async function certificateWarning(app: App): Promise<string | undefined> {
  const { tls, cert } = app.config.server;
  if (tls === "off" && cert === "") return undefined;
  const why =
    tls === "acme"
      ? ((await waitingJob(app.db))?.last_error ?? "")
      : "Put new files in place of the old ones.";
  if (tls === "acme" && !(await fittingCertificate(app)))
    return `There is no certificate for ${certificateNames(app.config).join(", ")} yet. ${why}`.trim();
  const shown = (await app.certificates.current()).cert;
  const { names, until } = factsOf(shown);
  const left = until - app.now();
  const misnamed = tls === "files" ? nameFault(shown, app.config.server) : undefined;
  if (misnamed !== undefined) return `The certificate in server.cert ${misnamed}. ${WRONG_NAME}`;
  if (left > NOTICE_SECONDS) return undefined;
  const when = left > 0 ? `ends on ${dayOf(until)}` : `has ended on ${dayOf(until)}`;
  return `The certificate for ${names.join(", ")} ${when}. ${why}`.trim();
}

/** Returns the stored certificate, if it is for the current names and authority. */
async function fittingCertificate({ config }: App): Promise<StoredCertificate | undefined> {
  const stored = await readStoredCertificate(config);
  const fits =
    stored?.directory === config.acme.directory && Bun.deepEquals(stored.names, certificateNames(config));
  return stored && fits && pairFault(stored) === undefined ? stored : undefined;
}

async function show({ certificates }: App, certificate: Certificate): Promise<void> {
  if ((await certificates.current()).cert !== certificate.cert) await certificates.swap(certificate);
}

/** Returns when to renew: after two thirds of its life, as most authorities recommend. */
function renewalOf({ cert }: Certificate): number {
  const { from, until } = factsOf(cert);
  return Math.ceil(until - (until - from) / 3);
}

/** Returns when to check next. A wrong clock must not cause one order after the other. */
function nextLook(app: App, certificate: Certificate): number {
  const renewal = renewalOf(certificate);
  if (renewal > app.now()) return renewal;
  app.log.error("by the clock of this machine the new certificate is old already; set the clock right");
  return app.after(DAY_SECONDS);
}

async function comeBack(
  app: App,
  failed: { job: Job<"keep_certificate">; signal: AbortSignal; error: unknown },
): Promise<undefined> {
  const { job, signal, error } = failed;
  const asked = error instanceof AcmeError ? (error.retry_after_seconds ?? 0) : 0;
  const run_at = app.after(Math.max(asked, retrySeconds(job.failures + 1)));
  const reason = reasonOf(error, app.config);
  await writeOutcome(app, signal, (tx) => postponeJob(tx, job, { run_at, error: reason }));
  const { until } = factsOf((await app.certificates.current()).cert);
  const level = until - app.now() < NOTICE_SECONDS ? "error" : "warn";
  const { names } = job.payload;
  const bug = error instanceof AcmeError || error instanceof AppError ? {} : { err: error };
  app.log[level]({ names, next_try: timeOf(run_at), ...bug }, `no new certificate: ${reason}`);
}

/** Returns the wait after a failure, from minutes to a day. */
function retrySeconds(failures: number): number {
  return Math.min(DAY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (failures - 1));
}

function waitingJob(db: Db) {
  return db
    .selectFrom("jobs")
    .select(["payload", "failures", "run_at", "last_error"])
    .where("dedupe_key", "=", KEY)
    .executeTakeFirst();
}

function dayOf(seconds: number): string {
  return timeOf(seconds).slice(0, 10);
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}
