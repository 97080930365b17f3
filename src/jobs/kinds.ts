import type { Farewell, NoticeKind } from "../resources/accounts/account-mail.ts";
import type { Whose } from "../resources/billing/storage.ts";
import type { OwnerNoticeRow } from "../db/schema.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** Every kind of work and what it carries. */
export interface JobPayloads {
  route_message: { message_id: string };
  /**
   * `entrusted`: the mail carries what somebody was told had been taken; should it come back, it is kept for the
   * operator.
   */
  send_mail: { outgoing_id: string; entrusted?: boolean };
  /** Tells whoever sent a message that it failed where no run could say so. */
  tell_failure: { message_id: string };
  /** `since`: when the domain began to wait for its records. */
  check_domain: { domain_id: string; since: number };
  /** Checks whether the records of the service's own DKIM keys are there. */
  check_service_keys: Record<string, never>;
  /** `registering`: somebody chose a password for the address. */
  mail_code: { email: string; registering: boolean };
  /** `log`: whether the database's log is emptied as well; `sweep`: whether all files of mails are put in order. */
  erase_bytes: { ranges: SegmentRange[]; log?: boolean; sweep?: boolean };
  /** Clears away what is left of an inbox, or of a webhook endpoint, that was deleted. */
  erase_rest: { inbox_id: string } | { endpoint_id: string };
  /** Erases the messages that an account's owner has deleted. */
  erase_messages: { user_id: string };
  /** Has the work go on that waited while an inbox was paused. */
  resume_inbox: { inbox_id: string };
  /** Erases what is left of an account that is dead. */
  erase_account: { user_id: string; farewell?: Farewell };
  /** Takes away what has been kept for long enough. */
  purge: Record<string, never>;
  /** Makes a delivery for each endpoint that wants to hear of the event. */
  fan_out_event: { event_id: string };
  /** Makes the attempts that are due at one endpoint. */
  deliver_webhooks: { endpoint_id: string };
  /** Tells the owner why mail is not worked on. */
  mail_notice: {
    user_id: string;
    kind: Exclude<OwnerNoticeRow["kind"], "answers_returned">;
    /** What found no room; `bytes` is 0 where the size was not known. */
    refused?: { what: "call" | "mail"; bytes: number; whose?: Whose };
    /** The mail that was taken and not worked on. */
    message_id?: string;
    /** The schedule that has paused, or whose only run has failed. */
    schedule_id?: string;
  };
  /** Tells the owner how many more times something happened than there were mails about it. */
  sum_up_notices: { user_id: string; about: NoticeKind; count: number };
  /** Tells the owner which answers came back. */
  mail_returns: { user_id: string };
  /** Ends what a deleted account pays for. */
  close_customer: { customer_id: string };
  /** Renews the certificate when it is time. */
  keep_certificate: { directory: string; names: string[] };
  /** Has the message of a schedule worked on at its next time. */
  run_schedule: { schedule_id: string };
  /** `schedule`: as it was configured when the backup was planned. */
  make_backup: { schedule: string };
  /**
   * Asks the payment provider for news that may not have reached this server. `since`: all that was paid before is
   * known; `after`: the account that was looked at last.
   */
  catch_up_payments: { since: number; after: string | null };
}

export type JobKind = keyof JobPayloads;

/** What holds for every job of a kind. */
interface JobRule<K extends JobKind> {
  /** How long a worker may be silent about a job. */
  lease_seconds: number;
  /** How often a job may fail before it is given up. */
  max_failures: number;
  /** The member that says whom or what a job is for, without which it cannot be done; null where none is needed. */
  names: (string & keyof JobPayloads[K]) | null;
  /** Whether the kind is held where the operator names no kind, and after a restore. */
  held_by_default: boolean;
  /** What waits, in the words of the dashboard. */
  shown: string;
}

/** For what somebody was promised, or what nobody else could do. */
const NEVER_GIVEN_UP = Number.POSITIVE_INFINITY;

/** What works for people and reaches others is held by default: with it nothing leaves and nothing is begun. */
export const JOB_RULES: { [K in JobKind]: JobRule<K> } = {
  route_message: {
    lease_seconds: 900,
    max_failures: 8,
    names: "message_id",
    held_by_default: true,
    shown: "answers",
  },
  send_mail: {
    lease_seconds: 900,
    max_failures: 100,
    names: "outgoing_id",
    held_by_default: true,
    shown: "outgoing mail",
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
    shown: "inboxes that go on",
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
    shown: "what has been kept for long enough",
  },
  fan_out_event: {
    lease_seconds: 120,
    max_failures: 8,
    names: "event_id",
    held_by_default: true,
    shown: "news for webhooks",
  },
  deliver_webhooks: {
    // Each delivery counts its own attempts. A job begins attempts for five minutes, and a time-out may be ten.
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
    shown: "what deleted accounts pay for",
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
    shown: "questions to the payment provider",
  },
};

export const JOB_KINDS = Object.keys(JOB_RULES) as JobKind[];
