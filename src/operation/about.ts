import type { Db } from "../db/database.ts";
import type { WebhookDeliveryRow } from "../db/schema.ts";
import type { JobPayloads } from "../jobs/kinds.ts";

/** The purpose of a job in words, and the account that it is for. */
export interface About {
  about: string;
  account: string | null;
  /** The last failure as a sentence, for a job whose parts (deliveries) count failures themselves. */
  failed?: string | undefined;
}

const GONE: About = { about: "something that has been deleted meanwhile", account: null };

/** Returns a description for jobs of the server itself, or of an account that no longer exists. */
export function ofNobody(about: string): () => Promise<About> {
  return async () => ({ about, account: null });
}

export async function aboutFailure(db: Db, payload: JobPayloads["tell_failure"]): Promise<About> {
  const { account } = await aboutMessage(db, payload);
  return { about: "tell the sender of a message that it failed", account };
}

export async function aboutDomain(db: Db, { domain_id }: JobPayloads["check_domain"]): Promise<About> {
  const row = await db
    .selectFrom("custom_domains")
    .innerJoin("users", "users.id", "custom_domains.user_id")
    .select(["domain", "users.email as account"])
    .where("custom_domains.id", "=", domain_id)
    .executeTakeFirst();
  return row ? { about: `look for the records of ${row.domain}`, account: row.account } : GONE;
}

export async function aboutSchedule(db: Db, { schedule_id }: JobPayloads["run_schedule"]): Promise<About> {
  const row = await db
    .selectFrom("schedules")
    .innerJoin("users", "users.id", "schedules.user_id")
    .leftJoin("inboxes", "inboxes.id", "schedules.inbox_id")
    .select(["local_part", "domain", "users.email as account"])
    .where("schedules.id", "=", schedule_id)
    .executeTakeFirst();
  // Its title is text of a mail.
  return row ? { about: `run a schedule of ${inboxOf(row)} at its next time`, account: row.account } : GONE;
}

export async function aboutEvent(db: Db, { event_id }: JobPayloads["fan_out_event"]): Promise<About> {
  const row = await db
    .selectFrom("events")
    .innerJoin("users", "users.id", "events.user_id")
    .select(["type", "users.email as account"])
    .where("events.id", "=", event_id)
    .executeTakeFirst();
  return row ? { about: `tell the webhooks of ${row.type}`, account: row.account } : GONE;
}

export async function aboutEndpoint(
  db: Db,
  { endpoint_id }: JobPayloads["deliver_webhooks"],
): Promise<About> {
  const row = await db
    .selectFrom("webhook_endpoints")
    .innerJoin("users", "users.id", "webhook_endpoints.user_id")
    .select(["url", "users.email as account"])
    .where("webhook_endpoints.id", "=", endpoint_id)
    .executeTakeFirst();
  if (!row) return GONE;
  const failing = await db
    .selectFrom("webhook_deliveries")
    .select(["attempts", "response_status", "error"])
    .where("endpoint_id", "=", endpoint_id)
    .where("status", "=", "pending")
    .where("attempts", ">", 0)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  // Paths and queries of such addresses often hold a secret.
  return {
    about: `webhooks to ${new URL(row.url).origin}`,
    account: row.account,
    failed: failing && failedInWords(failing),
  };
}

function failedInWords({
  attempts,
  response_status,
  error,
}: Pick<WebhookDeliveryRow, "attempts" | "response_status" | "error">): string {
  const times = attempts === 1 ? "" : ` ${attempts} times`;
  const why =
    response_status === null
      ? (error ?? "no answer").replaceAll("_", " ")
      : `the receiver answered ${response_status}`;
  return `the oldest delivery failed${times}: ${why}`;
}

export async function aboutMessage(db: Db, { message_id }: { message_id: string }): Promise<About> {
  const row = await db
    .selectFrom("messages")
    .innerJoin("users", "users.id", "messages.user_id")
    .leftJoin("inboxes", "inboxes.id", "messages.inbox_id")
    .select(["source", "sender", "local_part", "domain", "users.email as account"])
    .where("messages.id", "=", message_id)
    .executeTakeFirst();
  if (!row) return GONE;
  const what = { email: `mail from ${row.sender}`, api: "call over HTTP", test: "test" }[row.source];
  return { about: `work on a ${what} for ${inboxOf(row)}`, account: row.account };
}

export async function aboutOutgoing(db: Db, { outgoing_id }: { outgoing_id: string }): Promise<About> {
  const row = await db
    .selectFrom("outgoing_mails")
    .innerJoin("users", "users.id", "outgoing_mails.user_id")
    .leftJoin("messages", "messages.id", "outgoing_mails.message_id")
    .leftJoin("inboxes", "inboxes.id", "messages.inbox_id")
    .select(["kind", "envelope_to", "message_id", "local_part", "domain", "users.email as account"])
    .where("outgoing_mails.id", "=", outgoing_id)
    .executeTakeFirst();
  if (!row) return GONE;
  const from = row.message_id === null ? "" : ` from ${inboxOf(row)}`;
  return { about: `send a ${row.kind}${from} to ${row.envelope_to}`, account: row.account };
}

function inboxOf({ local_part, domain }: { local_part: string | null; domain: string | null }): string {
  return local_part === null ? "a deleted inbox" : `${local_part}@${domain}`;
}

export async function aboutAccount(db: Db, id: string, about: string): Promise<About> {
  const row = await db.selectFrom("users").select("email").where("id", "=", id).executeTakeFirst();
  return row ? { about, account: row.email } : GONE;
}

/** What a notice tells the owner of an account. */
const NOTICES: Record<JobPayloads["mail_notice"]["kind"], string> = {
  credits_used_up: "that the credits are used up",
  strangers_share: "that strangers have used up their share of the credits",
  beyond_plan: "what rests beyond the plan",
  storage_full: "that the storage is full",
  strangers_storage: "that the storage is full for mail of strangers",
  mail_left_out: "that mail was left out",
  failure_untold: "of failures that no sender is told of",
  schedule_failed: "that a schedule has failed",
  not_forwarded: "that a mail was not forwarded",
  approvals_waiting: "that approvals wait",
  budget_low: "that little of a monthly budget is left",
  budget_used_up: "that a monthly budget is used up",
  budget_undone: "what a monthly budget has left undone",
};

export function aboutNotice(db: Db, { user_id, kind }: JobPayloads["mail_notice"]): Promise<About> {
  return aboutAccount(db, user_id, `tell the owner ${NOTICES[kind]}`);
}
