import { join, resolve } from "node:path";
import { cautionsOf, queueWarnings, unsentWarning } from "./operation/admin/warnings.ts";
import { appointAdministrator } from "./resources/accounts/administrator.ts";
import { offerSetup } from "./resources/accounts/setup.ts";
import { type App, type AppOverrides, createApp } from "./app.ts";
import { hasNoServer } from "./backup/swap.ts";
import { backupWarning } from "./backup/schedule.ts";
import { releaseDeadReserves } from "./resources/billing/sweep.ts";
import type { Config } from "./config/config.ts";
import { checkServiceKeysLater, damagedKeysWarning } from "./resources/domains/key-home.ts";
import { tryWriting } from "./db/database.ts";
import { type Lock, lockDataFolder, lockStores } from "./db/locks.ts";
import { keepMasterKey } from "./db/master-key.ts";
import { dataDisks, freeOn, keepReserves, MIN_FREE_BYTES, MIN_FREE_FILES } from "./db/reserve.ts";
import { isStorageFault, storageWords } from "./db/storage-faults.ts";
import { AppError, messageOf } from "./errors.ts";
import { keepClock } from "./db/kept-clock.ts";
import { keepPosition, olderDatabaseWarning } from "./db/kept-position.ts";
import { keepRateLimits } from "./db/rate-limits.ts";
import { keepCosts } from "./resources/billing/kept-costs.ts";
import { movedWarning, moveToServiceDomain } from "./resources/inboxes/leave-domain.ts";
import { jobHandlers } from "./operation/jobs.ts";
import type { Checks } from "./http/health.ts";
import type { HttpDoor } from "./http/listen.ts";
import { openMetricsDoor } from "./http/metrics.ts";
import { startHttp } from "./api.ts";
import { keepHandlesBack } from "./http/spare-handles.ts";
import { sweepLater } from "./jobs/erase.ts";
import { clockWarning, planAtStart } from "./jobs/clock.ts";
import { mendJobs } from "./jobs/mend.ts";
import { voidLeases } from "./jobs/queue.ts";
import { createWorker } from "./jobs/worker.ts";
import { removeDrafts } from "./lib/durable-file.ts";
import { createLog } from "./lib/log.ts";
import { sharedAnswer } from "./lib/shared-answer.ts";
import { refuseReadOnly } from "./lib/start-faults.ts";
import { MailFilesError } from "./lib/own-faults.ts";
import { missingBytesWarning } from "./db/missing-bytes.ts";
import { keepDnsWatch, type WatchedDns } from "./net/dns-standing.ts";
import { createMetrics } from "./metrics.ts";
import { endOrphans } from "./pipeline/fail.ts";
import { spamFilterWarning } from "./inbound/spam-filter.ts";
import { keepIndexed, searchWarning } from "./resources/messages/search/keep-indexed.ts";
import { startSmtp } from "./smtp/listener.ts";
import { openChallengeDoor } from "./http/challenges.ts";
import { watchFiles } from "./tls/files.ts";
import { certificateWarning, keepCertificateLater, keepCertificateSoon } from "./tls/keep.ts";
import { MB } from "./lib/sizes.ts";

/** How long a stop lets calls over HTTP wait for their result, and then how long for their answers to go out. */
const CALLS_MS = 5_000;
const ANSWERS_MS = 2_000;

/** How long a start waits for the lock: a command line that makes an account holds the folder for a moment. */
const COMMAND_LINE_MS = 2_000;

/** How long a command line that begins at the same time may take to write a small file. */
const DRAFT_MS = 60_000;

export interface Server extends AsyncDisposable {
  app: App;
  /** `http://host:port`. */
  http: string;
  /** `host:port`; null when `smtp.listen` is empty. */
  smtp: string | null;
  /** The checks that `/readyz` shows. */
  ready: () => Promise<Checks>;
  /** Reads the certificate anew, or tries again to get one; null where neither is to be done. */
  reload: (() => Promise<void>) | null;
}

