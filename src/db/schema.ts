import type { FailureReason, MessageReason, MessageState } from "../reasons.ts";
import type { Generated } from "kysely";

/**
 * Row types, one interface a table. Portable column types only: text, integer, blob; booleans are 0 or 1,
 * JSON is text, times are unix seconds.
 */
export interface Schema {
  installation: InstallationRow;
  users: UserRow;
  api_keys: ApiKeyRow;
  connections: ConnectionRow;
  inboxes: InboxRow;
  retired_addresses: RetiredAddressRow;
  conversations: ConversationRow;
  reply_tokens: ReplyTokenRow;
  messages: MessageRow;
  mail_keys: MailKeyRow;
  written_texts: WrittenTextRow;
  raw_mails: RawMailRow;
  message_contents: MessageContentRow;
  attachments: AttachmentRow;
  outgoing_mails: OutgoingMailRow;
  ledger: LedgerRow;
  idempotency_keys: IdempotencyKeyRow;
  jobs: JobRow;
  held_kinds: HeldKindRow;
  sessions: SessionRow;
  login_codes: LoginCodeRow;
  code_askers: CodeAskerRow;
  pending_passwords: PendingPasswordRow;
  security_events: SecurityEventRow;
  rate_limits: RateLimitRow;
  contexts: ContextRow;
  context_versions: ContextVersionRow;
  replays: ReplayRow;
  starred_messages: StarredMessageRow;
  test_runs: TestRunRow;
  custom_domains: CustomDomainRow;
  dkim_keys: DkimKeyRow;
  contact_submissions: ContactSubmissionRow;
  oauth_states: OAuthStateRow;
  tool_calls: ToolCallRow;
  events: EventRow;
  webhook_endpoints: WebhookEndpointRow;
  webhook_deliveries: WebhookDeliveryRow;
  billing_accounts: BillingAccountRow;
  billing_events: BillingEventRow;
  owner_notices: OwnerNoticeRow;
  transport_policies: TransportPolicyRow;
  suppressions: SuppressionRow;
  undelivered_answers: UndeliveredAnswerRow;
  account_storage: AccountStorageRow;
  schedules: ScheduleRow;
  approvals: ApprovalRow;
  text_slots: TextSlotRow;
  indexed_messages: IndexedMessageRow;
  message_texts: MessageTextRow;
  unindexed_messages: UnindexedMessageRow;
  unqueued_messages: UnqueuedMessageRow;
  model_costs: ModelCostRow;
}

/** A value that belongs to the whole data folder. */
export interface InstallationRow {
  name: "key_check" | "moved_inboxes" | "smtp_peers" | "clock" | "mail_position";
  value: Uint8Array;
}

export type Plan = "free" | "pro" | "team";

export interface UserRow {
  id: string;
  email: string;
  email_verified: number;
  name: string | null;
  plan: Plan;
  is_admin: number;
  created: number;
  /** Argon2id hash in PHC string format; null while the account has no password. */
  password_hash: string | null;
  /** IANA name. */
  timezone: string;
  /** Whether answers end with "Sent by AI on behalf of …". */
  reply_footer: number;
  /** When the account was deleted; its data is being erased. */
  deleted_at: number | null;
  plan_changed_at: number | null;
  /** The inbox of API calls that name none; null for the oldest one. */
  default_inbox_id: string | null;
  /** What its models may cost in a month, in millionths of the currency; null: whatever it comes to. */
  monthly_budget: number | null;
}

export interface ApiKeyRow {
  id: string;
  user_id: string;
  name: string | null;
  /** SHA-256 of the whole key, hex. */
  hash: string;
  prefix: string;
  last4: string;
  created: number;
  last_used_at: number | null;
  last_used_ip: string | null;
}

