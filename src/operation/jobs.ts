import { mailCodeNow } from "../resources/accounts/codes.ts";
import { sumUpNow } from "../resources/accounts/untold.ts";
import type { App } from "../app.ts";
import { makeBackupNow, makeBackupsLater } from "../backup/schedule.ts";
import { closeCustomerNow } from "../resources/billing/cancel.ts";
import { catchUpLater, catchUpNow } from "../resources/billing/catch-up.ts";
import { mailNoticeNow } from "../resources/billing/notices.ts";
import { checkNow } from "../resources/domains/check.ts";
import { checkServiceKeysNow } from "../resources/domains/key-home.ts";
import { resumeInboxNow } from "../resources/inboxes/resume.ts";
import { JOB_KINDS, type JobKind, type JobPayloads } from "../jobs/kinds.ts";
import { DAMAGED_PAYLOAD, type Job, payloadOf } from "../jobs/queue.ts";
import type { JobHandler, JobHandlers } from "../jobs/run-job.ts";
import type { Db } from "../db/database.ts";
import type { JobRow } from "../db/schema.ts";
import { dropPending } from "../resources/webhooks/pending.ts";
import {
  type About,
  aboutAccount,
  aboutDomain,
  aboutEndpoint,
  aboutEvent,
  aboutFailure,
  aboutMessage,
  aboutNotice,
  aboutOutgoing,
  aboutSchedule,
  ofNobody,
} from "./about.ts";
import { retryInPlace, mailAgain, refuseRetry, type Revive, runAgain } from "./revive.ts";
import { dropSending, endOrphanMails, giveUpSending, sendNow } from "../mail/sending/outgoing.ts";
import { RELAY_CONNECTIONS } from "../mail/sending/send-relay.ts";
import { mailReturnsNow } from "../mail/sending/returns-letter.ts";
import { keepCertificateNow } from "../tls/keep.ts";
import { eraseDeletedNow } from "./retention/deleted.ts";
import { eraseNow } from "./retention/erase.ts";
import { eraseAccountNow } from "./retention/erase-account.ts";
import { eraseRestNow } from "./retention/erase-rest.ts";
import { purgeLater, purgeNow } from "./retention/purge.ts";
import { deliverNow, giveUpDelivering } from "../resources/webhooks/endpoint-turns.ts";
import { fanOut, fanOutNow } from "../resources/webhooks/fan-out.ts";
import { atSending } from "../pipeline/at-sending.ts";
import { DROPPED_REASON, dropRun, type Ended, endOrphans, giveUpRun } from "../pipeline/fail.ts";
import { runNow } from "../pipeline/run.ts";
import { dropReplay, endLostReplays, giveUpReplay, replayNow } from "../pipeline/replay.ts";
import { settleForwardNow } from "../pipeline/forward.ts";
import { settleLostNow } from "../resources/schedules/lost-answer.ts";
import { planSchedules } from "../resources/schedules/plan-all.ts";
import { giveUpSchedule, runScheduleNow } from "../resources/schedules/run-due.ts";
import { dropTelling, giveUpTelling, tellFailureNow } from "../pipeline/tell-failure.ts";
import { MB } from "../lib/sizes.ts";

/**
 * Mails sent at once. Waiting for other mail servers takes long, and a slow one must not delay mail to others. While
 * outgoing mail is captured, mail queued for delivery waits: otherwise it would be marked as sent without going
 * anywhere.
 */
const SENDING_SLOTS = { direct: 512, relay: RELAY_CONNECTIONS, capture: 0 };
/** Mails sent at once to one domain, so that a slow one does not delay mail to others. */
const DOMAIN_SLOTS = { direct: 8, relay: RELAY_CONNECTIONS / 2, capture: 0 };
/** Memory for mails being sent; beside it, large API calls still fit in two gigabytes. */
const SENDING_BYTES = 256 * MB;
const CODE_SLOTS = 4;
const CHECKING_SLOTS = 4;
const FAN_OUT_SLOTS = 16;
/** Endpoints contacted at once: waiting for a slow one costs a socket, and must not delay the others. */
const ENDPOINT_SLOTS = 1_000;
const NOTICE_SLOTS = 4;
const CLOSING_SLOTS = 2;
const SCHEDULE_SLOTS = 4;
const REPLAY_SLOTS = 4;
const ONE = { slots: 1 };

/** A job that the operator takes out of the queue. */
type Dropped<K extends JobKind> = Pick<Job<K>, "payload" | "share">;

