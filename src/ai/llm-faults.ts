import type { ModelFault } from "../reasons.ts";
import { quote, errorTextOf } from "../lib/quote.ts";
import { networkFault, retryAfterSeconds } from "../net/responses.ts";
import type { Bill } from "./prices.ts";
import { MODEL_KINDS, type ModelConnection, nameAt } from "./providers.ts";

/** Characters of an error's body that are read: enough to tell its kind. */
const MAX_JUDGED_CHARS = 2_000;

export type FailureCode = ModelFault;

export interface CompletionFailure {
  ok: false;
  code: FailureCode;
  /** A sentence for the user: it names the provider, the cause and the mend, and never contains the key. */
  message: string;
  retryable: boolean;
  /** Seconds to wait as the provider asked; null if it did not say. */
  retry_after_seconds: number | null;
  /** Whether the answer was valid but had no text. */
  empty?: true;
  /** Whether it may lie in what was asked, where the code does not say so: another message may be answered. */
  of_request?: boolean;
  /** What was read and written for an answer that was of no use, where its provider says so. */
  usage?: Bill | null;
}

interface FailureExtras {
  /** The provider's own message. */
  said?: string;
  retryable?: boolean;
  retry_after_seconds?: number | null;
  of_request?: boolean;
}

interface Refusal {
  code: FailureCode;
  when: (status: number, body: string) => boolean;
  sentence: string;
  retryable?: true;
}

/**
 * Rules for refusals; the first that fits counts. Providers use different status codes for the same fault, so their
 * words count as well.
 */
const REFUSALS: Refusal[] = [
  {
    code: "invalid_credentials",
    when: saysBadKey,
    sentence: "did not accept the API key. Enter a valid one in this connection.",
  },
  {
    code: "quota_exceeded",
    when: (status, body) =>
      status === 402 ||
      ((status === 429 || status === 400) && /insufficient_quota|credit balance/i.test(body)),
    sentence: "has no credit left for this account. Top it up there, or use another connection.",
  },
  {
    code: "rate_limited",
    when: (status) => status === 429,
    sentence: "is limiting this account's requests. Try again later, or ask the provider for a higher limit.",
    retryable: true,
  },
  {
    code: "content_filtered",
    when: (status, body) => status < 500 && /content[ _](filter|management|policy)/i.test(body),
    sentence: "refused this text by its content rules. Change it, or use another model.",
  },
  {
    code: "input_too_long",
    when: (status, body) =>
      status === 413 ||
      (status === 400 && /context[ _]length|too long|maximum context|too many tokens/i.test(body)),
    sentence: "cannot take this much text. Send less, or choose a model with a larger context.",
  },
  {
    code: "model_not_found",
    when: (status, body) =>
      (status === 404 && /model/i.test(body)) ||
      (status === 400 &&
        /(invalid|unknown|no such|not a valid) model|model_not_found|model not found/i.test(body)),
    sentence: "does not know this model. Choose another one in this connection.",
  },
  {
    code: "forbidden",
    when: (status) => status === 403,
    sentence: "does not allow this key to do that. Check the key's permissions and the model.",
  },
  {
    code: "bad_response",
    when: (status) => status === 404 || status === 405,
    sentence: "has no chat interface at this base URL. Check it: it often ends in /v1.",
  },
  {
    code: "provider_error",
    when: (status) => status >= 500 || status === 408 || status === 409 || status === 425,
    sentence: "has a fault of its own. If it lasts, look at its status page or use another connection.",
    retryable: true,
  },
];

const OTHER_REFUSAL = "refused the request. Check the model and the options of this message.";

const NO_KEY = "asks for an API key, and this connection has none. Enter one in this connection.";

const SAID = " It said: ";

/** Returns whether the provider refuses the key itself; Gemini does so with status 400. */
export function saysBadKey(status: number, body: string): boolean {
  return status === 401 || ((status === 400 || status === 403) && BAD_KEY.some((words) => words.test(body)));
}