export interface ConnectionRow {
  id: string;
  user_id: string;
  kind: string;
  label: string;
  model: string | null;
  base_url: string | null;
  /** Sealed JSON, AAD = connection id; see `Sealed` in `resources/connections/sealed.ts`. */
  sealed: Uint8Array | null;
  credential_hint: string | null;
  status: "untested" | "ok" | "error" | "needs_auth";
  last_error: string | null;
  last_tested_at: number | null;
  created: number;
  updated: number;
  /** How the sealed credential was obtained; meaningless without one. */
  auth: "key" | "oauth";
  expires_at: number | null;
  /** Settings of this kind of connection, as JSON. */
  config: string | null;
  /** JSON list of the connections that are asked one after the other where it does not answer. */
  fallback_connection_ids: string;
  /** JSON list of the tools that are called only once the owner has consented; `*` is each that changes something. */
  ask_tools: string;
  /** 1: an API key has made it or changed its address, and nobody who is signed in has saved it since. */
  unconfirmed: number;
  /** Names its secrets and settings as they were given, also beyond a refresh of tokens; null: as they were before this was kept. */
  secrets_id: string | null;
  /** As of an account. */
  monthly_budget: number | null;
}

export interface InboxRow {
  id: string;
  user_id: string;
  label: string;
  prefix: string | null;
  local_part: string;
  domain: string;
  default_connection_id: string | null;
  mcp_connection_ids: string;
  reply_enabled: number;
  allowlist_senders: string;
  scope: string | null;
  inbound_policy: string;
  created: number;
  updated: number;
  /** JSON list of the contexts that are meant for this inbox; null for none. */
  context_ids: string | null;
  /** Whether contexts meant for every inbox apply as well. */
  every_context: number;
  /** Null: as configuration and plan say. */
  retention_days: number | null;
  /** The custom domain of the address; null for the service's own. */
  domain_id: string | null;
  /** When the inbox was deleted; the row stays while other rows reference it. */
  deleted_at: number | null;
  /** How often its address was replaced by `rotate`. */
  rotations: number;
  /**
   * What happens to new mail while the inbox is paused: it is kept here, or refused so that its sender keeps it. Null:
   * not paused.
   */
  paused: "keep" | "refuse" | null;
  /** The instruction for mail whose own words ask for nothing. */
  default_instruction: string | null;
  /** JSON list of its rules in order; see `resources/inboxes/rules/`. */
  rules: string;
  /** 1 for an address that its owner chose, without a random token. */
  named: number;
  /** As of an account. */
  monthly_budget: number | null;
}

/** An address that an inbox once had; it is never issued again. */
export interface RetiredAddressRow {
  address: string;
  retired_at: number;
}

export interface ConversationRow {
  id: string;
  user_id: string;
  inbox_id: string | null;
  subject: string;
  turn_count: number;
  latest_sender: string | null;
  snippet: string;
  last_at: number;
  created: number;
}

/** The state machine of a message; the two public projections are in `resources/messages/view.ts`. */
export type { MessageState };

/** Whose words the message carries, which decides what they may command. */
export type Authority = "owner" | "listed" | "stranger" | "unauthenticated";

export type ReplyStatus = "none" | "queued" | "sent" | "deferred" | "bounced" | "suppressed";

export interface MessageRow {
  id: string;
  user_id: string;
  inbox_id: string | null;
  conversation_id: string | null;
  source: "email" | "api" | "test";
  state: MessageState;
  reason: MessageReason | null;
  error: string | null;
  authority: Authority;
  sender: string | null;
  subject: string | null;
  instruction: string | null;
  command: string | null;
  result: string;
  steps: string;
  input_tokens: number | null;
  output_tokens: number | null;
  /** What the model has cost, in millionths of the currency; null where nobody knows. */
  cost: number | null;
  model: string | null;
  credits_charged: number;
  auth: string | null;
  /** Why no answer is mailed although the run continues; null when one may be. */
  no_reply_reason: string | null;
  raw_mail_id: string | null;
  rfc_message_id: string | null;
  body_hash: string | null;
  dedupe_key: string | null;
  duplicates: number;
  hop: number;
  reply_status: ReplyStatus;
  reply_error: string | null;
  created: number;
  /** Milliseconds since the epoch at accept, for `duration_ms`. */
  accepted_ms: number;
  completed: number | null;
  duration_ms: number | null;
  /** The message that this one tries again. */
  retry_of: string | null;
  /** Tags from the recipient's `+tag`; they carry no authority. */
  tags: string;
  /** JSON object of strings that an API caller attached. */
  metadata: string;
  /** 0 for a mail that somebody else may have replayed; see `readingFor`. */
  vouched: number;
  /** How many mails the row stands for: 1, or those of an hour that are not listed one by one. */
  mails: number;
  /** When its owner deleted it: it is hidden, and erased once the deletion can no longer be undone. */
  deleted_at: number | null;
  /** Whether a retry did its work and was deleted afterwards. */
  redone: number;
  /** JSON of what the rules of the inbox found; see `RulesFound`. */
  rules: string;
  /** The schedule that made it; null of what came in. */
  schedule_id: string | null;
  /** The request for consent that it answers: it came to the address of that letter, or from the button of its page. */
  approval_id: string | null;
  /** JSON of what a call came with (see `Brought`); null for nothing, and where an older version took it in. */
  brought: string | null;
  /** The API key that asked for it, or for this try of it; null for a person who is signed in, and for mail. */
  key_id: string | null;
  /** JSON list of the contexts and macros that its run was given, each with its version; see `UsedContext`. */
  contexts: string;
  /**
   * The message behind which a digest began to read, empty for none; null once that was given back because its answer did
   * not arrive, and for what is no digest.
   */
  read_from: string | null;
  /**
   * 1 where its run had `@memory`, came into a conversation in which another one had, or read mail of one in a digest: its words and
   * its answer may tell what was found, which no tool is offered that the instruction does not name.
   */
  from_memory: number;
}

