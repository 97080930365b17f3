import { join } from "node:path";
import { GUARD, type Guard } from "./trust/guard/guard.ts";
import { createMcpPool, type McpPool } from "./ai/mcp.ts";
import { backupBeforeUpgrade } from "./backup/before-upgrade.ts";
import { endRestore } from "./backup/swap.ts";
import type { Config } from "./config/config.ts";
import type { CostsAside } from "./resources/billing/kept-costs.ts";
import type { UnwrittenGrant } from "./resources/connections/sealed.ts";
import { refuseLost } from "./db/bring-back.ts";
import { type Db, openDatabase, type Upkeep, type Write } from "./db/database.ts";
import { type Clocks, openClocks } from "./db/clocks.ts";
import type { Lock } from "./db/locks.ts";
import type { MessageRow } from "./db/schema.ts";
import { migrateToLatest } from "./db/migrate.ts";
import { type Keeper, namedSegments } from "./db/segment-rows.ts";
import { createPatience, type Patience } from "./db/patience.ts";
import type { JobWorker } from "./jobs/worker.ts";
import { createFileReader, type FileReader } from "./files/reader.ts";
import { type DnsCounts, newDnsCounts } from "./net/dns-standing.ts";
import { createResolver, type Resolver } from "./net/dns.ts";
import { createFairPool, type FairPool, WORKERS_FOR_ALL } from "./lib/fair-pool.ts";
import { createFairTurns, type FairTurns } from "./lib/fair-turns.ts";
import { createIncoming, largeAnswersIn, type OpenIncoming } from "./net/incoming.ts";
import { createSafeFetch, type SafeFetch } from "./net/guarded-fetch.ts";
import { createPoster, type Poster } from "./net/poster.ts";
import { folderFault, mailFolderFault } from "./lib/start-faults.ts";
import { createFeed, type Feed } from "./lib/feed.ts";
import { createPacedTurns, type PacedTurns } from "./lib/paced-turns.ts";
import { createNotifier, type Notifier } from "./lib/notifier.ts";
import { createRateLimiter, type RateLimiter } from "./lib/rate-limit.ts";
import { createLentRanges, type LentRanges } from "./lib/lent-ranges.ts";
import { openSegments, type Position, type SegmentStore } from "./lib/segments.ts";
import type { Secrets } from "./lib/secrets.ts";
import { createSharedMemory, type SharedMemory } from "./lib/shared-memory.ts";
import { createThreadsBySize, type ThreadsBySize } from "./lib/threads-by-size.ts";
import { openMasterKey } from "./db/master-key.ts";
import { waitAtMost } from "./lib/deadline.ts";
import { createLog, type Log } from "./lib/log.ts";
import { createTally, type Metrics } from "./metrics.ts";
import { type DkimKeyMaker, makeDkimKey } from "./mail/writing/dkim.ts";
import { prepareDkimKeys } from "./mail/writing/dkim-start.ts";
import { createMailParser, type MailParser } from "./mail/reading/parse.ts";
import { createPolicyFinder } from "./mail/sending/mta-sts.ts";
import { createSender, type Sender } from "./mail/sending/send.ts";
import type { Examination, MailToExamine } from "./inbound/examine.ts";
import { markMissingBytes } from "./db/missing-bytes.ts";
import { type Certificates, createCertificates } from "./tls/certificates.ts";
import { MB } from "./lib/sizes.ts";

/** The workers for long texts, and what one of them may grow by while it works on one. */
const TEXT_WORKERS = { size: WORKERS_FOR_ALL, memory_bytes: 512 * MB };
/** One of the two is always left for other accounts. */
const BODY_WORKERS = { size: 2 };
/**
 * Room for six of the largest calls, each of which takes twice its length as sent: with mail and runs they fit in two
 * gigabytes.
 */
const BODY_MEMORY = { budget: 512 * MB, small: 524_288 };
/** Room for some hundred pages of lists. */
const ANSWER_MEMORY = { budget: 256 * MB, small: 262_144 };

/**
 * Measured: with twice as many ends of runs at once, a flood of mail is accepted at three quarters of the rate; with
 * half as many, calls end a fifth slower.
 */
const ENDINGS_AT_ONCE = 24;
/** Each mail or file that is checked takes 30 MB at the most. */
const CHECKS_AT_ONCE = 4;
/** The memory for runs weighs a digest by its own mail, and knows nothing of those that it reads. */
const DIGEST_MAILS_AT_ONCE = 1;

/** How long a start waits until the database was looked through; a large one is looked through on. */
const LOOK_THROUGH_MS = 5_000;

