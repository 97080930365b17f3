import { statfs } from "node:fs/promises";
import { Elysia } from "elysia";
import { queueDepths } from "../jobs/depths.ts";
import type { App } from "../app.ts";
import { splitListen } from "../config/forms.ts";
import { AppError } from "../errors.ts";
import { heldKinds } from "../jobs/holds.ts";
import { equalBytes } from "../lib/secrets.ts";
import { listenFault } from "../lib/start-faults.ts";
import { type Reading, reading } from "../metrics.ts";
import { answerWithoutHost } from "./request.ts";

const PATH = "/metrics";

/** Serves /metrics on the main listener to clients that send `metrics.token`. */
export function metricsRoutes(app: App) {
  return new Elysia().get(PATH, async ({ request }) => {
    if (!knowsToken(app, request))
      throw new AppError("unauthorized", "The figures are for those who know metrics.token.", {
        fix: "Send it as the header Authorization: Bearer <token>.",
      });
    return figures(app);
  });
}

interface MetricsDoor extends AsyncDisposable {
  /** URL of the metrics; null when `metrics.listen` is off. */
  url: string | null;
}

/** Opens `metrics.listen`, which serves only the metrics. */
export function openMetricsDoor(app: App): MetricsDoor {
  const { listen: value } = app.config.metrics;
  const listen = splitListen(value);
  if (!listen) return { url: null, [Symbol.asyncDispose]: () => Promise.resolve() };
  try {
    const server = Bun.serve({
      hostname: listen.host,
      port: listen.port,
      development: false,
      fetch: (request) => answerWithoutHost(request) ?? answer(app, request),
    });
    const url = `http://${listen.host}:${server.port}${PATH}`;
    app.log.info({ metrics: url }, "figures can be fetched");
    return { url, [Symbol.asyncDispose]: () => server.stop(true) };
  } catch (error) {
    throw listenFault(error, { setting: "metrics.listen", value });
  }
}

async function answer(app: App, request: Request): Promise<Response> {
  if (new URL(request.url).pathname !== PATH)
    return new Response("There is only /metrics here.\n", { status: 404 });
  if (app.config.metrics.token !== "" && !knowsToken(app, request))
    return new Response("This needs Authorization: Bearer and metrics.token.\n", {
      status: 401,
      headers: { "www-authenticate": 'Bearer realm="mailwright"' },
    });
  return figures(app);
}

function knowsToken(app: App, request: Request): boolean {
  const given = /^Bearer +(\S.*)$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  return given !== "" && equalBytes(given.trim(), app.config.metrics.token);
}

async function figures(app: App): Promise<Response> {
  const { text, content_type } = await app.metrics.render([
    ...(await queueReadings(app)),
    ...(await diskReadings(app)),
  ]);
  return new Response(text, { headers: { "content-type": content_type, "cache-control": "no-store" } });
}

/** Reads the queue's state from its table, so that changes by other processes count. */
async function queueReadings(app: App): Promise<Reading[]> {
  const depths = await queueDepths(app);
  const held = await heldKinds(app.db);
  return [
    reading(
      "mailwright_queue_jobs",
      "Jobs in the queue.",
      depths.map(({ kind, status, jobs }) => ({ labels: { kind, status }, value: jobs })),
    ),
    reading(
      "mailwright_queue_oldest_seconds",
      "For how long the job that is due first has been due.",
      depths
        .filter(({ status }) => status === "pending")
        .map(({ kind, oldest_seconds }) => ({ labels: { kind }, value: oldest_seconds })),
    ),
    reading(
      "mailwright_queue_held",
      "Kinds of jobs that the operator holds.",
      held.map(({ kind }) => ({ labels: { kind }, value: 1 })),
    ),
  ];
}

async function diskReadings(app: App): Promise<Reading[]> {
  const { bavail, bsize } = await statfs(app.config.data.dir);
  const free = [{ labels: {}, value: bavail * bsize }];
  return [reading("mailwright_disk_free_bytes", "Free where the data folder is.", free)];
}
