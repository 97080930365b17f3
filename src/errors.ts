/** Every way a caller can be wrong. Only `http/errors.ts` knows which status each one is. */
export const ERROR_CODES = [
  "validation_error",
  "unauthorized",
  "invalid_code",
  "invalid_credentials",
  "current_password_required",
  "session_required",
  "oauth_not_configured",
  "mcp_oauth_unavailable",
  "billing_not_configured",
  "inbound_not_configured",
  "no_billing_account",
  "invalid_signature",
  "invalid_host",
  "already_subscribed",
  "cross_origin",
  "admin_required",
  "email_not_verified",
  "plan_required",
  "plan_limit_reached",
  "not_found",
  "method_not_allowed",
  "conflict",
  "slug_taken",
  "inbox_required",
  "inbox_not_routed",
  "inbox_paused",
  "invalid_idempotency_key",
  "idempotency_key_reuse",
  "invalid_cursor",
  "payload_too_large",
  "request_timeout",
  "storage_full",
  "content_lost",
  "rate_limited",
  "unavailable",
  "internal",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** One fault of a request: where it is, what kind of fault, and a sentence about it. */
export interface FieldFault {
  path: string;
  code: string;
  message: string;
}

interface ErrorExtras {
  /** What the caller can do about it. */
  fix?: string;
  faults?: FieldFault[];
  retry_after_seconds?: number;
  /** Extra problem+json members, such as `limit` and `current`. */
  members?: Record<string, string | number>;
}

/** A mistake of the caller, with words meant for them. Anything else thrown is a bug. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.name = "AppError";
    this.code = code;
    this.extras = extras;
  }
}

/** A single-field validation error (422). */
export function invalid(path: string, code: string, message: string): AppError {
  return new AppError("validation_error", message, { faults: [{ path, code, message }] });
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the code that the system or SQLite gave an error; empty where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Returns the message of anything that was thrown, followed by its mend if it has one, for people to read. */
export function fullText(error: unknown): string {
  const fix = error instanceof AppError ? error.extras.fix : undefined;
  return forPeople(fix === undefined ? messageOf(error) : `${messageOf(error)} ${fix}`);
}

/** What of a sentence only programs need: in round brackets, beginning with code. */
const FOR_PROGRAMS = / \(`[^()]*\)/g;

/**
 * Returns a sentence of a refusal as people read it. One sentence is for both: "Cancel it first (`POST
 * /messages/{message_id}/cancel`)." names the route to programs, and people see "Cancel it first."
 */
export function forPeople(sentence: string): string {
  return sentence.replaceAll(FOR_PROGRAMS, "");
}