/**
 * Records what dropping a job means for its messages, with the operator's reason. Returns the messages that it ends.
 */
type Drop<K extends JobKind> = (
  app: App,
  tx: Db,
  job: Dropped<K>,
  words: string,
) => Promise<Ended[] | undefined | void>;

/** Everything about one kind of job except its rules, which are in `JOB_RULES`. */
interface JobUse<K extends JobKind> extends Omit<JobHandler<K>, "slots" | "bytes" | "target_slots"> {
  /** How many run at once, and in how much memory. */
  room: Room | ((app: App) => Room);
  about: (db: Db, payload: JobPayloads[K]) => Promise<About>;
  /** Null for a job that must not be dropped, because something would stay half done. */
  drop: Drop<K> | null;
  /** How to drop a job with a damaged payload: what it was for is among the rows that have no job. */
  drop_lost?: Drop<K>;
  /** Starts a job again that was given up. */
  revive: Revive;
}

type Room = Pick<JobHandler<JobKind>, "slots" | "bytes" | "target_slots">;

/** For work that would stay half done if it were dropped. */
const MUST_BE_DONE = { drop: null, revive: retryInPlace } as const;

/** One row for each kind of job, in the order of `JOB_RULES`. */
const JOBS: { [K in JobKind]: JobUse<K> } = {
  route_message: {
    run: runNow,
    giveUp: giveUpRun,
    lost: endOrphans,
    // Runs mostly wait for models; what limits them is the memory that they hold.
    room: ({ config: { routing } }) => ({ slots: routing.concurrency, bytes: routing.memory_mb * MB }),
    about: aboutMessage,
    drop: dropRun,
    drop_lost: (app, tx, job, error) => endOrphans(app, tx, job, { reason: DROPPED_REASON, error }),
    revive: runAgain,
  },
  send_mail: {
    run: (to, job, signal) => sendNow(to, job, { signal, review: atSending }),
    giveUp: giveUpSending,
    lost: endOrphanMails,
    room: ({ config: { outbound } }) => ({
      slots: SENDING_SLOTS[outbound.mode],
      target_slots: DOMAIN_SLOTS[outbound.mode],
      bytes: SENDING_BYTES,
    }),
    about: aboutOutgoing,
    drop: dropSending,
    drop_lost: (app, tx, job, response) => endOrphanMails(app, tx, job, { status: "suppressed", response }),
    revive: mailAgain,
  },
  settle_forward: {
    run: settleForwardNow,
    room: { slots: NOTICE_SLOTS },
    about: aboutOutgoing,
    ...MUST_BE_DONE,
  },
  settle_lost: {
    run: settleLostNow,
    room: { slots: NOTICE_SLOTS },
    about: aboutOutgoing,
    ...MUST_BE_DONE,
  },
  tell_failure: {
    run: tellFailureNow,
    giveUp: giveUpTelling,
    room: { slots: NOTICE_SLOTS },
    about: aboutFailure,
    drop: dropTelling,
    revive: retryInPlace,
  },
  check_domain: {
    run: checkNow,
    room: { slots: CHECKING_SLOTS },
    about: aboutDomain,
    ...MUST_BE_DONE,
  },
  check_service_keys: {
    run: checkServiceKeysNow,
    room: ONE,
    about: ofNobody("look for the records of the server's own DKIM keys"),
    ...MUST_BE_DONE,
  },
  mail_code: {
    run: mailCodeNow,
    room: { slots: CODE_SLOTS },
    about: async (_db, { email }) => ({ about: `mail a login code to ${email}`, account: email }),
    drop: nothing,
    revive: retryInPlace,
  },
  erase_bytes: {
    run: eraseNow,
    room: ONE,
    about: ofNobody("erase what was deleted"),
    ...MUST_BE_DONE,
  },
  erase_rest: {
    run: eraseRestNow,
    room: ONE,
    about: ofNobody("erase what is left of a deleted inbox or webhook"),
    ...MUST_BE_DONE,
  },
  replay_message: {
    run: replayNow,
    giveUp: giveUpReplay,
    lost: endLostReplays,
    room: { slots: REPLAY_SLOTS },
    about: (db, { message_id }) => aboutMessage(db, { message_id }),
    drop: dropReplay,
    drop_lost: endLostReplays,
    revive: refuseRetry,
  },
  erase_messages: {
    run: eraseDeletedNow,
    room: ONE,
    about: (db, { user_id }) => aboutAccount(db, user_id, "erase messages that were deleted"),
    ...MUST_BE_DONE,
  },
  resume_inbox: {
    run: resumeInboxNow,
    room: ONE,
    about: ofNobody("go on with what waited for an inbox"),
    ...MUST_BE_DONE,
  },
  erase_account: {
    run: eraseAccountNow,
    room: ONE,
    about: ofNobody("erase what is left of a deleted account"),
    ...MUST_BE_DONE,
  },
  purge: {
    run: purgeNow,
    plan: purgeLater,
    room: ONE,
    about: ofNobody("take away what was kept for long enough"),
    ...MUST_BE_DONE,
  },
  fan_out_event: {
    run: fanOutNow,
    giveUp: fanOut,
    room: { slots: FAN_OUT_SLOTS },
    about: aboutEvent,
    drop: nothing,
    revive: refuseRetry,
  },
  deliver_webhooks: {
    run: deliverNow,
    giveUp: giveUpDelivering,
    room: { slots: ENDPOINT_SLOTS },
    about: aboutEndpoint,
    drop: dropPending,
    revive: refuseRetry,
  },
  mail_notice: {
    run: mailNoticeNow,
    room: { slots: NOTICE_SLOTS },
    about: aboutNotice,
    drop: nothing,
    revive: retryInPlace,
  },
  sum_up_notices: {
    run: sumUpNow,
    room: { slots: NOTICE_SLOTS },
    about: (db, { user_id }) =>
      aboutAccount(db, user_id, "tell the owner how much more was done to the account"),
    drop: nothing,
    revive: retryInPlace,
  },
  mail_returns: {
    run: mailReturnsNow,
    room: { slots: NOTICE_SLOTS },
    about: (db, { user_id }) => aboutAccount(db, user_id, "tell the owner of answers that came back"),
    drop: nothing,
    revive: retryInPlace,
  },
  close_customer: {
    run: closeCustomerNow,
    room: { slots: CLOSING_SLOTS },
    about: ofNobody("cancel what a deleted account pays for"),
    ...MUST_BE_DONE,
  },
  run_schedule: {
    run: runScheduleNow,
    giveUp: giveUpSchedule,
    plan: planSchedules,
    room: { slots: SCHEDULE_SLOTS },
    about: aboutSchedule,
    ...MUST_BE_DONE,
  },
  make_backup: {
    run: makeBackupNow,
    plan: makeBackupsLater,
    room: ONE,
    about: ofNobody("make a backup"),
    ...MUST_BE_DONE,
  },
  keep_certificate: {
    run: keepCertificateNow,
    room: ONE,
    about: async (_db, { names }) => ({
      about: `keep the certificate for ${names.join(", ")}`,
      account: null,
    }),
    ...MUST_BE_DONE,
  },
  catch_up_payments: {
    run: catchUpNow,
    plan: catchUpLater,
    room: ONE,
    about: ofNobody("ask the payment provider what it told in vain"),
    ...MUST_BE_DONE,
  },
};