const BAD_KEY = [
  /\b(invalid|incorrect|wrong|unknown|expired|revoked)[ _-](x-)?api[ _-]?(key|token)/i,
  /api[ _-]?key (is |was |has )?(been )?(not valid|invalid|incorrect|expired|revoked|reported as leaked)\b(?! for)/i,
  /api_key_invalid/i,
  /\bauth(entication|orization) (error|failed|fails)\b/i,
];

/** Makes a failure whose sentence begins with the provider's name. */
export function failure(
  connection: ModelConnection,
  code: FailureCode,
  sentence: string,
  extras: FailureExtras = {},
): CompletionFailure {
  const said = quote(extras.said ?? "", secretsOf(connection));
  const name = nameAt(MODEL_KINDS[connection.kind], connection.base_url);
  return {
    ok: false,
    code,
    message: `${name} ${sentence}${said === "" ? "" : `${SAID}${said}`}`,
    retryable: extras.retryable ?? false,
    retry_after_seconds: extras.retry_after_seconds ?? null,
    ...(extras.of_request === true ? { of_request: true } : {}),
  };
}

/** Returns the message of a failure without the provider's words, which may repeat what the model had to read. */
export function withoutQuote(message: string): string {
  return message.split(SAID, 1)[0] ?? "";
}

/** Returns the failure for a response with an error status. */
export function refusalFailure(
  connection: ModelConnection,
  response: { status: number; headers: Headers },
  body: string,
): CompletionFailure {
  const { status, headers } = response;
  const judged = body.slice(0, MAX_JUDGED_CHARS);
  const refusal = REFUSALS.find((candidate) => candidate.when(status, judged));
  const retryable = refusal?.retryable ?? false;
  const keyless = refusal?.code === "invalid_credentials" && secretsOf(connection).join("") === "";
  return failure(
    connection,
    refusal?.code ?? "provider_error",
    `(${status}) ${keyless ? NO_KEY : (refusal?.sentence ?? OTHER_REFUSAL)}`,
    {
      said: errorTextOf(body),
      retryable,
      of_request: refusal === undefined,
      retry_after_seconds: retryable ? retryAfterSeconds(headers) : null,
    },
  );
}

/** Returns the failure for a successful status with an unusable body. */
export function unreadable(connection: ModelConnection, what: string): CompletionFailure {
  const mend = "If this lasts, check that the base URL is the one of its OpenAI-compatible interface.";
  return failure(connection, "bad_response", `${what}. ${mend}`, { retryable: true });
}

/** Returns the failure for an answer that is too large. */
export function tooMuch(connection: ModelConnection, what: string): CompletionFailure {
  return failure(
    connection,
    "bad_response",
    `sent an answer of ${what}. Ask for less, or set --max-tokens.`,
    {
      of_request: true,
    },
  );
}

export function redirectFailure(connection: ModelConnection, location: string | null): CompletionFailure {
  const where = location === null ? "another address" : quote(location, secretsOf(connection));
  return failure(
    connection,
    "bad_response",
    `redirects to ${where}. Enter the final address as its base URL.`,
  );
}

/** Returns the failure for an error of `fetch`; null if it was no network error. */
export function networkFailure(connection: ModelConnection, error: unknown): CompletionFailure | null {
  const fault = networkFault(error);
  if (fault === null) {
    return null;
  }
  if (fault.code === "timeout" || fault.code === "cancelled") {
    return deadlineFailure(connection, null);
  }
  const retryable = fault.code === "unreachable";
  return failure(connection, fault.code, `could not be reached. ${fault.message}`, { retryable });
}

/** Returns the failure for a call whose signal was aborted: by the time limit, or because the run was ended. */
export function deadlineFailure(connection: ModelConnection, reason: unknown): CompletionFailure {
  if (reason instanceof Error && reason.name !== "TimeoutError") {
    return failure(connection, "cancelled", "was not waited for any longer: the run was ended.", {
      retryable: true,
    });
  }
  const sentence = "did not answer in time. If this lasts, ask for less or choose a faster model.";
  return failure(connection, "timeout", sentence, { retryable: true });
}

function secretsOf(connection: ModelConnection): string[] {
  return [connection.api_key, ...Object.values(connection.headers ?? {})];
}