/**
 * A call of a tool that a run has not made, as it waits for the owner's consent. What is to be called never changes.
 */
export interface ReplayRow {
  id: string;
  user_id: string;
  message_id: string;
  /** The API key that asked for it; null from a browser that is signed in. */
  key_id: string | null;
  /** JSON of what is to be otherwise; see `Asked` in `resources/replays/replays.ts`. */
  asked: string;
  state: "received" | "done" | "failed";
  reason: FailureReason | null;
  error: string | null;
  result: string;
  steps: string;
  /** As of a message. */
  contexts: string;
  model: string | null;
  input_tokens: number | null;
  output_tokens: number | null;
  /** As of a message. */
  cost: number | null;
  credits_charged: number;
  created: number;
  completed: number | null;
  /** How long the run took, without the time that it waited for its turn. */
  duration_ms: number | null;
  /** The run of the test set that it belongs to; null for one that was asked for by itself. */
  test_run_id: string | null;
  /** What its answer should be, as it was when the test set was run; see `Expected`. */
  expected: string | null;
  /** Whether its answer is as expected; null while nobody knows. */
  passed: number | null;
  /** What in its answer is otherwise than expected. */
  differs: string | null;
}

/** A message of the test set of an account. */
export interface StarredMessageRow {
  message_id: string;
  user_id: string;
  /** JSON of what its answer should be; see `Expected` in `resources/test-runs/expected.ts`. */
  expected: string;
  /** When it was starred. */
  created: number;
}

/** One run of the test set; its replays say what came of it. */
export interface TestRunRow {
  id: string;
  user_id: string;
  /** JSON of what is to be otherwise, and of which messages; see `TestAsked` in `resources/test-runs/view.ts`. */
  asked: string;
  created: number;
}

export interface ApprovalRow {
  id: string;
  user_id: string;
  inbox_id: string;
  /** The message whose run wanted the call. */
  message_id: string;
  connection_id: string;
  /** As an instruction names it: `mcp:calendar`. */
  target: string;
  tool: string;
  /** JSON of the arguments, as they would be sent. */
  arguments: string;
  /** The arguments as people read them; null of a request from before this was kept. */
  shown: string | null;
  /** What the call would change, as people read it; null where nothing is known of that. */
  changes: string | null;
  /** Names all that the consent is for; see `hashOf`. */
  hash: string;
  cause: "boundary" | "marked" | "flag";
  /** Whether words of others may be behind the call. */
  tainted: number;
  /** `approved`: a message is to make the call; `called`: it has begun to. */
  state: "pending" | "approved" | "called" | "done" | "failed" | "unknown" | "refused";
  /** The message that answers it. */
  run_id: string | null;
  /** What came of the call. */
  outcome: string | null;
  /** The Message-ID of the letter about it; null where none was sent. */
  letter_id: string | null;
  expires_at: number;
  decided_at: number | null;
  created: number;
}