/** What those who wait for a message are told when its run has ended. */
export interface RunEnd {
  /** The message as it is stored. */
  row: MessageRow;
  /** Whether files came of it. */
  made_files: boolean;
  /** Result and steps of a private message, which are stored nowhere. */
  unstored: { result: string; steps: object[] } | undefined;
}

/** Everything the parts share: built once, in `createApp`, and handed to every operation. */
export interface App extends AsyncDisposable, Clocks {
  config: Config;
  /** Where people reach this server: `server.base_url`, or where it listens. */
  readonly base_url: string;
  /** Tells the app where the server listens, once that is known. */
  listensAt: (url: string) => void;
  db: Db;
  write: Write;
  /** Stores what nobody could send a second time; see `db/patience.ts`. */
  insist: Patience["insist"];
  /** By connection, an OAuth grant that is not on the disk yet. */
  unwritten: Map<string, UnwrittenGrant>;
  /** By connection, the refresh of its token that is under way: whoever asks meanwhile waits for the same refresh. */
  refreshing: Map<string, Promise<string | null>>;
  upkeep: Upkeep;
  /**
   * The error to throw while another server may have taken over, as each commit does; undefined while none can have.
   */
  lockGone: () => Error | undefined;
  /** Throws while the disk has room only for ending what was begun. */
  readonly refuseIntake: () => void;
  /** For what is too large for the database; see `resources/messages/stored-bytes.ts`. */
  segments: SegmentStore;
  log: Log;
  /** From `createMetrics` where somebody wants the figures, else from `createTally`. */
  readonly metrics: Metrics;
  secrets: Secrets;
  makeDkimKey: DkimKeyMaker;
  /** What HTTPS and STARTTLS show. */
  certificates: Certificates;
  resolver: Resolver;
  /** What this process has heard of the DNS, on all its threads. */
  dns_counts: DnsCounts;
  /** The only way out over HTTP: refuses private addresses unless `egress.allow` names them. */
  fetch: SafeFetch;
  /** The way out to webhook endpoints, whose exceptions are `webhooks.allow`. */
  poster: Poster;
  /** Finds out, before a mail is taken, what has to be known of it. */
  examiner: ThreadsBySize<MailToExamine, Examination>;
  parser: MailParser;
  /** Reads the files of a message. */
  files: FileReader;
  /** The workers for long texts of others that are to be shown or mailed; see `pipeline/text-work.ts`. */
  texts: FairPool<unknown>;
  /**
   * Turns for the ends of runs, whose models may all have answered at once. Only so many ends are worked on at a time:
   * mail that comes in meanwhile would otherwise wait for all of them.
   */
  endings: FairTurns;
  /**
   * Turns for portions of long texts, which the database reads on this thread: one portion at a time, and everybody's
   * in turn.
   */
  reads: FairTurns;
  /** Turns for requests whose answer this thread makes and may take long over; see `http/in-hand.ts`. */
  requests: PacedTurns;
  /** Turns for mails and files that are held in memory until their checksum is known, before they are sent. */
  checks: FairTurns;
  /** Turns for mails that digests read: there may be a hundred in each, and all digests may be due at once. */
  digests: FairTurns;
  /** What requests to models may cost, or have cost, and is not in the database. */
  costs: CostsAside;
  /** The ranges of segments that are being sent. */
  lent: LentRanges;
  /** The workers for long calls; see `http/body.ts`. */
  bodies: FairPool<unknown>;
  /** Memory for the bodies of requests until they are stored. */
  bodyMemory: SharedMemory;
  /** Memory for long answers until they have been taken. */
  answerMemory: SharedMemory;
  /** Memory for long answers of tool servers and integrations while they come in. */
  incoming: OpenIncoming;
  /** What tools a run may use, and for what. */
  guard: Guard;
  /** Sessions with tool servers. */
  mcp: McpPool;
  sender: Sender;
  limiter: RateLimiter;
  /** Notifies about each message that reached its end, by id, with the outcome of its run. */
  finished: Notifier<RunEnd>;
  /** Publishes, by account, the id of each message that was created or changed, once that is committed. */
  changes: Feed;
  /** By message, what each run that is under way in this process has done so far, as `steps` of the message. */
  progress: Map<string, () => object[]>;
  /** Why the mail relay accepts nothing, and since when (Unix seconds); null while it does. */
  relay: { trouble: { since: number; response: string } | null };
  /** Why the spam filter did not answer the last mail, since when (Unix seconds); null while it answers. */
  spam_filter: { trouble: { since: number; problem: string } | null };
  /** SHA-256, hex, of the token that makes the first account, while there is none. */
  setup: { hash: string | undefined };
  /** By table, the place behind which older bytes have no checksum yet; see `operation/retention/seal.ts`. */
  unsealed: Map<Keeper, Position | "done">;
  /** Works on the jobs; a command line that only writes has none. */
  readonly worker: JobWorker | undefined;
}

