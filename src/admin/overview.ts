import { statfs } from "node:fs/promises";
import type { App } from "../app.ts";
import type { Checks } from "../http/health.ts";
import { heldKinds } from "../jobs/holds.ts";
import { firstIdAt } from "../lib/first-id.ts";
import { VERSION } from "../version.ts";
import { queueDepths } from "./queue.ts";
import { cautionsOf } from "./warnings.ts";

const DAY_SECONDS = 86_400;

/** `health`: what `/readyz` says. */
export async function readOverview(app: App, health: { checks: Checks; warnings: Checks }) {
  const { bavail, blocks, bsize } = await statfs(app.config.data.dir);
  const faults = Object.values(health.checks).filter((verdict) => verdict !== "ok");
  return {
    version: VERSION,
    uptime_seconds: Math.floor(process.uptime()),
    outbound_mode: app.config.outbound.mode,
    queue: await queueDepths(app),
    held: (await heldKinds(app.db)).map(({ kind }) => kind),
    disk: { free_bytes: bavail * bsize, total_bytes: blocks * bsize },
    today: await countDay(app),
    warnings: [...faults, ...Object.values(health.warnings), ...cautionsOf(app.config)],
  };
}

/** Since midnight, UTC. */
async function countDay(app: App) {
  const from = firstIdAt(app.now() - (app.now() % DAY_SECONDS));
  const states = await app.db
    .selectFrom("messages")
    .select(({ fn }) => ["state", fn.countAll<number>().as("n")])
    .where("id", ">=", from)
    .groupBy("state")
    .execute();
  const mails = await app.db
    .selectFrom("outgoing_mails")
    .select(({ fn }) => ["status", fn.countAll<number>().as("n")])
    .where("id", ">=", from)
    .groupBy("status")
    .execute();
  const messages = new Map(states.map(({ state, n }) => [state, n]));
  const sent = new Map(mails.map(({ status, n }) => [status, n]));
  return {
    messages: {
      received: messages.get("received") ?? 0,
      done: messages.get("done") ?? 0,
      failed: messages.get("failed") ?? 0,
      limited: messages.get("limited") ?? 0,
      rejected: messages.get("rejected") ?? 0,
      skipped: messages.get("skipped") ?? 0,
    },
    mails: {
      queued: sent.get("queued") ?? 0,
      sent: sent.get("sent") ?? 0,
      deferred: sent.get("deferred") ?? 0,
      bounced: sent.get("bounced") ?? 0,
      suppressed: sent.get("suppressed") ?? 0,
    },
  };
}
