import { join } from "node:path";
import { GUARD, type Guard } from "./ai/guard.ts";
import { createMcpPool, type McpPool } from "./ai/mcp.ts";
import type { Config } from "./config.ts";
import { type Db, openDatabase, type Write } from "./db/database.ts";
import { migrateToLatest } from "./db/migrate.ts";
import type { JobWorker } from "./jobs/worker.ts";
import { createFileReader, type FileReader } from "./files/reader.ts";
import { createResolver, type Resolver } from "./lib/dns.ts";
import { createSafeFetch, type SafeFetch } from "./lib/net.ts";
import { createPoster, type Poster } from "./lib/poster.ts";
import { folderFault } from "./lib/start-faults.ts";
import { createNotifier, type Notifier } from "./lib/notifier.ts";
import { createRateLimiter, type RateLimiter } from "./lib/rate-limit.ts";
import { openSegments, type SegmentStore } from "./lib/segments.ts";
import type { Secrets } from "./lib/secrets.ts";
import { openMasterKey } from "./db/master-key.ts";
import { createLog, type Log } from "./log.ts";
import { type DkimKeys, loadDkimKeys } from "./mail/dkim.ts";
import { createMailParser, type MailParser } from "./mail/parse.ts";
import { createSender, type Sender } from "./mail/send.ts";

/** What only who waits for a private message is told. */
export interface PrivateAnswer {
  result: string;
  steps: object[];
}

/** Everything the parts share: built once, in `createApp`, and handed to every operation. */
export interface App extends AsyncDisposable {
  config: Config;
  /** Where people reach this server; from the listener until `server.base_url` says otherwise. */
  base_url: string;
  db: Db;
  write: Write;
  /** Takes what was deleted out of the database's log as well; see `Database`. */
  emptyLog: () => Promise<void>;
  /** For what is too large for the database; see `messages/stored-bytes.ts`. */
  segments: SegmentStore;
  /** Unix seconds. */
  now: () => number;
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  /** Seconds of a clock that nobody sets, good for this process only: a lease must not end because the time was corrected. */
  steadyNow: () => number;
  log: Log;
  secrets: Secrets;
  dkim: DkimKeys;
  resolver: Resolver;
  /** The only way out over HTTP: refuses private addresses unless `egress.allow` names them. */
  fetch: SafeFetch;
  /** The way out to webhook endpoints, whose exceptions are `webhooks.allow`. */
  poster: Poster;
  parser: MailParser;
  /** Reads the files of a message. */
  files: FileReader;
  /** What tools a run may use, and for what. */
  guard: Guard;
  /** Sessions with tool servers. */
  mcp: McpPool;
  sender: Sender;
  limiter: RateLimiter;
  /** Says the id of each message that reached its end, and its answer if that is kept nowhere. */
  finished: Notifier<PrivateAnswer>;
  /** Set by `serve`; a command line that only writes has none. */
  worker: JobWorker | undefined;
}

export interface AppOverrides {
  /** Another trust boundary, to show in a test what the real one keeps out. */
  guard?: Guard;
  nowMs?: () => number;
  log?: Log;
  /** The port of other people's mail servers, 25 but in tests. */
  smtp_port?: number;
  /** False beside a running server, which would not know the new schema. */
  may_migrate?: boolean;
}

export async function createApp(config: Config, overrides: AppOverrides = {}): Promise<App> {
  const nowMs = overrides.nowMs ?? Date.now;
  const log = overrides.log ?? createLog(config.log);
  const { segments, database, secrets } = await openStores(config, log, overrides.may_migrate ?? true);
  const resolver = createResolver({ servers: config.dns.servers });
  const parser = createMailParser();
  const files = createFileReader();
  const mcp = createMcpPool({ nowMs });
  const poster = createPoster({
    resolve: resolver,
    allow: config.webhooks.allow,
    setting: "webhooks.allow",
  });
  const sender = createSender({
    mode: config.outbound.mode,
    relay_url: config.outbound.relay_url,
    hostname: config.smtp.hostname,
    resolver,
    egress_allow: config.egress.allow,
    ...(overrides.smtp_port === undefined ? {} : { port: overrides.smtp_port }),
  });
  return {
    config,
    base_url: config.server.base_url,
    db: database.db,
    write: database.write,
    emptyLog: database.emptyLog,
    segments,
    now: () => Math.floor(nowMs() / 1_000),
    nowMs,
    steadyNow: () => Math.floor((overrides.nowMs ?? performance.now.bind(performance))() / 1_000),
    log,
    secrets,
    dkim: await loadDkimKeys(config.data.dir),
    resolver,
    fetch: createSafeFetch({ resolve: resolver, allow: config.egress.allow }),
    poster,
    parser,
    files,
    guard: overrides.guard ?? GUARD,
    mcp,
    sender,
    limiter: createRateLimiter(nowMs),
    finished: createNotifier<PrivateAnswer>(),
    worker: undefined,
    async [Symbol.asyncDispose]() {
      await parser[Symbol.asyncDispose]();
      await files[Symbol.asyncDispose]();
      await mcp[Symbol.asyncDispose]();
      await sender[Symbol.asyncDispose]();
      poster[Symbol.dispose]();
      await database[Symbol.asyncDispose]();
      await segments[Symbol.asyncDispose]();
    },
  };
}

/** What the data folder holds: the database brought up to date, the segments and the master key. */
async function openStores(config: Config, log: Log, may_migrate: boolean) {
  const { dir } = config.data;
  try {
    const segments = await openSegments(join(dir, "mail"));
    const warn = (problem: string): void =>
      log.warn({ problem }, "the database log cannot be copied back yet; trying again");
    const database = openDatabase(config.database.url, warn, () => segments.flush());
    const migrated = await migrateToLatest(database.db, may_migrate);
    if (migrated.length > 0) log.debug({ migrations: migrated }, "database migrated");
    const secrets = await openMasterKey(database, { configured: config.security.master_key, dir });
    if (secrets.warning !== null) log.warn(secrets.warning);
    return { segments, database, secrets };
  } catch (error) {
    throw folderFault(error, dir);
  }
}