/** Has a message worked on again and again, or once at a later time. */
export interface ScheduleRow {
  id: string;
  user_id: string;
  inbox_id: string;
  /** What is worked on: the mail or call with its instruction and material. */
  message_id: string;
  title: string;
  /** Five fields as in a crontab, read on the clock of `timezone`; null of a single time, and while the time is not clear. */
  pattern: string | null;
  /** The single time. */
  at: number | null;
  /** IANA name. */
  timezone: string;
  /** The last moment at which it may run; null: for ever. */
  until: number | null;
  /** JSON of what it gathers as material; see `Over`. */
  over: string | null;
  /** The last message that its runs have read, or passed over for good; null: none since it was made. */
  read_up_to: string | null;
  status: "active" | "paused" | "ended" | "unclear";
  /** Why it is paused, or has ended, in a sentence; null where its owner wanted that. */
  reason: string | null;
  /** When it runs next; null unless it is active. */
  next_at: number | null;
  /** When it last ran. */
  last_at: number | null;
  /** How many runs in a row have failed. */
  failures: number;
  created: number;
  updated: number;
}

/** What remains of a mail whose message was deleted: enough to recognize a duplicate. */
export interface MailKeyRow {
  inbox_id: string;
  key_hash: Uint8Array;
  authority: Authority;
  vouched: number;
  /** When the mail was accepted. */
  created: number;
}

/**
 * A received mail. Its bytes are in the row or, if they are many, in a segment file; in neither once they were purged.
 */
export interface RawMailRow {
  id: string;
  bytes: Uint8Array | null;
  segment: number | null;
  segment_offset: number | null;
  /** See `checksumOf`; null for bytes in the row, and for segments written by versions without checksums. */
  checksum: number | null;
  /** When its bytes were found missing in the segments; null while they are there. */
  lost_at: number | null;
  size: number;
  created: number;
  purged_at: number | null;
}

/** Untrusted text of a call over HTTP, apart from the message so that lists never read it. */
export interface MessageContentRow {
  message_id: string;
  content: string | null;
  purged_at: number | null;
}

export interface AttachmentRow {
  id: string;
  message_id: string;
  direction: "in" | "out";
  filename: string;
  content_type: string;
  size: number;
  created: number;
  purged_at: number | null;
  segment: number | null;
  segment_offset: number | null;
  /** As for a raw mail. */
  checksum: number | null;
  lost_at: number | null;
  bytes: Uint8Array | null;
}

/** `reply` and `notice` answer a message, but for letters of no message; a `forward` takes one to the owner of its inbox. */
export type MailKind = "reply" | "notice" | "forward";

export interface OutgoingMailRow {
  id: string;
  user_id: string;
  message_id: string | null;
  kind: MailKind;
  envelope_from: string;
  envelope_to: string;
  rfc_message_id: string;
  status: "queued" | "sent" | "deferred" | "bounced" | "suppressed";
  attempts: number;
  response: string | null;
  created: number;
  completed: number | null;
  raw: Uint8Array | null;
  /** Whether `raw` is deleted as soon as the mail was handed over. */
  private: number;
  /** The event whose announcement waits for the first attempt to send. */
  event_id: string | null;
  /** Whether somebody was told that its content has been accepted: if it bounces, it is kept for the operator. */
  entrusted: number;
}

/** The MTA-STS policy (RFC 8461) of a recipient domain, as fetched. */
export interface TransportPolicyRow {
  domain: string;
  /** The `id` in the DNS; another one there means that the policy changed. */
  policy_id: string;
  mode: "enforce" | "testing" | "none";
  /** JSON list. */
  mx: string;
  expires: number;
}

/** An address from which an account's answers bounced. */
export interface SuppressionRow {
  user_id: string;
  address: string;
  /** The reason of the last bounce. */
  reason: string;
  /** How many bounces were temporary. */
  soft_bounces: number;
  /** Since when nothing is sent there; null while mail still may be. */
  suppressed_at: number | null;
  updated: number;
}

/** An answer that came back, of which its owner has not been told. */
/** A text that a tool of others was given to write, as a hash of its letters; see `pipeline/written-texts.ts`. */
export interface WrittenTextRow {
  id: string;
  user_id: string;
  hash: Uint8Array;
  created: number;
  /** The listed sender whose own words it was, who may write them again; null for everybody else's. */
  author: string | null;
}

