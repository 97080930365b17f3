import { mailCodeNow } from "./resources/accounts/codes.ts";
import { sumUpNow } from "./resources/accounts/untold.ts";
import type { App } from "./app.ts";
import { makeBackupNow, makeBackupsLater } from "./backup/schedule.ts";
import { closeCustomerNow } from "./resources/billing/cancel.ts";
import { catchUpLater, catchUpNow } from "./resources/billing/catch-up.ts";
import { mailNoticeNow } from "./resources/billing/notices.ts";
import { checkNow } from "./resources/domains/check.ts";
import { checkServiceKeysNow } from "./resources/domains/key-home.ts";
import { resumeInboxNow } from "./resources/inboxes/resume.ts";
import type { JobHandlers } from "./jobs/run-job.ts";
import { endOrphanMails, giveUpSending, sendNow } from "./mail/sending/outgoing.ts";
import { RELAY_CONNECTIONS } from "./mail/sending/send-relay.ts";
import { mailReturnsNow } from "./mail/sending/returns-letter.ts";
import { keepCertificateNow } from "./tls/keep.ts";
import { eraseDeletedNow } from "./operation/retention/deleted.ts";
import { eraseNow } from "./operation/retention/erase.ts";
import { eraseAccountNow } from "./operation/retention/erase-account.ts";
import { eraseRestNow } from "./operation/retention/erase-rest.ts";
import { purgeLater, purgeNow } from "./operation/retention/purge.ts";
import { deliverNow, giveUpDelivering } from "./resources/webhooks/endpoint-turns.ts";
import { fanOut, fanOutNow } from "./resources/webhooks/fan-out.ts";
import { atSending } from "./pipeline/at-sending.ts";
import { endOrphans, giveUpRun } from "./pipeline/fail.ts";
import { runNow } from "./pipeline/run.ts";
import { giveUpTelling, tellFailureNow } from "./pipeline/tell-failure.ts";

const MB = 1_048_576;

/**
 * Other people's mail servers are waited for long, and one that is slow must not cost the others their turn. What was queued
 * for delivery waits while outgoing mail is captured: it would else count as sent and go nowhere.
 */
const SENDING_SLOTS = { direct: 512, relay: RELAY_CONNECTIONS, capture: 0 };
/** Mails on their way at once to one domain: a slow one must not hold up the rest, nor one for which the relay is slow. */
const DOMAIN_SLOTS = { direct: 8, relay: RELAY_CONNECTIONS / 2, capture: 0 };
/** What the mails on their way may hold in memory: with large calls beside them they fit in two gigabytes. */
const SENDING_BYTES = 256 * MB;
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
    route_message: { run: runNow, giveUp: giveUpRun, lost: endOrphans, ...runRoom(app) },
    send_mail: {
      run: (to, job, signal) => sendNow(to, job, { signal, review: atSending }),
      giveUp: giveUpSending,
      lost: endOrphanMails,
      slots: SENDING_SLOTS[app.config.outbound.mode],
      target_slots: DOMAIN_SLOTS[app.config.outbound.mode],
      bytes: SENDING_BYTES,
    },
    tell_failure: { run: tellFailureNow, giveUp: giveUpTelling, slots: NOTICE_SLOTS },
    mail_code: { run: mailCodeNow, slots: CODE_SLOTS },
    erase_bytes: { run: eraseNow, slots: 1 },
    erase_rest: { run: eraseRestNow, slots: 1 },
    erase_messages: { run: eraseDeletedNow, slots: 1 },
    resume_inbox: { run: resumeInboxNow, slots: 1 },
    erase_account: { run: eraseAccountNow, slots: 1 },
    purge: { run: purgeNow, plan: purgeLater, slots: 1 },
    check_domain: { run: checkNow, slots: CHECKING_SLOTS },
    check_service_keys: { run: checkServiceKeysNow, slots: 1 },
    fan_out_event: { run: fanOutNow, giveUp: fanOut, slots: FAN_OUT_SLOTS },
    deliver_webhooks: { run: deliverNow, giveUp: giveUpDelivering, slots: ENDPOINT_SLOTS },
    mail_notice: { run: mailNoticeNow, slots: NOTICE_SLOTS },
    sum_up_notices: { run: sumUpNow, slots: NOTICE_SLOTS },
    mail_returns: { run: mailReturnsNow, slots: NOTICE_SLOTS },
    close_customer: { run: closeCustomerNow, slots: CLOSING_SLOTS },
    make_backup: { run: makeBackupNow, plan: makeBackupsLater, slots: 1 },
    keep_certificate: { run: keepCertificateNow, slots: 1 },
    catch_up_payments: { run: catchUpNow, plan: catchUpLater, slots: 1 },
  };
}

/** Who waits for a model does no work: what bounds the runs is the memory that they hold. */
function runRoom({ config }: App): { slots: number; bytes: number } {
  return { slots: config.routing.concurrency, bytes: config.routing.memory_mb * MB };
}
