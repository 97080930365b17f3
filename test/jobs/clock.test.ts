import { expect, test } from "bun:test";
import type { App } from "../../src/app.ts";
import type { Db } from "../../src/db/database.ts";
import { jobHandlers } from "../../src/operation/jobs.ts";
import { planAtStart, watchClock } from "../../src/jobs/clock.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "../../src/jobs/kinds.ts";
import { enqueue } from "../../src/jobs/queue.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";

const TEN_YEARS = 3_650 * DAY_SECONDS;
const KINDS = Object.keys(JOB_RULES) as JobKind[];
/** One a month, which may rightly lie weeks ahead. */
const BACKUP = { schedule: "30 3 1 * *" };
const NEXT_BACKUP = Date.UTC(2026, 1, 1, 3, 30) / 1_000;
/** What has another key than the name of its kind. */
const KEYS: Partial<Record<JobKind, string>> = { check_domain: "check_domain:1", mail_returns: "returns 1" };

/** A server that has a job of each kind, with a key that keeps others like it away, and takes payments. */
async function room(): Promise<TestApp & { jobs: () => Promise<Record<string, number>> }> {
  const t = await testApp({
    backup: BACKUP,
    billing: { stripe_secret_key: "sk_test_1", stripe_webhook_secret: "whsec_1" },
  });
  await t.app.write(async (tx) => {
    for (const kind of KINDS) await plan(t.app, tx, kind);
  });
  return {
    ...t,
    async jobs() {
      const rows = await t.app.db.selectFrom("jobs").select(["kind", "run_at"]).execute();
      expect(rows).toHaveLength(KINDS.length);
      return Object.fromEntries(rows.map(({ kind, run_at }) => [kind, run_at - t.app.now()]));
    },
  };
}

async function plan(app: App, tx: Db, kind: JobKind): Promise<void> {
  const payload = (kind === "make_backup" ? BACKUP : {}) as JobPayloads[JobKind];
  const run_at = app.now() + TEN_YEARS;
  await enqueue(app, tx, { kind, payload, run_at, dedupe_key: KEYS[kind] ?? kind });
}

test("of what a wrong clock has put off for years nothing waits any more after the next start", async () => {
  await using t = await room();
  await t.app.write((tx) => planAtStart(t.app, tx, jobHandlers(t.app)));
  // That of a schedule is planned by its schedule, of which there is none.
  const { make_backup, run_schedule: _, ...others } = await t.jobs();
  expect(Math.max(...Object.values(others))).toBeLessThan(3_600);
  expect(make_backup).toBe(NEXT_BACKUP - t.app.now());
});

test("of what a wrong clock has put off nothing waits once the clock is set back while the server runs, and no backup is made for it", async () => {
  await using t = await room();
  let passed = 0;
  const app = { ...t.app, steadyNow: () => t.app.steadyNow() + passed };
  const look = watchClock(app, jobHandlers(app));
  await look();
  expect(Math.min(...Object.values(await t.jobs()))).toBe(TEN_YEARS);
  passed = TEN_YEARS;
  await look();
  // That of a schedule is planned by its schedule, of which there is none.
  const { make_backup, run_schedule: _, ...others } = await t.jobs();
  expect(Math.max(...Object.values(others))).toBeLessThan(3_600);
  expect(make_backup).toBe(NEXT_BACKUP - t.app.now());
});

test("a start changes nothing of what waits for its time", async () => {
  await using t = await room();
  await t.app.write((tx) => planAtStart(t.app, tx, jobHandlers(t.app)));
  const before = await t.jobs();
  await t.app.db
    .updateTable("jobs")
    .set({ run_at: t.app.now() + DAY_SECONDS })
    .where("kind", "=", "send_mail")
    .execute();
  await t.app.write((tx) => planAtStart(t.app, tx, jobHandlers(t.app)));
  expect(await t.jobs()).toEqual({ ...before, send_mail: DAY_SECONDS });
});