export interface UndeliveredAnswerRow {
  outgoing_id: string;
  user_id: string;
}

/** The address part of a `Reply-To` that continues a conversation, good only for its participant. */
export interface ReplyTokenRow {
  token: string;
  conversation_id: string;
  participant: string;
  /** Valid only while the inbox has the same number of `rotations`. */
  rotation: number;
  /** The request for consent whose letter has this address; null for any other mail. */
  approval_id: string | null;
}

export interface LedgerRow {
  id: Generated<number>;
  user_id: string;
  kind: "grant" | "reserve" | "settle" | "release" | "topup" | "adjust";
  /** Credits, signed: a reserve takes them, a release gives them back, a settle moves none. */
  amount: number;
  /** What is left of the period after this row: the sum of its amounts. */
  balance: number;
  /**
   * The period whose allowance it belongs to, see `Period` in `resources/billing/period.ts`; `topup` for what was
   * bought.
   */
  period: string;
  message_id: string | null;
  created: number;
  /** Which credits: those of the period, or those that were bought and do not end with it. */
  pool: "allowance" | "topup";
  /** The id of a payment, at its provider. */
  reference: string | null;
}

export interface IdempotencyKeyRow {
  user_id: string;
  route: string;
  key: string;
  fingerprint: string;
  message_id: string;
  created: number;
}

export interface JobRow {
  id: string;
  kind: string;
  payload: string;
  status: "pending" | "running" | "dead";
  /** Jobs of one lane run one at a time, oldest first. */
  lane: string | null;
  /** 1 while an earlier job of its lane waits or runs; triggers maintain it. */
  behind: number;
  /** 1 until a claim has seen that `run_at` has come; a trigger resets it when `run_at` changes. */
  later: number;
  dedupe_key: string | null;
  run_at: number;
  /** Times a worker has taken it; a crash counts. */
  attempts: number;
  /** Times its handler said "not now". */
  failures: number;
  /** By the clock of `App.steadyNow`, so it means nothing to another process. */
  lease_until: number | null;
  last_error: string | null;
  created: number;
  /** Whose share of the worker slots it takes, as `lineOf` writes it; null where that does not matter. */
  account: string | null;
  /** How many jobs of this kind the account may run at once; null for a fair share. */
  account_slots: number | null;
  /** Roughly how many bytes it needs in memory while it runs. */
  weight: number;
  /** The outside party it works with (a mail server, a model), where the number of jobs at once is limited for each. */
  target: string | null;
}

/** A kind of job that the operator put on hold: none is started. */
export interface HeldKindRow {
  kind: string;
  since: number;
}

/** A browser session. `id` is the SHA-256 of the cookie's value. */
export interface SessionRow {
  id: string;
  user_id: string;
  created: number;
  expires: number;
  /** When this browser last proved the mail address with a code; null after a sign-in by password. */
  code_login_at: number | null;
  client: string;
  user_agent: string;
}

/** The valid sign-in code of an account; there is one at most. */
export interface LoginCodeRow {
  user_id: string;
  code_hmac: string;
  attempts: number;
  created: number;
}

/** A browser that asked for the sign-in code of an address; each has its own number of attempts. */
export interface CodeAskerRow {
  /** An HMAC of the mail address, for which there need not be an account. */
  address: string;
  /** 0 to 3. */
  place: number;
  /** SHA-256 of the browser's cookie, hex. */
  token_hash: string;
  /** An HMAC of the network that it asked from. */
  network: string;
  /** Attempts at the address's code by this browser and by earlier ones in this place. */
  attempts: number;
  asked: number;
}

/** A password chosen by somebody who has yet to prove that the mail address is theirs. */
export interface PendingPasswordRow {
  user_id: string;
  password_hash: string;
  name: string | null;
  /** SHA-256 of the registration token, hex. */
  token_hash: string;
  /** Always empty: a network address proves nothing about a person. */
  client: string;
  created: number;
}

export interface SecurityEventRow {
  id: string;
  user_id: string;
  kind: string;
  client: string | null;
  created: number;
  /** The API key that did it, as it is shown; null for a session and for the shell. */
  api_key: string | null;
  /** How often it happened within an hour of `created`. */
  times: number;
  /** How many of its kind came after it, and before the next one that is kept. */
  left_out: number;
}

