import type { App } from "../../src/app.ts";

/**
 * Forgets what the owner would be mailed within the hour about the key of a test: that it has listed a sender, or made a webhook. A
 * test that counts letters an hour later is about others.
 */
export async function forgetNotices(app: App): Promise<void> {
  await app.db.deleteFrom("jobs").where("kind", "=", "sum_up_notices").execute();
}
