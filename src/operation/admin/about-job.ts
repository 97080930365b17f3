import type { Db } from "../../db/database.ts";
import type { JobRow } from "../../db/schema.ts";
import type { JobKind, JobPayloads } from "../../jobs/kinds.ts";
import { DAMAGED_PAYLOAD, payloadOf } from "../../jobs/queue.ts";

/** What a job is for, in words, and whose it is. */
export interface About {
  about: string;
  account: string | null;
}

export async function aboutJob(db: Db, { kind, payload }: Pick<JobRow, "kind" | "payload">): Promise<About> {
  const tell = TELLERS[kind as JobKind] as ((db: Db, payload: unknown) => Promise<About>) | undefined;
  const stored = payloadOf({ kind, payload });
  if (stored === DAMAGED_PAYLOAD) return DAMAGED;
  return (await tell?.(db, stored)) ?? { about: kind.replaceAll("_", " "), account: null };
}

const DAMAGED: About = {
  about: "something that cannot be read any more: the database is damaged there",
  account: null,
};
const GONE: About = { about: "something that has been deleted meanwhile", account: null };

const TELLERS: { [K in JobKind]: (db: Db, payload: JobPayloads[K]) => Promise<About> } = {
  route_message: aboutMessage,
  send_mail: aboutOutgoing,
  async tell_failure(db, payload) {
    const { account } = await aboutMessage(db, payload);
    return { about: "tell the sender of a message that it failed", account };
  },
  check_service_keys: async () => ({
    about: "look for the records of the server's own DKIM keys",
    account: null,
  }),
  close_customer: async () => ({ about: "cancel what a deleted account pays for", account: null }),
  catch_up_payments: async () => ({ about: "ask the payment provider what it told in vain", account: null }),
  mail_code: async (_db, { email }) => ({ about: `mail a login code to ${email}`, account: email }),
  async check_domain(db, { domain_id }) {
    const row = await db
      .selectFrom("custom_domains")
      .innerJoin("users", "users.id", "custom_domains.user_id")
      .select(["domain", "users.email as account"])
      .where("custom_domains.id", "=", domain_id)
      .executeTakeFirst();
    return row ? { about: `look for the records of ${row.domain}`, account: row.account } : GONE;
  },
  async fan_out_event(db, { event_id }) {
    const row = await db
      .selectFrom("events")
      .innerJoin("users", "users.id", "events.user_id")
      .select(["type", "users.email as account"])
      .where("events.id", "=", event_id)
      .executeTakeFirst();
    return row ? { about: `tell the webhooks of ${row.type}`, account: row.account } : GONE;
  },
  async deliver_webhooks(db, { endpoint_id }) {
    const row = await db
      .selectFrom("webhook_endpoints")
      .innerJoin("users", "users.id", "webhook_endpoints.user_id")
      .select(["url", "users.email as account"])
      .where("webhook_endpoints.id", "=", endpoint_id)
      .executeTakeFirst();
    // Paths and queries of such addresses often hold a secret.
    return row ? { about: `webhooks to ${new URL(row.url).origin}`, account: row.account } : GONE;
  },
  mail_notice: (db, { user_id, kind }) =>
    aboutAccount(db, user_id, `tell the owner: ${kind.replaceAll("_", " ")}`),
  sum_up_notices: (db, { user_id }) =>
    aboutAccount(db, user_id, "tell the owner how much more was done to the account"),
  mail_returns: (db, { user_id }) => aboutAccount(db, user_id, "tell the owner of answers that came back"),
  erase_bytes: async () => ({ about: "erase what was deleted", account: null }),
  erase_rest: async () => ({ about: "erase what is left of a deleted inbox or webhook", account: null }),
  erase_messages: (db, { user_id }) => aboutAccount(db, user_id, "erase messages that were deleted"),
  resume_inbox: async () => ({ about: "go on with what waited while an inbox was paused", account: null }),
  erase_account: async () => ({ about: "erase what is left of a deleted account", account: null }),
  purge: async () => ({ about: "take away what was kept for long enough", account: null }),
  make_backup: async () => ({ about: "make a backup", account: null }),
  keep_certificate: async (_db, { names }) => ({
    about: `keep the certificate for ${names.join(", ")}`,
    account: null,
  }),
};

async function aboutMessage(db: Db, { message_id }: { message_id: string }): Promise<About> {
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

async function aboutOutgoing(db: Db, { outgoing_id }: { outgoing_id: string }): Promise<About> {
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

async function aboutAccount(db: Db, id: string, about: string): Promise<About> {
  const row = await db.selectFrom("users").select("email").where("id", "=", id).executeTakeFirst();
  return row ? { about, account: row.email } : GONE;
}