/** What the rate limiter keeps over a restart: when the bucket of a key is full again, in milliseconds. */
export interface RateLimitRow {
  key: string;
  full_at: number;
}

export interface ContextRow {
  id: string;
  user_id: string;
  title: string;
  body: string;
  kind: "instruction" | "knowledge" | "command";
  slug: string;
  enabled: number;
  /** 1 for every inbox, 0 for those that list it. */
  every_inbox: number;
  created: number;
  updated: number;
  /** Counts from 1; a new one begins where its title, text or kind changes. */
  version: number;
  /** When that version was written. */
  version_created: number;
}

/** What a context said before it was changed; what it says now stands in its own row. */
export interface ContextVersionRow extends Pick<
  ContextRow,
  "user_id" | "title" | "body" | "kind" | "version"
> {
  id: string;
  context_id: string;
  /** When it was written. */
  created: number;
}

export interface CustomDomainRow {
  id: string;
  user_id: string;
  /** In its A-label form. */
  domain: string;
  status: "pending" | "active" | "failed";
  ownership_token: string;
  /** JSON: what the last check found for each record, by purpose. */
  findings: string;
  error: string | null;
  /** How many daily checks in a row did not find the records. */
  misses: number;
  verified_at: number | null;
  last_checked_at: number | null;
  created: number;
}

/** A DKIM key of a domain: for signing now, earlier or later. */
export interface DkimKeyRow {
  id: string;
  /** Null: the service's own domain. */
  domain_id: string | null;
  selector: string;
  algorithm: "rsa" | "ed25519";
  /** The `p=` of its record. */
  public_part: string;
  /** Private key in PEM form, AAD = id; null once it is not needed any more. */
  sealed: Uint8Array | null;
  /**
   * `waiting`: for its DNS record; `signing`; `retired`: replaced, but mails on their way need its record; `dropped`:
   * not needed any more.
   */
  state: "waiting" | "signing" | "retired" | "dropped";
  /** The last answer of the DNS about its record; a failed lookup leaves it unchanged. */
  record: "unknown" | "seen" | "absent";
  seen_at: number | null;
  created: number;
  retired_at: number | null;
}

export interface ContactSubmissionRow {
  id: string;
  name: string;
  email: string;
  subject: string | null;
  topic: string | null;
  message: string;
  /** Why it is taken for spam by a machine and was not delivered; null if it is not. */
  flag: string | null;
  client: string;
  created: number;
}

/** A pending OAuth authorization: the browser was sent to a consent page and has not returned. */
export interface OAuthStateRow {
  /** SHA-256 of the `state`, hex. */
  state_hash: string;
  user_id: string;
  /** An integration kind, or `mcp`. */
  provider: string;
  connection_id: string | null;
  /** JSON with the PKCE verifier and the server, AAD = state_hash; see `RoundTrip`. */
  sealed: Uint8Array;
  /** Unused since 0013. */
  cookie_hash: string | null;
  created: number;
  /** The session that began it; null for a caller with an API key. */
  session_id: string | null;
  /** The API key that began it, as it is shown; null for a session. */
  api_key: string | null;
}

/** A tool call that changed something, so that a repeated run does not make it again. */
export interface ToolCallRow {
  message_id: string;
  /** A hash of the tool, its arguments, and how often the run made the same call before. */
  fingerprint: string;
  /** JSON of its outcome; null while that is unknown. */
  outcome: string | null;
  created: number;
}

export type EventType = "message.received" | "message.completed" | "message.failed" | "message.skipped";

/** An event as webhooks announce it. */
export interface EventRow {
  /** `evt_…`, in order of time. */
  id: string;
  user_id: string;
  type: EventType;
  message_id: string | null;
  /** 0 for a test. */
  livemode: number;
  /** The JSON that every endpoint receives, byte for byte the same at every attempt. */
  body: string;
  created: number;
}

