import { mailCodeNow } from "./accounts/codes.ts";
import type { App } from "./app.ts";
import { checkNow } from "./domains/check.ts";
import { eraseNow } from "./jobs/erase.ts";
import type { JobHandlers } from "./jobs/run-job.ts";
import { giveUpSending, sendNow } from "./mail/outgoing.ts";
import { giveUpRouting, routeNow } from "./routing/route.ts";

const SENDING_SLOTS = 16;
const CODE_SLOTS = 4;
const CHECKING_SLOTS = 4;

/** What is done for each kind of job, and how many of a kind at once. */
export function jobHandlers(app: App): JobHandlers {
  return {
    route_message: { run: routeNow, giveUp: giveUpRouting, slots: app.config.routing.concurrency },
    send_mail: { run: sendNow, giveUp: giveUpSending, slots: SENDING_SLOTS },
    mail_code: { run: mailCodeNow, slots: CODE_SLOTS },
    erase_bytes: { run: eraseNow, slots: 1 },
    check_domain: { run: checkNow, slots: CHECKING_SLOTS },
  };
}
