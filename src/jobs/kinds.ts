import type { OwnerNoticeRow } from "../db/schema.ts";
import type { SegmentRange } from "../lib/segments.ts";

/** Every kind of work and what it carries. */
export interface JobPayloads {
  route_message: { message_id: string };
  send_mail: { outgoing_id: string };
  /** `since`: when the domain began to wait for its records. */
  check_domain: { domain_id: string; since: number };
  /** `registering`: somebody chose a password for the address. */
  mail_code: { email: string; registering: boolean };
  erase_bytes: { ranges: SegmentRange[] };
  /** Makes a delivery for each endpoint that wants to hear of it. */
  fan_out_event: { event_id: string };
  /** Makes the attempts that are due at one endpoint. */
  deliver_webhooks: { endpoint_id: string };
  /** Tells the owner why mail is not worked on. */
  mail_notice: Pick<OwnerNoticeRow, "user_id" | "kind">;
  /** Ends what a deleted account pays for. */
  close_customer: { customer_id: string };
}

export type JobKind = keyof JobPayloads;

/** How long a worker may be silent about one, and how often it may fail before it is given up. */
export const JOB_RULES: Record<JobKind, { lease_seconds: number; max_failures: number }> = {
  route_message: { lease_seconds: 900, max_failures: 8 },
  send_mail: { lease_seconds: 900, max_failures: 100 },
  // Never given up: a domain is looked at for as long as it is there.
  check_domain: { lease_seconds: 300, max_failures: Number.POSITIVE_INFINITY },
  mail_code: { lease_seconds: 120, max_failures: 5 },
  // Nor is this: somebody was promised that nothing is left.
  erase_bytes: { lease_seconds: 900, max_failures: Number.POSITIVE_INFINITY },
  fan_out_event: { lease_seconds: 120, max_failures: 8 },
  // Each delivery counts its own attempts.
  deliver_webhooks: { lease_seconds: 600, max_failures: Number.POSITIVE_INFINITY },
  mail_notice: { lease_seconds: 120, max_failures: 5 },
  // Never given up: nobody is left who could cancel.
  close_customer: { lease_seconds: 300, max_failures: Number.POSITIVE_INFINITY },
};
