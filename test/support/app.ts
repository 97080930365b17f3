import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApiKey } from "../../src/resources/accounts/api-keys.ts";
import { createVerifiedUser, type User } from "../../src/resources/accounts/accounts.ts";
import { type App, type AppOverrides, createApp } from "../../src/app.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { createFileReader } from "../../src/files/reader.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { openApiOf } from "../../src/http/openapi.ts";
import { createHttp } from "../../src/api.ts";
import { createWorker } from "../../src/jobs/worker.ts";
import { createLog } from "../../src/lib/log.ts";
import { createThreadsBySize } from "../../src/lib/threads-by-size.ts";
import { createFairPool } from "../../src/lib/fair-pool.ts";
import { createMailParser } from "../../src/mail/reading/parse.ts";
import type { Examination, MailToExamine } from "../../src/inbound/examine.ts";
import { type SmtpDoor, startSmtp } from "../../src/smtp/listener.ts";
import { type Contract, contractOf } from "./contract.ts";
import { layKeys, spareKey } from "./keys.ts";
import { migratedImage } from "./migrated-image.ts";
import "./savings.ts";
import { testConfig } from "./test-config.ts";

/** One for all tests of a process: the document does not depend on the configuration. */
let contract: Contract | undefined;

/** What reads mails and files takes as long to start as ten servers, and stays as long as the tests of a process. */
const KEPT = { idle_ms: 3_600_000 };
/** It keeps nothing of what it has read. */
const readers = {
  examiner: createThreadsBySize<MailToExamine, Examination>("inbound/examine-worker.ts"),
  parser: createMailParser(KEPT),
  files: createFileReader(KEPT),
  texts: createFairPool<unknown>("pipeline/text-worker.ts", { size: 3, ...KEPT }),
  bodies: createFairPool<unknown>("http/call-body-worker.ts", KEPT),
};

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export interface Clock {
  /** Milliseconds since the epoch; stands still but for `advance`. */
  now: () => number;
  /** How much time has passed, whatever the clock was set to. */
  steady: () => number;
  /** `advance("5m")`: ms, s, m, h or d. */
  advance(span: string): void;
  /** Sets it to another time: `leap("9d")`, or back with `leap("-5h")`. */
  leap(span: string): void;
}

export interface Answer {
  status: number;
  headers: Headers;
  // Tests read whatever the server said; each says itself what it expects there.
  // oxlint-disable-next-line typescript/no-explicit-any
  body: any;
}

export interface Caller {
  user: User;
  key: string;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
}

export interface TestApp extends AsyncDisposable {
  app: App;
  clock: Clock;
  /** Makes a verified account with a key of its own and speaks for it. */
  as(email: string): Promise<Caller>;
  /** A request as it is, without any credential. */
  request(path: string, init?: RequestInit): Promise<Answer>;
  /** Runs due jobs, and what they make due, to the end. */
  drain(): Promise<void>;
  /** Opens the SMTP door on a free port; it closes with the app. */
  smtp(): Promise<{ host: string; port: number }>;
}

/** The whole server over a fresh database in memory, without listening on HTTP. */
export async function testApp(
  overrides: ConfigOverrides = {},
  parts: Pick<AppOverrides, "smtp_port" | "guard" | "ca" | "metrics" | "refuseIntake"> = {},
): Promise<TestApp> {
  await using built = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "mailwright-test-"));
  built.defer(() => rm(dir, { recursive: true, force: true }));
  await layKeys(dir);
  const clock = testClock();
  const config = testConfig(
    {
      ...overrides,
      database: { url: "sqlite::memory:", ...overrides.database },
      smtp: {
        listen: "127.0.0.1:0",
        domain: "mw.test",
        hostname: "mx.mw.test",
        early_talker_ms: 0,
        ...overrides.smtp,
      },
      security: { master_key: Buffer.alloc(32, 7).toString("base64"), ...overrides.security },
      // What a run costs shows in numbers; a test of accounts without a cap says so.
      plans: { ...overrides.plans, team: { credits: 10_000, ...overrides.plans?.team } },
    },
    dir,
  );
  const log = createLog({ level: process.env["TEST_LOG"] ?? "silent", format: "text" });
  const app = built.use(
    await createApp(config, {
      nowMs: clock.now,
      steadyMs: clock.steady,
      log,
      image: await migratedImage(),
      threads: readers,
      makeDkimKey: spareKey,
      ...parts,
    }),
  );
  app.listensAt("http://mw.test");
  const worker = built.use(createWorker(app, jobHandlers(app)));
  setWorker(app, worker);
  const http = createHttp(app, { ready: async () => ({ database: "ok" }) });
  const request = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await http.handle(new Request(`http://mw.test${path}`, init));
    const content_type = response.headers.get("content-type") ?? "";
    // One that goes on is tried in tests of its own.
    const endless = content_type.startsWith("text/event-stream");
    if (endless) await response.body?.cancel();
    const text = endless ? "" : await response.text();
    const { status, headers } = response;
    const body = content_type.includes("json") ? JSON.parse(text) : text;
    contract ??= contractOf(openApiOf(http.routes));
    contract.check({ method: init.method ?? "GET", path, status, content_type, body });
    return { status, headers, body };
  };
  let door: SmtpDoor | undefined;
  const stack = built.move();
  return {
    app,
    clock,
    request,
    as: (email) => caller(app, email, request),
    drain: () => worker.drain(),
    async smtp() {
      door ??= stack.use(await startSmtp(app));
      const [host = "", port = ""] = (door.address ?? "").split(":");
      return { host, port: Number(port) };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Has another worker do the jobs, or none. */
export function setWorker(app: App, worker: App["worker"]): void {
  Object.assign(app, { worker });
}

async function caller(app: App, email: string, request: TestApp["request"]): Promise<Caller> {
  const user = await createVerifiedUser(app, { email });
  const { key } = await createApiKey(app, { email });
  const send =
    (method: string) =>
    (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      request(path, {
        method,
        headers: {
          "x-api-key": key,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
  return {
    user,
    key,
    get: (path, headers) => send("GET")(path, undefined, headers),
    post: send("POST"),
    patch: send("PATCH"),
    delete: send("DELETE"),
  };
}

function testClock(): Clock {
  const begin = Date.UTC(2026, 0, 15, 12);
  let steady = begin;
  let set_by = 0;
  return {
    now: () => steady + set_by,
    steady: () => steady,
    advance: (span) => void (steady += msOf(span)),
    leap: (span) => void (set_by += msOf(span)),
  };
}

function msOf(span: string): number {
  const [, amount = "", unit = ""] = /^(-?\d+)(ms|s|m|h|d)$/.exec(span) ?? [];
  return Number(amount) * (UNITS[unit] ?? Number.NaN);
}
