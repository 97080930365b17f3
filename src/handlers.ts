import { mailCodeNow } from "./accounts/codes.ts";
import type { App } from "./app.ts";
import { closeCustomerNow } from "./billing/cancel.ts";
import { mailNoticeNow } from "./billing/notices.ts";
import { checkNow } from "./domains/check.ts";
import { eraseNow } from "./jobs/erase.ts";
import type { JobHandlers } from "./jobs/run-job.ts";
import { giveUpSending, sendNow } from "./mail/outgoing.ts";
import { deliverNow } from "./webhooks/deliver.ts";
import { fanOutNow } from "./webhooks/fan-out.ts";
import { giveUpRouting, routeNow } from "./routing/route.ts";

const SENDING_SLOTS = 16;
const CODE_SLOTS = 4;
const CHECKING_SLOTS = 4;
const FAN_OUT_SLOTS = 16;
/** Endpoints that are waited for at once: one that is slow costs a socket, and must not cost the others their turn. */
const ENDPOINT_SLOTS = 1_000;
const NOTICE_SLOTS = 4;
const CLOSING_SLOTS = 2;

/** What is done for each kind of job, and how many of a kind at once. */
export function jobHandlers(app: App): JobHandlers {
  return {
    route_message: { run: routeNow, giveUp: giveUpRouting, slots: app.config.routing.concurrency },
    send_mail: { run: sendNow, giveUp: giveUpSending, slots: SENDING_SLOTS },
    mail_code: { run: mailCodeNow, slots: CODE_SLOTS },
    erase_bytes: { run: eraseNow, slots: 1 },
    check_domain: { run: checkNow, slots: CHECKING_SLOTS },
    fan_out_event: { run: fanOutNow, slots: FAN_OUT_SLOTS },
    deliver_webhooks: { run: deliverNow, slots: ENDPOINT_SLOTS },
    mail_notice: { run: mailNoticeNow, slots: NOTICE_SLOTS },
    close_customer: { run: closeCustomerNow, slots: CLOSING_SLOTS },
  };
}
