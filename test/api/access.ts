import type { SecurityEvent } from "../../src/resources/accounts/security-events.ts";

/**
 * Who may use a route: anybody (`public`); an API key or a session (`key`); somebody who has signed in, of whom an API key
 * hears 403 (`session`); the same within ten minutes of the sign-in (`fresh session`), for what adds a way to sign in.
 */
export type Access = "public" | "key" | "session" | "fresh session";

/** What is left behind when a key changes something: an event under its name, and a mail to the owner; null for none. */
export interface Trace {
  event: SecurityEvent["kind"] | null;
  letter: string | null;
}

/** In place of the six digits of a login code. */

function leaves(event: Trace["event"], letter: Trace["letter"] = null): Trace {
  return { event, letter };
}

/** Changes nothing that lasts but what the activity, the deliveries or the record itself show. */
const UNNOTED = leaves(null);

/**
 * What each route says of itself: who may use it, and where a key may use it to change something, the trace of that. One
 * that is not here fails the test of authorisation.
 */
const ROUTES: Record<string, Access | Trace> = {
  "GET /livez": "public",
  "GET /readyz": "public",
  "GET /.well-known/mta-sts.txt": "public",
  "GET /openapi.json": "public",
  "GET /": "public",
  "GET /app": "public",
  "GET /app/*": "public",
  "GET /docs": "public",
  "GET /docs/errors": "public",
  "GET /docs/webhooks": "public",
  "GET /docs/inbound": "public",
  "GET /docs/swagger-ui-bundle.js": "public",
  "GET /docs/swagger-ui.css": "public",
  "GET /docs/init.js": "public",
  "GET /docs/style.css": "public",
  "GET /server": "public",
  "GET /setup": "public",
  "POST /setup": "public",
  "POST /contacts": "public",
  "POST /billing/webhook": "public",
  "POST /inbound/raw": "public",

  "POST /auth/request-code": "public",
  "POST /auth/verify": "public",
  "POST /auth/register": "public",
  "POST /auth/login": "public",
  "POST /auth/logout": "public",
  "GET /auth/session": "public",
  "GET /auth/me": "key",
  "PATCH /auth/profile": leaves("profile_changed"),
  "POST /auth/set-password": "fresh session",
  "DELETE /auth/account": leaves(null, "Your Mailwright account was deleted"),
  "GET /auth/export": leaves("account_exported", "Everything in your Mailwright account was downloaded"),
  "GET /auth/security-events": "key",
  "GET /auth/api-keys": "key",
  "POST /auth/api-key": leaves("api_key_created", "A new API key for your Mailwright account"),
  "DELETE /auth/api-keys/:key_id": leaves("api_key_revoked"),
  "GET /auth/sessions": "key",
  "DELETE /auth/sessions/:session_id": leaves("session_ended"),

  "GET /integrations/:provider/callback": "public",
  "GET /integrations/mcp/callback": "public",
  "GET /integrations/mcp/client-metadata.json": "public",
  "POST /integrations/:provider/connect": leaves("connection_begun"),
  "POST /integrations/mcp/:connection_id/connect": leaves("connection_begun"),
  "POST /integrations/:provider/confirm": "session",
  "POST /integrations/mcp/confirm": "session",
  "GET /connections": "key",
  "GET /connections/programs": "key",
  "POST /connections": leaves("connection_created"),
  "GET /connections/:connection_id": "key",
  "PATCH /connections/:connection_id": leaves("connection_changed"),
  "DELETE /connections/:connection_id": leaves("connection_deleted"),
  "POST /connections/test": UNNOTED,
  "POST /connections/:connection_id/test": UNNOTED,
  "POST /connections/pull": leaves("administered"),
  "POST /connections/:connection_id/pull": leaves("administered"),

  "POST /v1/messages": UNNOTED,
  "GET /v1/messages/:id": "key",
  "GET /messages": "key",
  "GET /messages/stream": "key",
  "GET /messages/:message_id": "key",
  "GET /messages/:message_id/attachments/:attachment_id": "key",
  "GET /messages/:message_id/raw": "key",
  "PATCH /messages/:message_id": UNNOTED,
  "DELETE /messages/:message_id": leaves("messages_deleted"),
  "POST /messages/:message_id/restore": UNNOTED,
  "POST /messages/:message_id/cancel": UNNOTED,
  "POST /messages/:message_id/retry": UNNOTED,
  "POST /messages/:message_id/replay": UNNOTED,
  "GET /messages/:message_id/replays": "key",
  "GET /messages/:message_id/replays/:replay_id": "key",
  "DELETE /messages/:message_id/replays/:replay_id": UNNOTED,
  "GET /v1/test-set": "key",
  "GET /v1/test-runs": "key",
  "GET /v1/test-runs/:test_run_id": "key",
  "POST /v1/test-runs": UNNOTED,
  "DELETE /v1/test-runs/:test_run_id": UNNOTED,
  "GET /conversations": "key",
  "GET /conversations/:conversation_id": "key",
  "DELETE /conversations/:conversation_id": leaves("messages_deleted"),
  "POST /conversations/:conversation_id/restore": UNNOTED,
  "GET /inboxes/activity": "key",
  "GET /v1/webhooks/:id/counts": "key",
  "GET /inboxes": "key",
  "POST /inboxes": leaves("inbox_created"),
  "GET /inboxes/:inbox_id": "key",
  "PATCH /inboxes/:inbox_id": leaves("inbox_changed"),
  "DELETE /inboxes/:inbox_id": leaves("inbox_deleted"),
  "POST /inboxes/:inbox_id/rotate": leaves("inbox_rotated"),
  "GET /inboxes/:inbox_id/vcard": "key",
  "POST /inboxes/:inbox_id/email-vcard": leaves(null, "Contact card: Inbox"),
  "POST /inboxes/:inbox_id/test": leaves(null, "Re: Test mail"),
  "POST /inboxes/:inbox_id/rules/try": UNNOTED,
  "GET /contexts": "key",
  "POST /contexts": leaves("context_created"),
  "POST /contexts/upload": leaves("context_created"),
  "GET /contexts/:context_id": "key",
  "PATCH /contexts/:context_id": leaves("context_changed"),
  "DELETE /contexts/:context_id": leaves("context_deleted"),
  "GET /contexts/:context_id/versions": "key",
  "GET /contexts/:context_id/versions/:version": "key",
  "POST /contexts/:context_id/versions/:version/restore": leaves("context_changed"),
  "DELETE /contexts/:context_id/versions/:version": leaves("context_changed"),
  "GET /v1/schedules": "key",
  "POST /v1/schedules": leaves("schedule_created"),
  "GET /v1/schedules/:schedule_id": "key",
  "PATCH /v1/schedules/:schedule_id": leaves("schedule_changed"),
  "DELETE /v1/schedules/:schedule_id": leaves("schedule_deleted"),
  // The answer of the run.
  "POST /v1/schedules/:schedule_id/run": leaves(null, "Say hello."),
  "GET /v1/schedules/:schedule_id/runs": "key",
  "GET /v1/approvals": "key",
  "GET /v1/approvals/:approval_id": "key",
  "POST /v1/approvals/:approval_id/approve": "session",
  "POST /v1/approvals/:approval_id/refuse": "session",
  "GET /recipes": "key",
  "POST /recipes/:recipe_id/apply": leaves("recipe_applied"),
  "GET /custom-domains": "key",
  "POST /custom-domains": leaves("domain_created"),
  "POST /custom-domains/:domain_id/verify": UNNOTED,
  "DELETE /custom-domains/:domain_id": leaves("domain_deleted"),
  "GET /v1/webhooks": "key",
  "GET /v1/webhooks/:id": "key",
  "POST /v1/webhooks": leaves("webhook_created"),
  "PATCH /v1/webhooks/:id": leaves("webhook_changed"),
  "DELETE /v1/webhooks/:id": leaves("webhook_deleted"),
  "POST /v1/webhooks/:id/test": UNNOTED,
  "GET /v1/webhooks/:id/secret": leaves("webhook_secret_shown"),
  "POST /v1/webhooks/:id/rotate-secret": leaves("webhook_secret_rotated"),
  "GET /v1/webhooks/:id/deliveries": "key",
  "GET /v1/webhooks/:id/deliveries/:delivery_id": "key",
  "POST /v1/webhooks/:id/deliveries/:delivery_id/retry": UNNOTED,
  "POST /v1/webhooks/:id/replay": UNNOTED,

  "GET /usage": "key",
  "POST /billing/checkout": leaves("billing_opened"),
  "POST /billing/topup": leaves("billing_opened"),
  "POST /billing/portal": leaves("billing_opened"),

  "GET /admin/overview": "key",
  "GET /admin/days": "key",
  "GET /admin/dns": "key",
  "GET /admin/users": "key",
  "POST /admin/users": "fresh session",
  "PATCH /admin/users/:user_id": leaves("administered"),
  "POST /admin/users/:user_id/send-code": leaves("administered", "Your Mailwright code"),
  "POST /admin/users/:user_id/reset-password": "fresh session",
  "GET /admin/queue": "key",
  "POST /admin/queue/:job_id/retry": leaves("administered"),
  "POST /admin/queue/:job_id/drop": leaves("administered"),
  "POST /admin/queue/hold": leaves("administered"),
  "POST /admin/queue/release": leaves("administered"),
  "GET /admin/mail": "key",
  "GET /admin/mail/:mail_id": "key",
  "GET /admin/doctor": "key",
  "POST /admin/doctor": leaves("administered"),
  "GET /admin/backups": "key",
  "POST /admin/backups": leaves("administered"),
};

export const ACCESS: Record<string, Access> = Object.fromEntries(
  Object.entries(ROUTES).map(([name, row]) => [name, typeof row === "string" ? row : "key"]),
);

export const TRACES: Record<string, Trace> = Object.fromEntries(
  Object.entries(ROUTES).filter((entry): entry is [string, Trace] => typeof entry[1] !== "string"),
);
