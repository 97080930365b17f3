import type { App } from "./app.ts";
import type { JobHandlers } from "./jobs/run-job.ts";
import { giveUpSending, sendNow } from "./mail/outgoing.ts";
import { giveUpRouting, routeNow } from "./routing/route.ts";

const SENDING_SLOTS = 16;

/** What is done for each kind of job, and how many of a kind at once. */
export function jobHandlers(app: App): JobHandlers {
  return {
    route_message: { run: routeNow, giveUp: giveUpRouting, slots: app.config.routing.concurrency },
    send_mail: { run: sendNow, giveUp: giveUpSending, slots: SENDING_SLOTS },
  };
}
