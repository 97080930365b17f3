import { purgeLater } from "../../src/operation/retention/purge.ts";
import type { TestApp } from "./app.ts";

/** Lets some days go by, and has deleted what has been kept for long enough then. */
export async function pass(t: TestApp, days: number): Promise<void> {
  t.clock.advance(`${days}d`);
  await purge(t);
}

export async function purge(t: TestApp): Promise<void> {
  await t.app.write((tx) => purgeLater(t.app, tx));
  await t.app.db.updateTable("jobs").set({ run_at: t.app.now() }).where("kind", "=", "purge").execute();
  await t.drain();
}
