import type { Farewell, NoticeKind } from "../resources/accounts/account-mail.ts";
import type { Whose } from "../resources/billing/storage.ts";
import type { OwnerNoticeRow } from "../db/schema.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** Every kind of job and its payload. */
export interface JobPayloads {
  /**
   * `brought`: see `resources/messages/brought.ts`; earlier versions did not write it. `owes_until`: until when it waits for a credit,
   * where none is reserved for it yet (`inbound/credit.ts`).
   */
  route_message: {
    message_id: string;
    brought?: { content: boolean; files: number };
    owes_until?: number;
  };
  /**
   * `entrusted`: somebody was told that the content has been accepted; if the mail bounces, it is kept for the
   * operator.
   */
  send_mail: { outgoing_id: string; entrusted?: boolean };
  /** Writes on a message what became of the mail that takes it to the owner of its inbox. */
  settle_forward: { outgoing_id: string };
  /** Notes on a schedule that the answer of a run did not arrive. */
  settle_lost: { outgoing_id: string };
  /** Tells whoever sent a message that it failed where no run could say so. */
  tell_failure: { message_id: string };
  /** `since`: when the domain began to wait for its DNS records, in unix seconds. */
  check_domain: { domain_id: string; since: number };
  /** Checks the DNS records of the service's own DKIM keys. */
  check_service_keys: Record<string, never>;
  /** Mails a sign-in code. `registering`: it is to confirm a new account. */
  mail_code: { email: string; registering: boolean };
  /**
   * Erases ranges of segments. `log`: whether to empty the database's log as well; `sweep`: whether to sweep all mail
   * files.
   */
  erase_bytes: { ranges: SegmentRange[]; log?: boolean; sweep?: boolean };
  /** Deletes the remaining rows of a deleted inbox or webhook endpoint. */
  erase_rest: { inbox_id: string } | { endpoint_id: string };
  /** Runs a message once more beside its own run, with what is to be otherwise. */
  replay_message: { replay_id: string; message_id: string };
  /** Erases the messages that an account's owner has deleted. */
  erase_messages: { user_id: string };
  /** Resumes the jobs that waited while an inbox was paused, and looks anew at what waits by a rule. */
  resume_inbox: { inbox_id: string };
  /** Erases the data of a deleted account. */
  erase_account: { user_id: string; farewell?: Farewell };
  /** Deletes what has been kept for long enough. */
  purge: Record<string, never>;
  /** Creates a delivery for each endpoint that subscribes to the event. */
  fan_out_event: { event_id: string };
  /** Makes the attempts that are due at one endpoint. */
  deliver_webhooks: { endpoint_id: string };
  /** Tells the owner why mail is not worked on. */
  mail_notice: {
    user_id: string;
    kind: Exclude<OwnerNoticeRow["kind"], "answers_returned">;
    /** What found no room in the account's storage; `bytes` is 0 where the size is unknown. */
    refused?: { what: "call" | "mail" | "run of a schedule"; bytes: number; whose?: Whose };
    /** The mail that was accepted and not worked on. */
    message_id?: string;
    /** The schedule that has paused, or whose only run has failed. */
    schedule_id?: string;
    /** The budget that it is about, as it was, and whose part of it; `amount`: what one request may cost, if that is more than all of it. */
    budget?: {
      of: "account" | "connection" | "inbox";
      id: string;
      limit: number;
      month: string;
      whose: Whose;
      amount?: number;
    };
    /** A mark of what is told once, whatever else is told on the same day. */
    once?: string;
  };
  /** Tells the owner how many more times something happened than there were mails about it. `what`: what, one by one. */
  sum_up_notices: { user_id: string; about: NoticeKind; count: number; what?: string[] };
  /** Tells the owner which answers bounced. */
  mail_returns: { user_id: string };
  /** Cancels the subscription of a deleted account. */
  close_customer: { customer_id: string };
  /** Has the message of a schedule worked on at its next time. */
  run_schedule: { schedule_id: string };
  /** `schedule`: as it was configured when the backup was planned. */
  make_backup: { schedule: string };
  /** Renews the TLS certificate when it is due. */
  keep_certificate: { directory: string; names: string[] };
  /**
   * Fetches events of the payment provider that may not have reached this server. `since`: everything paid before is
   * known; `after`: the account that was checked last.
   */
  catch_up_payments: { since: number; after: string | null };
}

export type JobKind = keyof JobPayloads;