export interface AppOverrides {
  /** Another trust boundary, to show in a test what the real one keeps out. */
  guard?: Guard;
  nowMs?: () => number;
  /** A clock in milliseconds that nobody can set. */
  steadyMs?: () => number;
  log?: Log;
  /** The port of other people's mail servers: 25 except in tests. */
  smtp_port?: number;
  /** A certificate authority (PEM) that is trusted in place of the built-in ones. */
  ca?: string;
  /** Whether the database may be migrated: false beside a running server, which would not know the new schema. */
  may_migrate?: boolean;
  /** The lock of whoever has the stores open: nothing is committed while it is lost. */
  lock?: Lock | undefined;
  /** The bytes that a database in memory begins with. */
  image?: Buffer;
  /** Threads and workers that were made elsewhere, and are ended there. */
  threads?: Threads;
  metrics?: Metrics | undefined;
  refuseIntake?: () => void;
  /** In tests, which need many keys and no new ones. */
  makeDkimKey?: DkimKeyMaker;
  /** Makes the worker on the jobs; whoever passes this function starts and ends that worker. */
  worker?: (app: App) => JobWorker;
}

type Threads = Pick<App, "examiner" | "parser" | "files" | "texts" | "bodies">;

export async function createApp(config: Config, overrides: AppOverrides = {}): Promise<App> {
  const wallMs = overrides.nowMs ?? Date.now;
  const log = overrides.log ?? createLog(config.log);
  const stores = await openStores(config, { log, wallMs }, overrides);
  const { segments, database, clocks, secrets, lockGone } = stores;
  // Disposed in reverse: nobody hears of changes any more, then the work in progress ends, then the stores close.
  await using parts = new AsyncDisposableStack();
  parts.use(segments);
  parts.use(database);
  const keys = { secrets, makeDkimKey: overrides.makeDkimKey ?? makeDkimKey };
  await prepareDkimKeys({ ...database, ...keys, now: clocks.now, log }, config.data.dir);
  const waysOut = createWaysOut(config, overrides, { ...database, ...clocks, log });
  parts.use(waysOut.poster);
  parts.use(waysOut.sender);
  const incoming = createIncoming(largeAnswersIn(config.routing.memory_mb));
  const mcp = parts.use(createMcpPool({ nowMs: clocks.nowMs, incoming }));
  const threads = overrides.threads ?? createThreads();
  if (!overrides.threads) for (const thread of Object.values(threads)) parts.use(thread);
  const { insist } = parts.use(createPatience(database.write, log));
  const changes = createFeed(clocks.calm.nowMs);
  parts.defer(() => changes.close());
  const owned = parts.move();
  let { base_url } = config.server;
  const app: App = {
    config,
    get base_url() {
      return base_url;
    },
    listensAt: (url) => void (base_url = config.server.base_url || url),
    ...database,
    insist,
    lockGone,
    refuseIntake: overrides.refuseIntake ?? (() => undefined),
    segments,
    ...clocks,
    log,
    metrics: overrides.metrics ?? createTally(),
    ...keys,
    certificates: createCertificates(config, log),
    ...waysOut,
    ...threads,
    ...createQueues(),
    lent: createLentRanges(clocks.steadyNow),
    ...createMemory(),
    ...createNotes(),
    incoming,
    guard: overrides.guard ?? GUARD,
    mcp,
    limiter: createRateLimiter(clocks.calm.nowMs),
    changes,
    worker: undefined,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
  return Object.assign(app, { worker: overrides.worker?.(app) });
}

/** The threads and processes in which the texts of others are read and worked on. Each starts with its first work. */
function createThreads(): Threads {
  return {
    examiner: createThreadsBySize<MailToExamine, Examination>("inbound/examine-worker.ts"),
    parser: createMailParser(),
    files: createFileReader(),
    texts: createFairPool<unknown>("pipeline/text-worker.ts", TEXT_WORKERS),
    bodies: createFairPool<unknown>("http/call-body-worker.ts", BODY_WORKERS),
  };
}

/** Turns for what this thread does itself: nobody must have to wait for all the work of others. */
function createQueues(): Pick<App, "reads" | "requests" | "checks" | "digests" | "endings"> {
  return {
    reads: createFairTurns(1),
    requests: createPacedTurns(),
    checks: createFairTurns(CHECKS_AT_ONCE),
    digests: createFairTurns(DIGEST_MAILS_AT_ONCE),
    endings: createFairTurns(ENDINGS_AT_ONCE),
  };
}

/** What only this process knows, and what is lost when it ends. */
function createNotes() {
  return {
    unwritten: new Map(),
    refreshing: new Map(),
    costs: { reserved: new Map(), given_back: new Map(), unsaved: new Map() },
    finished: createNotifier<RunEnd>(),
    progress: new Map(),
    relay: { trouble: null },
    spam_filter: { trouble: null },
    setup: { hash: undefined },
    unsealed: new Map(),
  } satisfies Partial<App>;
}

function createMemory(): Pick<App, "bodyMemory" | "answerMemory"> {
  return {
    bodyMemory: createSharedMemory(BODY_MEMORY),
    answerMemory: createSharedMemory(ANSWER_MEMORY),
  };
}

/** Every way out to other machines, each with its own guard of addresses. */
function createWaysOut(
  config: Config,
  overrides: AppOverrides,
  parts: Pick<App, "db" | "write" | "log" | "calmNow">,
): Pick<App, "resolver" | "dns_counts" | "fetch" | "poster" | "sender"> {
  const { egress, webhooks, outbound } = config;
  const dns_counts = newDnsCounts();
  const resolver = createResolver({ servers: config.dns.servers, counts: dns_counts });
  const ca = overrides.ca === undefined ? {} : { ca: overrides.ca };
  const fetch = createSafeFetch({ resolve: resolver, allow: egress.allow, ...ca });
  return {
    resolver,
    dns_counts,
    fetch,
    poster: createPoster({ resolve: resolver, allow: webhooks.allow, setting: "webhooks.allow" }),
    sender: createSender({
      mode: outbound.mode,
      relay_url: outbound.relay_url,
      hostname: config.smtp.hostname,
      resolver,
      egress_allow: egress.allow,
      policyOf: createPolicyFinder({ ...parts, resolver, fetch }),
      log: parts.log,
      ...ca,
      ...(overrides.smtp_port === undefined ? {} : { port: overrides.smtp_port }),
    }),
  };
}

async function openMail(...[path, options]: Parameters<typeof openSegments>): Promise<SegmentStore> {
  return openSegments(path, options).catch((error: unknown) => {
    throw mailFolderFault(error, path);
  });
}

/** What the data folder holds: the database brought up to date, with its clocks, the segments and the master key. */
async function openStores(
  config: Config,
  { log, wallMs }: Pick<App, "log" | "wallMs">,
  { may_migrate = true, lock, image, worker, ...overrides }: AppOverrides,
) {
  const { dir } = config.data;
  try {
    await endRestore(dir, may_migrate);
    if (may_migrate) refuseLost(config);
    let segments: SegmentStore | undefined;
    const lockGone = () => lock?.gone();
    const refuseIfGone = (): void => {
      const gone = lockGone();
      if (gone) throw gone;
    };
    const database = openDatabase(config.database.url, {
      log,
      beforeCommit: async () => refuseIfGone(),
      // A process beside the server keeps long bytes in their rows: the server alone writes the segments.
      keep: async (long) => (may_migrate ? segments?.keep(long) : undefined),
      bring_back: may_migrate,
      ...(image === undefined ? {} : { image }),
    });
    // What an index has lost counts as gone from here on, and so would be ended, made again or erased.
    if (worker) await waitAtMost(LOOK_THROUGH_MS, database.upkeep.lookThrough());
    const beforeUpgrade = backupBeforeUpgrade(config, (path) =>
      log.info({ path }, "new version: making a backup of the database first"),
    );
    const migrated = await migrateToLatest(database.db, may_migrate, beforeUpgrade);
    if (migrated.length > 0) log.debug({ migrations: migrated }, "database migrated");
    const named = await namedSegments(database.db);
    const ends = new Map(named.map(({ segment, end }) => [segment, end]));
    segments = await openMail(join(dir, "mail"), { ends, writes: may_migrate, refuseIfGone });
    const clocks = await openClocks(database.db, { wallMs, ...overrides });
    if (may_migrate) await markMissingBytes({ ...database, ...clocks, segments, log }, named);
    const secrets = await openMasterKey(
      { ...database, log },
      { configured: config.security.master_key, dir },
    );
    if (secrets.warning !== null) log.warn(secrets.warning);
    return { segments, database, clocks, secrets, lockGone };
  } catch (error) {
    throw folderFault(error, dir);
  }
}
