import type { App } from "../app.ts";
import type { MessageRow } from "../db/schema.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import { failMessage, type Failure } from "./fail.ts";

/** How a message ends whose API key was revoked before its work was done. */
export const KEY_REVOKED: Failure = {
  reason: "key_revoked",
  error:
    "The API key that asked for it was revoked before it was done, and nothing was charged. Who has signed in, or has a key, can try it again: it is theirs then.",
};

/** Ends a message whose API key was revoked while it waited; false for any other. */
export async function endWithoutKey(
  app: App,
  job: Job<"route_message">,
  message: MessageRow,
): Promise<boolean> {
  if (!(await isKeyRevoked(app.db, message))) return false;
  await app.write(async (tx) => {
    await finishJob(tx, job);
    await failMessage(app, tx, job, KEY_REVOKED);
  });
  return true;
}