/** Starts the whole server over one data folder. Disposing it drains the work in progress. */
export async function serve(config: Config, overrides: AppOverrides = {}): Promise<Server> {
  await using started = new AsyncDisposableStack();
  const lock = started.use(await takeStores(config));
  const is_new = hasNoServer(config);
  const log = overrides.log ?? createLog(config.log);
  const { refuseIntake } = started.use(await keepReserves(config, log));
  const is_measured = config.metrics.listen !== "" || config.metrics.token !== "";
  const metrics = is_measured ? started.use(await createMetrics()) : undefined;
  const worker = (to: App) => createWorker(to, jobHandlers(to));
  const app = started.use(
    await createApp(config, { ...overrides, log, lock, refuseIntake, metrics, worker }),
  );
  const data = resolve(config.data.dir);
  if (is_new) log.info(`a new server begins in ${data}`);
  started.use(
    await keepClock(app, (error) => app.log.warn({ err: messageOf(error) }, "the time was not written down")),
  );
  started.use(await keepPosition(app));
  started.use(keepMasterKey(app.secrets, () => app.lockGone() === undefined, app.log));
  await takeOver(app);
  for (const caution of cautionsOf(config)) app.log.warn(caution);
  const unsent = await unsentWarning(app);
  if (unsent !== undefined) app.log.warn(unsent);
  started.use(
    await keepRateLimits(app, (error) =>
      app.log.warn({ err: messageOf(error) }, "rate limits were not saved"),
    ),
  );
  started.use(keepCosts(app));
  started.use(app.worker);
  const dns = started.use(keepDnsWatch(app));
  const doors = { smtp: null as string | null };
  const http = await startHttp(app, {
    ready: () => readiness(app, doors),
    warnings: createWarnings(app, dns),
  });
  started.defer(() => closeHttp(app, http));
  started.use(await keepHandlesBack(app, http));
  app.listensAt(http.url.replace("0.0.0.0", "localhost"));
  const smtp = started.use(await startSmtp(app));
  doors.smtp = smtp.address;
  started.use(openChallengeDoor(app));
  started.use(openMetricsDoor(app));
  const reload = await careForCertificate(app, started);
  app.worker?.start();
  started.use(keepIndexed(app));
  app.log.info({ http: http.url, smtp: smtp.address, data }, "ready");
  await offerSetup(app);
  const running = started.move();
  return {
    app,
    http: http.url,
    smtp: smtp.address,
    ready: () => readiness(app, doors),
    reload,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Locks the data folder and the database, and removes what killed processes have begun to write. */
async function takeStores(config: Config): Promise<Lock> {
  const { dir } = config.data;
  refuseReadOnly(dir);
  const lock = lockStores(config, COMMAND_LINE_MS);
  if (!lock) throw inUse(config);
  await removeDrafts(dir, DRAFT_MS);
  // Nobody else writes there.
  await removeDrafts(join(dir, "tls"), 0);
  return lock;
}

/**
 * Cleans up after the previous process, and plans recurring jobs. Must be called before SMTP or HTTP opens: from then
 * on a lease may belong to this process.
 */
export async function takeOver(app: App): Promise<void> {
  const { outbound, smtp } = app.config;
  await app.write(voidLeases);
  await appointAdministrator(app);
  const moved = await app.write((tx) => moveToServiceDomain(app, tx));
  if (moved > 0)
    app.log.warn(
      { inboxes: moved, domain: smtp.domain },
      "inboxes have moved to smtp.domain; their old addresses are refused, unless you go back to the old domain and list it in smtp.former_domains before the change",
    );
  const handlers = jobHandlers(app);
  await app.write(async (tx) => {
    await mendJobs(app, tx, handlers);
    await planAtStart(app, tx, handlers);
  });
  await app.write((tx) => sweepLater(app, tx));
  if (outbound.mode !== "capture") await app.write((tx) => checkServiceKeysLater(app, tx));
  while ((await app.write((tx) => endOrphans(app, tx, { share: null }))).length > 0);
  const dead = await app.write((tx) => releaseDeadReserves(app, tx));
  if (dead > 0) app.log.info({ credits: dead }, "credits of runs that will never end were given back");
}

/** Keeps the certificate up to date, and returns what a reload does; null where it does nothing. */
async function careForCertificate(app: App, started: AsyncDisposableStack): Promise<Server["reload"]> {
  const { tls, cert } = app.config.server;
  if (tls === "acme") {
    await keepCertificateLater(app);
    return () => keepCertificateSoon(app);
  }
  return cert === "" ? null : started.use(watchFiles(app)).reload;
}

/** Calls that wait for a result get a while for it; then they are told where it will be, and the run goes on. */
async function closeHttp(app: App, http: HttpDoor): Promise<void> {
  app.changes.close();
  const patience = setTimeout(() => app.finished.close(), CALLS_MS);
  const giveUp = Promise.withResolvers<void>();
  const last = setTimeout(giveUp.resolve, CALLS_MS + ANSWERS_MS);
  await Promise.race([http[Symbol.asyncDispose](), giveUp.promise]);
  clearTimeout(patience);
  clearTimeout(last);
}

async function readiness(app: App, doors: { smtp: string | null }): Promise<Checks> {
  const wanted = app.config.smtp.listen !== "";
  return {
    database: await verdict("the database cannot be written", () => app.write(tryWriting)),
    smtp: !wanted || doors.smtp !== null ? "ok" : "the SMTP listener is not up yet",
    disk: await diskState(app),
  };
}

/**
 * Returns a function that reads the warnings of `/readyz`. Those that are known at hand are always of this moment; those
 * that are read from the database are shared, as everybody may ask and a long queue takes time to look through.
 */
function createWarnings(app: App, watched: WatchedDns): () => Promise<Checks> {
  const readShared = sharedAnswer(() => readWarnings(app));
  return async () => {
    const [certificate, read] = await Promise.all([certificateWarning(app), readShared()]);
    return {
      ...stated({
        slow_disk: app.upkeep.slowDisk(),
        lost: app.upkeep.lostCommits(),
        clock: clockWarning(app),
        dns: watched.warning(),
        spam_filter: spamFilterWarning(app),
        mail_files: mailFilesWarning(app),
        certificate,
      }),
      ...read,
    };
  };
}

function stated(warnings: Record<string, string | undefined>): Checks {
  return Object.fromEntries(
    Object.entries(warnings).flatMap(([name, words]) => (words === undefined ? [] : [[name, words]])),
  );
}

/** Returns a warning about failing writes of large mails and files, which the database check does not notice. */
function mailFilesWarning({ segments }: App): string | undefined {
  const fault = segments.lastFault();
  if (fault === undefined) return undefined;
  const { message, fix } = storageWords(fault);
  return `the last large mail or file could not be stored (${messageOf(fault)}). ${message}. ${fix} This is said until one is stored.`;
}

/**
 * Returns no warnings from a database that cannot be read: the check of the database reports that, as more than a
 * warning.
 */
async function readWarnings(app: App): Promise<Checks> {
  try {
    const [search, backup, lost_mail, older_database, moved_inboxes, keys] = await Promise.all([
      searchWarning(app),
      backupWarning(app),
      missingBytesWarning(app),
      olderDatabaseWarning(app).catch(unlessUnusable),
      movedWarning(app),
      damagedKeysWarning(app),
    ]);
    const dkim = keys && `${keys.found} ${keys.mend}`;
    return {
      ...stated({ search, backup, lost_mail, older_database, moved_inboxes, dkim }),
      ...(await queueWarnings(app)),
    };
  } catch (error) {
    if (!isStorageFault(error)) throw error;
    return {};
  }
}

/** Ignores the error that the folder of mails cannot be used: the check of the disk reports it. */
function unlessUnusable(error: unknown): undefined {
  if (!(error instanceof MailFilesError)) throw error;
}

/** `ok`, or why `work` cannot be done on this machine now. */
async function verdict(trouble: string, work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return "ok";
  } catch (error) {
    if (!isStorageFault(error)) throw error;
    const { message, fix } = storageWords(error);
    return `${trouble} (${messageOf(error)}). ${message}. ${fix}`;
  }
}

async function diskState(app: App): Promise<string> {
  let space = "";
  const looked = await verdict("the free space is not known", async () => {
    space = await diskSpace(app);
  });
  if (looked !== "ok" || space !== "ok") return looked === "ok" ? space : looked;
  return verdict("large mails and files cannot be stored", app.segments.check);
}

async function diskSpace(app: App): Promise<string> {
  for (const dir of await dataDisks(app.config)) {
    const { bytes, files } = await freeOn(dir);
    if (bytes < MIN_FREE_BYTES) return `only ${Math.floor(bytes / MB)} MB are free in ${dir}`;
    if (files !== null && files < MIN_FREE_FILES)
      return `only ${files} more files can be made in ${dir} (inodes): delete files on its disk`;
  }
  return "ok";
}

function inUse({ data, database }: Config): AppError {
  using folder = lockDataFolder(data.dir);
  const [what, where, key] = folder
    ? ["database", database.url, "database.url"]
    : ["data folder", data.dir, "data.dir"];
  const one = folder ? "one" : "a folder";
  return new AppError("unavailable", `Another Mailwright is running on the ${what} ${where}.`, {
    fix: `Stop it first, or give this one ${one} of its own with ${key}.`,
  });
}
