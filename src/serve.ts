import { statfs } from "node:fs/promises";
import { type App, type AppOverrides, createApp } from "./app.ts";
import { releaseDeadReserves } from "./billing/sweep.ts";
import { type Config, unusedSettings } from "./config.ts";
import { lockDataFolder, tryWriting } from "./db/database.ts";
import { AppError, messageOf } from "./errors.ts";
import { keepRateLimits } from "./db/rate-limits.ts";
import { jobHandlers } from "./handlers.ts";
import type { Checks } from "./http/health.ts";
import { type HttpDoor, startHttp } from "./http/server.ts";
import { voidLeases } from "./jobs/queue.ts";
import { createWorker } from "./jobs/worker.ts";
import { startSmtp } from "./smtp/listener.ts";

/** Below this a mail of the largest size would not fit. */
const MIN_FREE_BYTES = 64 * 1_048_576;
/** How long a stop lets calls over HTTP wait for their result, and then how long for their answers to go out. */
const CALLS_MS = 5_000;
const ANSWERS_MS = 2_000;

/** A command line that makes an account holds the folder for a moment. */
const COMMAND_LINE_MS = 2_000;

export interface Server extends AsyncDisposable {
  app: App;
  /** `http://host:port`. */
  http: string;
  /** `host:port`; null when `smtp.listen` is empty. */
  smtp: string | null;
}

/** Starts the whole server over one data folder. Disposing it drains the work in progress. */
export async function serve(config: Config, overrides: AppOverrides = {}): Promise<Server> {
  await using started = new AsyncDisposableStack();
  const lock = lockDataFolder(config.data.dir, COMMAND_LINE_MS);
  if (!lock) throw inUse(config);
  started.use(lock);
  const app = started.use(await createApp(config, overrides));
  // Before any door opens: from then on a lease may belong to this process.
  await app.write(voidLeases);
  const dead = await app.write((tx) => releaseDeadReserves(app, tx));
  if (dead > 0) app.log.warn({ credits: dead }, "credits of runs that will never end were given back");
  const unused = unusedSettings(config);
  if (unused.length > 0)
    app.log.warn({ settings: unused }, "these settings have no effect in this version yet");
  for (const caution of cautionsOf(config)) app.log.warn(caution);
  started.use(
    await keepRateLimits(app, (error) =>
      app.log.warn({ err: messageOf(error) }, "rate limits were not saved"),
    ),
  );
  app.worker = createWorker(app, jobHandlers(app));
  // Disposed in reverse: first nothing new comes in, then the work in progress ends, then the database closes.
  started.use(app.worker);
  const doors = { smtp: null as string | null };
  const http = await startHttp(app, { ready: () => readiness(app, doors) });
  started.defer(() => closeHttp(app, http));
  app.base_url ||= http.url.replace("0.0.0.0", "localhost");
  const smtp = started.use(await startSmtp(app));
  doors.smtp = smtp.address;
  app.worker.start();
  app.log.info({ http: http.url, smtp: smtp.address }, "ready");
  const running = started.move();
  return { app, http: http.url, smtp: smtp.address, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** What is allowed, and yet seldom meant on a server that others write to. */
function cautionsOf({ outbound, smtp }: Config): string[] {
  const nameless = `smtp.hostname is "${smtp.hostname}", which is no public name: other servers will refuse mail from it, and custom domains cannot point to it. Set it to the name that your MX record points to.`;
  return [
    ...(outbound.mode === "capture" ? [CAPTURED] : []),
    ...(outbound.mode !== "capture" && !smtp.hostname.includes(".") ? [nameless] : []),
  ];
}

const CAPTURED =
  'outbound.mode is "capture": replies and login codes are kept here, and nothing leaves this machine';

/** Calls that wait for a result get a while for it; then they are told where it will be, and the run goes on. */
async function closeHttp(app: App, http: HttpDoor): Promise<void> {
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
    database: await writable(app),
    smtp: !wanted || doors.smtp !== null ? "ok" : "the SMTP listener is not up yet",
    disk: await diskSpace(app),
  };
}

async function writable(app: App): Promise<string> {
  try {
    await app.write(tryWriting);
    return "ok";
  } catch (error) {
    return `the database cannot be written: ${messageOf(error)}`;
  }
}

async function diskSpace(app: App): Promise<string> {
  const { bavail, bsize } = await statfs(app.config.data.dir);
  const free = bavail * bsize;
  return free >= MIN_FREE_BYTES
    ? "ok"
    : `only ${Math.floor(free / 1_048_576)} MB are free in ${app.config.data.dir}`;
}

function inUse(config: Config): AppError {
  return new AppError("unavailable", `Another Mailwright is running on the data folder ${config.data.dir}.`, {
    fix: "Stop it first, or give this one a folder of its own with data.dir.",
  });
}
