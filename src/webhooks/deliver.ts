import type { App } from "../app.ts";
import { finishJob, type Job } from "../jobs/queue.ts";

/** Makes the attempts that are due at one endpoint. */
export async function deliverNow(
  app: App,
  job: Job<"deliver_webhooks">,
  _signal: AbortSignal,
): Promise<void> {
  await app.write((tx) => finishJob(tx, job));
}
