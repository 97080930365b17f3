import type { Kysely } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { migrations } from "../../migrations/index.ts";
import type { Db } from "../../src/db/database.ts";
import { loadMasterKey, mintApiKey } from "../../src/lib/secrets.ts";
import { rawMail } from "./mails.ts";

const FIRST = "0001-foundation";

export type Row = Record<string, unknown>;

/** The key of ada@example.com. */
export const KEY = mintApiKey();
const NOW = Date.UTC(2026, 0, 15, 11) / 1_000;

/** Ids in the order of their numbers, of the moment before the tests' clock begins. */
export function idOf(number: number): string {
  return `019bc100-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** What a server of the first version leaves behind; `domain` is that of the tests. */
export async function fillFirstVersion(db: Db): Promise<Record<string, Row[]>> {
  const { error } = await new Migrator({
    db,
    provider: { getMigrations: async () => ({ [FIRST]: migrations[FIRST] as Migration }) },
  }).migrateToLatest();
  if (error) throw error as Error;
  const tables = await firstRows();
  const any = db as unknown as Kysely<Record<string, Row>>;
  for (const [table, rows] of Object.entries(tables))
    for (const row of rows) await any.insertInto(table).values(row).execute();
  return tables;
}

async function firstRows(): Promise<Record<string, Row[]>> {
  const master = Buffer.alloc(32, 7).toString("base64");
  const secrets = await loadMasterKey({ configured: master, dir: "", create: false });
  const [ada, bob, key] = [idOf(1), idOf(2), idOf(3)];
  const [connection, inbox, thread, raw_mail_id] = [idOf(4), idOf(5), idOf(7), idOf(8)];
  const [call, mail] = [idOf(11), idOf(12)];
  const raw = rawMail({ from: "Ada <ada@example.com>", text: "Look again" });
  const created = NOW;
  const user = { email_verified: 1, name: null, plan: "team", created };
  const message = {
    user_id: ada,
    inbox_id: inbox,
    conversation_id: thread,
    authority: "owner",
    subject: "Look",
    created,
    accepted_ms: created * 1_000,
  };
  const entry = { user_id: ada, period: "2026-01", created };
  const bytes = Buffer.from("a,b");
  return {
    users: [
      { ...user, id: ada, email: "ada@example.com", is_admin: 1 },
      { ...user, id: bob, email: "bob@example.com", is_admin: 0 },
    ],
    api_keys: [
      {
        id: key,
        user_id: ada,
        name: null,
        hash: KEY.hash,
        prefix: KEY.prefix,
        last4: KEY.last4,
        created,
        last_used_at: null,
      },
    ],
    connections: [
      {
        id: connection,
        user_id: ada,
        kind: "demo",
        label: "Demo",
        model: null,
        base_url: null,
        sealed: Buffer.from(secrets.seal(JSON.stringify({ credential: "k", headers: {} }), connection)),
        credential_hint: null,
        status: "untested",
        last_error: null,
        last_tested_at: null,
        created,
        updated: created,
      },
    ],
    inboxes: [
      {
        id: inbox,
        user_id: ada,
        label: "Desk",
        prefix: "desk",
        local_part: "desk-abcdefghjkmn",
        domain: "mw.test",
        default_connection_id: connection,
        mcp_connection_ids: "[]",
        reply_enabled: 1,
        allowlist_senders: "[]",
        scope: null,
        inbound_policy: JSON.stringify({ reply_to_unauthenticated: false, process_bulk: false }),
        created,
        updated: created,
      },
    ],
    retired_addresses: [{ address: "old-abcdefghjkmn@mw.test", retired_at: created }],
    conversations: [
      {
        id: thread,
        user_id: ada,
        inbox_id: inbox,
        subject: "Look",
        turn_count: 1,
        latest_sender: null,
        snippet: "It is fine.",
        last_at: created,
        created,
      },
    ],
    reply_tokens: [{ token: "abcdefghij", conversation_id: thread, participant: "ada@example.com" }],
    raw_mails: [{ id: raw_mail_id, size: raw.byteLength, created, bytes: raw }],
    messages: [
      {
        ...message,
        id: call,
        source: "api",
        state: "done",
        instruction: "Look",
        result: "It is fine.",
        credits_charged: 1,
        completed: created,
        duration_ms: 5,
      },
      {
        ...message,
        id: mail,
        source: "email",
        state: "received",
        sender: "ada@example.com",
        auth: "{}",
        raw_mail_id,
        rfc_message_id: "one@example.com",
        body_hash: "00",
        dedupe_key: "id:one@example.com ada@example.com",
      },
    ],
    message_contents: [{ message_id: call, content: "content" }],
    attachments: [
      {
        id: idOf(13),
        message_id: call,
        direction: "in",
        filename: "a.csv",
        content_type: "text/csv",
        size: bytes.byteLength,
        created,
        bytes,
      },
    ],
    outgoing_mails: [
      {
        id: idOf(14),
        user_id: ada,
        message_id: call,
        kind: "reply",
        envelope_from: "b@mw.test",
        envelope_to: "ada@example.com",
        rfc_message_id: "two@mw.test",
        status: "sent",
        created,
        completed: created,
        raw,
      },
    ],
    ledger: [
      { ...entry, kind: "grant", amount: 10_000, balance: 10_000 },
      { ...entry, kind: "reserve", amount: -1, balance: 9_999, message_id: call },
      { ...entry, kind: "settle", amount: 0, balance: 9_999, message_id: call },
      { ...entry, kind: "reserve", amount: -1, balance: 9_998, message_id: mail },
    ],
    idempotency_keys: [
      { user_id: ada, route: "POST /v1/messages", key: "k", fingerprint: "f", message_id: call, created },
    ],
    jobs: [
      {
        id: idOf(15),
        kind: "route_message",
        payload: JSON.stringify({ message_id: mail }),
        status: "pending",
        lane: thread,
        run_at: created,
        created,
      },
    ],
  };
}