/** Returns the handler of each kind of job, and how many of a kind run at once. */
export function jobHandlers(app: App): JobHandlers {
  const handlers = JOB_KINDS.map((kind) => {
    const { room, ...use } = JOBS[kind];
    return [kind, { ...use, ...(typeof room === "function" ? room(app) : room) }];
  });
  return Object.fromEntries(handlers) as JobHandlers;
}

/** Returns what a job is for, as a phrase, and its account. */
export async function aboutJob(db: Db, { kind, payload }: Pick<JobRow, "kind" | "payload">): Promise<About> {
  const stored = payloadOf({ kind, payload });
  if (stored === DAMAGED_PAYLOAD) return DAMAGED;
  const use = useOf(kind);
  return (await use?.about(db, stored as never)) ?? { about: kind.replaceAll("_", " "), account: null };
}

const DAMAGED: About = {
  about: "something that cannot be read any more: the database is damaged there",
  account: null,
};

/** Returns how a job is dropped; undefined where it must not be. */
export function dropOf({ kind }: JobRow, payload: object): Drop<JobKind> | undefined {
  const use = useOf(kind);
  if (payload === DAMAGED_PAYLOAD) return use?.drop_lost ?? nothing;
  return use?.drop ?? undefined;
}

export function reviveOf({ kind }: JobRow): Revive {
  return useOf(kind)?.revive ?? retryInPlace;
}

/** Returns the row of a kind; undefined for one that a later version wrote. */
function useOf(kind: string): JobUse<JobKind> | undefined {
  return (JOBS as unknown as Record<string, JobUse<JobKind>>)[kind];
}

async function nothing(): Promise<void> {}
