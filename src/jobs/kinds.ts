import type { Farewell, NoticeKind } from "../resources/accounts/account-mail.ts";
import type { Whose } from "../resources/billing/storage.ts";
import type { OwnerNoticeRow } from "../db/schema.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** Every kind of work and what it carries. */
export interface JobPayloads {
  route_message: { message_id: string };
  /** `entrusted`: it carries what somebody was told had been taken; should it come back, it is kept for the operator. */
  send_mail: { outgoing_id: string; entrusted?: boolean };
  /** Tells whoever sent a message that it failed where no run could say so. */
  tell_failure: { message_id: string };
  /** `since`: when the domain began to wait for its records. */
  check_domain: { domain_id: string; since: number };
  /** Whether the records of the service's own DKIM keys are there. */
  check_service_keys: Record<string, never>;
  /** `registering`: somebody chose a password for the address. */
  mail_code: { email: string; registering: boolean };
  /** `log`: whether the database's log is emptied as well; `sweep`: whether all files of mails are put in order. */
  erase_bytes: { ranges: SegmentRange[]; log?: boolean; sweep?: boolean };
  /** What is left of an inbox, or of a webhook endpoint, that was deleted. */
  erase_rest: { inbox_id: string } | { endpoint_id: string };
  /** The messages that an account's owner has deleted. */
  erase_messages: { user_id: string };
  /** Has go on what waited while an inbox was paused. */
  resume_inbox: { inbox_id: string };
  /** What is left of an account that is dead. */
  erase_account: { user_id: string; farewell?: Farewell };
  /** Takes away what has been kept for long enough. */
  purge: Record<string, never>;
  /** Makes a delivery for each endpoint that wants to hear of it. */
  fan_out_event: { event_id: string };
  /** Makes the attempts that are due at one endpoint. */
  deliver_webhooks: { endpoint_id: string };
  /** Tells the owner why mail is not worked on. */
  mail_notice: {
    user_id: string;
    kind: Exclude<OwnerNoticeRow["kind"], "answers_returned">;
    /** What found no room; 0 bytes are a size that was not known. */
    refused?: { what: "call" | "mail"; bytes: number; whose?: Whose };
    /** The mail that was taken and not worked on. */
    message_id?: string;
  };
  /** Tells the owner how often more something happened than there were mails about it. */
  sum_up_notices: { user_id: string; about: NoticeKind; count: number };
  /** Tells the owner which answers came back. */
  mail_returns: { user_id: string };
  /** Ends what a deleted account pays for. */
  close_customer: { customer_id: string };
  /** Renews the certificate when it is time. */
  keep_certificate: { directory: string; names: string[] };
  /** As it was configured when it was planned. */
  make_backup: { schedule: string };
  /**
   * Asks the payment provider what it may have told in vain. `since`: all that was paid before is known; `after`: the
   * account that was looked at last.
   */
  catch_up_payments: { since: number; after: string | null };
}

export type JobKind = keyof JobPayloads;

/** How long a worker may be silent about one, and how often it may fail before it is given up. */
export const JOB_RULES: Record<JobKind, { lease_seconds: number; max_failures: number }> = {
  route_message: { lease_seconds: 900, max_failures: 8 },
  send_mail: { lease_seconds: 900, max_failures: 100 },
  tell_failure: { lease_seconds: 120, max_failures: 8 },
  // Never given up: a domain is looked at for as long as it is there.
  check_domain: { lease_seconds: 300, max_failures: Number.POSITIVE_INFINITY },
  check_service_keys: { lease_seconds: 300, max_failures: Number.POSITIVE_INFINITY },
  mail_code: { lease_seconds: 120, max_failures: 5 },
  // Nor is this: somebody was promised that nothing is left.
  erase_bytes: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  erase_rest: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  erase_messages: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  resume_inbox: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  erase_account: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  purge: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  fan_out_event: { lease_seconds: 120, max_failures: 8 },
  // Each delivery counts its own attempts. It begins some for five minutes, and a time-out may be ten.
  deliver_webhooks: { lease_seconds: 1_200, max_failures: Number.POSITIVE_INFINITY },
  mail_notice: { lease_seconds: 120, max_failures: 5 },
  sum_up_notices: { lease_seconds: 120, max_failures: 5 },
  mail_returns: { lease_seconds: 120, max_failures: 5 },
  // Never given up: nobody is left who could cancel.
  close_customer: { lease_seconds: 300, max_failures: Number.POSITIVE_INFINITY },
  // Long enough for a large data folder on a slow disk.
  make_backup: { lease_seconds: 43_200, max_failures: Number.POSITIVE_INFINITY },
  keep_certificate: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  catch_up_payments: { lease_seconds: 1_800, max_failures: Number.POSITIVE_INFINITY },
};

/** What says whom or what a job is for; one without it cannot be done. */
export const NAMED: { [K in JobKind]?: string & keyof JobPayloads[K] } = {
  route_message: "message_id",
  send_mail: "outgoing_id",
  tell_failure: "message_id",
  check_domain: "domain_id",
  mail_code: "email",
  erase_messages: "user_id",
  resume_inbox: "inbox_id",
  erase_account: "user_id",
  fan_out_event: "event_id",
  deliver_webhooks: "endpoint_id",
  mail_notice: "user_id",
  sum_up_notices: "user_id",
  mail_returns: "user_id",
  close_customer: "customer_id",
};
