import { statfs } from "node:fs/promises";
import type { App } from "../../app.ts";
import type { MessageState } from "../../db/schema.ts";
import type { Checks } from "../../http/health.ts";
import { heldKinds, restingKinds } from "../../jobs/holds.ts";
import { firstIdAt } from "../../lib/first-id.ts";
import { measureMail } from "../../db/missing-bytes.ts";
import { VERSION } from "../../lib/version.ts";
import { queueDepths } from "../../jobs/depths.ts";
import { cautionsOf } from "./warnings.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** Returns figures on the state of the server; `health` is what `/readyz` says. */
export async function readOverview(app: App, health: { checks: Checks; warnings: Checks }) {
  const { bavail, blocks, bsize } = await statfs(app.config.data.dir);
  const faults = Object.values(health.checks).filter((verdict) => verdict !== "ok");
  return {
    version: VERSION,
    uptime_seconds: Math.floor(process.uptime()),
    outbound_mode: app.config.outbound.mode,
    queue: await queueDepths(app),
    waiting: await dueWork(app),
    held: (await heldKinds(app.db)).map(({ kind }) => kind),
    memory_bytes: process.memoryUsage.rss(),
    answers: answerTimes(app),
    refusals: refusalsOf(app),
    disk: { free_bytes: bavail * bsize, total_bytes: blocks * bsize },
    mail_files: await measureMail(app),
    today: await countDay(app),
    warnings: [...faults, ...Object.values(health.warnings), ...cautionsOf(app.config)],
  };
}

/** Counts the jobs that could begin now, and how long the first of them has waited. */
async function dueWork(app: App) {
  const resting = [...(await restingKinds(app)).keys()];
  const { jobs, first_at } = await app.db
    .selectFrom("jobs")
    .select(({ fn }) => [fn.countAll<number>().as("jobs"), fn.min<number | null>("run_at").as("first_at")])
    .where("status", "=", "pending")
    .where("run_at", "<=", app.now())
    .where("kind", "not in", resting)
    .executeTakeFirstOrThrow();
  return { jobs, oldest_seconds: first_at === null ? 0 : app.now() - first_at };
}

/** Returns the durations of the last runs since the server was started. */
function answerTimes({ metrics }: App) {
  const sorted = metrics.lately("mailwright_route_seconds").toSorted((a, b) => a - b);
  const at = (share: number): number | null => sorted[Math.ceil(sorted.length * share) - 1] ?? null;
  return { counted: sorted.length, half_within_seconds: at(0.5), most_within_seconds: at(0.9) };
}

/** Returns the refusals by reason, the most frequent first. */
function refusalsOf({ metrics }: App) {
  return metrics
    .counted("mailwright_mails_refused_total")
    .map(({ labels, value }) => ({ reason: labels["reason"] ?? "other", mails: value }))
    .sort((a, b) => b.mails - a.mails);
}

/** Counts the work since midnight (UTC). */
async function countDay(app: App) {
  const from = firstIdAt(app.now() - (app.now() % DAY_SECONDS));
  const states = await app.db
    .selectFrom("messages")
    .select(({ fn }) => ["state", "source", fn.countAll<number>().as("n")])
    .where("id", ">=", from)
    .groupBy(["state", "source"])
    .execute();
  const mails = await app.db
    .selectFrom("outgoing_mails")
    .select(({ fn }) => ["status", fn.countAll<number>().as("n")])
    .where("id", ">=", from)
    .groupBy("status")
    .execute();
  const messages = (state: MessageState): number =>
    sumOf(states.filter((row) => row.state === state).map(({ n }) => n));
  const sent = new Map(mails.map(({ status, n }) => [status, n]));
  return {
    messages: {
      received: messages("received"),
      done: messages("done"),
      failed: messages("failed"),
      limited: messages("limited"),
      rejected: messages("rejected"),
      skipped: messages("skipped"),
    },
    mails_in: sumOf(states.filter(({ source }) => source === "email").map(({ n }) => n)),
    mails: {
      queued: sent.get("queued") ?? 0,
      sent: sent.get("sent") ?? 0,
      deferred: sent.get("deferred") ?? 0,
      bounced: sent.get("bounced") ?? 0,
      suppressed: sent.get("suppressed") ?? 0,
    },
  };
}

function sumOf(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
