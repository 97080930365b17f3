import { storageWords } from "../db/storage-faults.ts";
import { AppError, type ErrorCode, type FieldFault } from "../errors.ts";

const STORAGE_RETRY_SECONDS = 30;

/** The HTTP status of each error code. */
export const STATUS: Record<ErrorCode, number> = {
  validation_error: 422,
  unauthorized: 401,
  invalid_code: 401,
  invalid_credentials: 401,
  current_password_required: 403,
  session_required: 403,
  oauth_not_configured: 400,
  mcp_oauth_unavailable: 400,
  billing_not_configured: 400,
  inbound_not_configured: 400,
  no_billing_account: 400,
  invalid_signature: 400,
  invalid_host: 400,
  already_subscribed: 409,
  cross_origin: 403,
  admin_required: 403,
  email_not_verified: 403,
  plan_required: 403,
  plan_limit_reached: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  slug_taken: 409,
  inbox_required: 422,
  inbox_not_routed: 422,
  inbox_paused: 409,
  invalid_idempotency_key: 422,
  idempotency_key_reuse: 422,
  invalid_cursor: 422,
  payload_too_large: 413,
  request_timeout: 408,
  storage_full: 507,
  content_lost: 410,
  rate_limited: 429,
  unavailable: 503,
  internal: 500,
};

/** The `title` of each error code. */
export const TITLES: Record<ErrorCode, string> = {
  validation_error: "The request is not valid",
  unauthorized: "Not signed in",
  invalid_code: "The code is not valid",
  invalid_credentials: "Wrong address or password",
  current_password_required: "The current password is needed",
  session_required: "Sign in for this",
  oauth_not_configured: "The server has no OAuth client there",
  mcp_oauth_unavailable: "The tool server cannot be authorised",
  billing_not_configured: "The server takes no payments",
  inbound_not_configured: "The server takes no mail over HTTP",
  no_billing_account: "There is nothing to manage yet",
  invalid_signature: "The signature is not valid",
  invalid_host: "Which host?",
  already_subscribed: "You have this plan already",
  cross_origin: "Sent by another site",
  admin_required: "For administrators only",
  email_not_verified: "The mail address is not verified",
  plan_required: "Your plan does not include this",
  plan_limit_reached: "Your plan's limit is reached",
  not_found: "Not found",
  method_not_allowed: "Method not allowed",
  conflict: "Conflict",
  slug_taken: "The slug is taken",
  inbox_required: "There is no inbox yet",
  inbox_not_routed: "The inbox has no model",
  inbox_paused: "The inbox is paused",
  invalid_idempotency_key: "The Idempotency-Key is not valid",
  idempotency_key_reuse: "The Idempotency-Key was used for something else",
  invalid_cursor: "The cursor is not valid",
  payload_too_large: "The request is too large",
  request_timeout: "The request took too long",
  storage_full: "The storage of the account is full",
  content_lost: "The content is missing",
  rate_limited: "Too many requests",
  unavailable: "Not available right now",
  internal: "Something went wrong here",
};

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  request_id: string;
  fix?: string;
  errors?: FieldFault[];
}

/** Returns the problem+json of an error (RFC 9457). */
export function problemOf(
  error: Pick<AppError, "code" | "message" | "extras">,
  about: { base_url: string; request_id: string },
): Problem {
  const { code, extras } = error;
  return {
    type: `${about.base_url}/docs/errors#${code}`,
    title: TITLES[code],
    status: STATUS[code],
    detail: error.message,
    code,
    request_id: about.request_id,
    ...(extras.fix === undefined ? {} : { fix: extras.fix }),
    ...(extras.faults === undefined ? {} : { errors: extras.faults }),
    ...extras.members,
  };
}

/** Returns the 503 that says why nothing can be stored. */
export function storageFault(error: unknown): AppError {
  const { message, fix } = storageWords(error);
  return new AppError("unavailable", `The server cannot store anything right now. ${message}.`, {
    fix: `Try again in a minute. If you run this server: ${fix}`,
    retry_after_seconds: STORAGE_RETRY_SECONDS,
  });
}