export interface WebhookEndpointRow {
  id: string;
  user_id: string;
  url: string;
  /** JSON list of `EventType`. */
  event_types: string;
  enabled: number;
  /** JSON `{secret, old_secret}`, AAD = id. */
  sealed: Uint8Array;
  /** Until when the old secret signs as well. */
  old_secret_until: number | null;
  /** How many deliveries in a row failed after all attempts. */
  consecutive_failures: number;
  disabled_reason: string | null;
  description: string | null;
  created: number;
  updated: number;
  /** When the endpoint was deleted; the row stays while it has deliveries. */
  deleted_at: number | null;
}

export interface WebhookDeliveryRow {
  id: string;
  endpoint_id: string;
  event_id: string;
  status: "pending" | "delivered" | "failed";
  attempts: number;
  response_status: number | null;
  response_body: string | null;
  error: string | null;
  duration_ms: number | null;
  /** Where it went, or will go. */
  url: string;
  created: number;
  last_attempt_at: number | null;
  next_attempt_at: number | null;
  delivered_at: number | null;
}

/** What the payment provider says about an account. */
export interface BillingAccountRow {
  user_id: string;
  customer_id: string;
  subscription_id: string | null;
  /** The state of the subscription, in the provider's words. */
  status: string | null;
  interval: "month" | "year" | null;
  period_start: number | null;
  period_end: number | null;
  cancel_at_period_end: number;
  /** When the provider was last asked, in unix seconds. */
  changed: number;
  /** The plan of the current or last subscription; the operator may have given the account another one. */
  plan: Exclude<Plan, "free"> | null;
  /** The provider's id of the price, which stands for `plan` and `interval` here. */
  price_id: string | null;
}

/** A webhook event of the payment provider that has been processed. */
export interface BillingEventRow {
  id: string;
  type: string;
  created: number;
}

/** How many bytes an account stores. Triggers keep it up to date: see `storage-triggers.ts`. */
export interface AccountStorageRow {
  user_id: string;
  bytes: number;
  /** When it was last recounted. */
  counted_at: number;
}

/** What the models of a month have cost an account, by who asked and who answered. It stays when messages go. */
export interface ModelCostRow {
  user_id: string;
  /** `YYYY-MM`, UTC. */
  month: string;
  inbox_id: string;
  /** `default` for the connection of the server. */
  connection_id: string;
  /** Millionths of the currency. */
  cost: number;
}

/** A notice that an account's owner already got on a day, so that it is sent once. */
export interface OwnerNoticeRow {
  user_id: string;
  kind:
    | "credits_used_up"
    | "strangers_share"
    | "beyond_plan"
    | "storage_full"
    | "strangers_storage"
    | "answers_returned"
    | "mail_left_out"
    | "failure_untold"
    | "schedule_failed"
    | "not_forwarded"
    | "approvals_waiting"
    | "budget_low"
    | "budget_used_up"
    | "budget_undone";
  /** `YYYY-MM-DD`, UTC; of what is told once a mark that begins so: of a budget the last day of its month, and which budget it is. */
  day: string;
}

/** The fields of a message in which words are looked up, in the order in which the index has them. */
export const TEXT_FIELDS = [
  "marks",
  "subject",
  "sender",
  "recipient",
  "tags",
  "instruction",
  "result",
  "material",
  "files",
] as const;
type TextFields = Record<(typeof TEXT_FIELDS)[number], string>;

/**
 * A part of the index of words, which has some thousand messages of one account: each of their words begins with the mark of
 * its number. So a search passes over no words but those of its account, and over few at once.
 */
export interface TextSlotRow {
  slot: Generated<number>;
  user_id: string;
  /** Between which places its messages are. */
  first: number;
  last: number;
  /** How much text was put into it, in characters. */
  chars: number;
  messages: Generated<number>;
}

/** What is indexed of a message, as marked texts; see `lib/split-words.ts`. */
export interface IndexedMessageRow extends TextFields {
  /** Places are in the order of the ids of messages. */
  place: number;
  message_id: string;
  slot: number;
}

/** The index of words (FTS5) over `indexed_messages`. */
export interface MessageTextRow extends TextFields {
  rowid: number;
}

/** A message that has ended, and that is to be indexed, or indexed anew. */
export interface UnindexedMessageRow {
  user_id: string;
  message_id: string;
  /** How often it was put here again while it waited. */
  turn: Generated<number>;
}

/** Says, where there is one, that older messages are to be put among those to be indexed. */
export interface UnqueuedMessageRow {
  below: string;
}
