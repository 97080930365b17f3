import type { App } from "../app.ts";

/** Returns how many jobs of each kind and state there are, and for how many seconds the oldest due one has waited. */
export async function queueDepths(app: App) {
  const rows = await app.db
    .selectFrom("jobs")
    .select(({ fn }) => ["kind", "status", fn.countAll<number>().as("jobs"), fn.min("run_at").as("first_at")])
    .groupBy(["kind", "status"])
    .orderBy("kind")
    .execute();
  return rows.map(({ kind, status, jobs, first_at }) => ({
    kind,
    status,
    jobs,
    oldest_seconds: status === "pending" ? Math.max(0, app.now() - first_at) : 0,
  }));
}