/** The rules for every job of a kind. */
interface JobRule<K extends JobKind> {
  /** How long a job may run: then its signal is aborted, and the job may be claimed again. */
  lease_seconds: number;
  /** How often a job may fail before it is given up. */
  max_failures: number;
  /**
   * The member of the payload that names the row that the job is for and without which it cannot be done; null where
   * none is needed.
   */
  names: (string & keyof JobPayloads[K]) | null;
  /** Whether `mailwright queue hold` without a kind holds it, and a restore. */
  held_by_default: boolean;
  /** What jobs of this kind are called in the dashboard. */
  shown: string;
}

/** For work that somebody was promised, or that nothing else would do. */
const NEVER_GIVEN_UP = Number.POSITIVE_INFINITY;

/**
 * Rules by kind. Kinds that act for people and reach others are held by default, so that nothing leaves the server and
 * no run begins.
 */
export const JOB_RULES: { [K in JobKind]: JobRule<K> } = {
  route_message: {
    lease_seconds: 900,
    max_failures: 8,
    names: "message_id",
    held_by_default: true,
    shown: "messages to work on",
  },
  send_mail: {
    lease_seconds: 900,
    max_failures: 100,
    names: "outgoing_id",
    held_by_default: true,
    shown: "outgoing mail",
  },
  settle_forward: {
    lease_seconds: 120,
    max_failures: NEVER_GIVEN_UP,
    names: "outgoing_id",
    held_by_default: false,
    shown: "what became of forwarded mail",
  },
  settle_lost: {
    lease_seconds: 120,
    max_failures: NEVER_GIVEN_UP,
    names: "outgoing_id",
    held_by_default: false,
    shown: "answers of schedules that did not arrive",
  },
  tell_failure: {
    lease_seconds: 120,
    max_failures: 8,
    names: "message_id",
    held_by_default: false,
    shown: "news of failures",
  },
  check_domain: {
    lease_seconds: 300,
    max_failures: NEVER_GIVEN_UP,
    names: "domain_id",
    held_by_default: false,
    shown: "checks of domains",
  },
  check_service_keys: {
    lease_seconds: 300,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "checks of the server's own records",
  },
  mail_code: {
    lease_seconds: 120,
    max_failures: 5,
    names: "email",
    held_by_default: false,
    shown: "login codes",
  },
  erase_bytes: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "what is to be erased",
  },
  erase_rest: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "what deleted inboxes and webhooks left",
  },
  replay_message: {
    lease_seconds: 900,
    max_failures: 8,
    names: "message_id",
    held_by_default: true,
    shown: "replays",
  },
  erase_messages: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: "user_id",
    held_by_default: false,
    shown: "deleted messages",
  },
  resume_inbox: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: "inbox_id",
    held_by_default: false,
    shown: "inboxes to resume",
  },
  erase_account: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: "user_id",
    held_by_default: false,
    shown: "deleted accounts",
  },
  purge: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "clean-up",
  },
  fan_out_event: {
    lease_seconds: 120,
    max_failures: 8,
    names: "event_id",
    held_by_default: true,
    shown: "events for webhooks",
  },
  deliver_webhooks: {
    // Deliveries count their own attempts. A job starts attempts for five minutes, and a time-out may be ten.
    lease_seconds: 1_200,
    max_failures: NEVER_GIVEN_UP,
    names: "endpoint_id",
    held_by_default: true,
    shown: "webhooks",
  },
  mail_notice: {
    lease_seconds: 120,
    max_failures: 5,
    names: "user_id",
    held_by_default: false,
    shown: "notices to owners",
  },
  sum_up_notices: {
    lease_seconds: 120,
    max_failures: 5,
    names: "user_id",
    held_by_default: false,
    shown: "summaries for owners",
  },
  mail_returns: {
    lease_seconds: 120,
    max_failures: 5,
    names: "user_id",
    held_by_default: false,
    shown: "news of answers that came back",
  },
  close_customer: {
    lease_seconds: 300,
    max_failures: NEVER_GIVEN_UP,
    names: "customer_id",
    held_by_default: false,
    shown: "subscriptions to cancel",
  },
  run_schedule: {
    lease_seconds: 300,
    max_failures: NEVER_GIVEN_UP,
    names: "schedule_id",
    held_by_default: true,
    shown: "schedules",
  },
  make_backup: {
    // Long enough for a large data folder on a slow disk.
    lease_seconds: 43_200,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "backups",
  },
  keep_certificate: {
    lease_seconds: 900,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "the certificate",
  },
  catch_up_payments: {
    lease_seconds: 1_800,
    max_failures: NEVER_GIVEN_UP,
    names: null,
    held_by_default: false,
    shown: "payment look-ups",
  },
};

export const JOB_KINDS = Object.keys(JOB_RULES) as JobKind[];
