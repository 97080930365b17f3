import { Elysia } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import { forgetBody, takeFiles } from "../http/body.ts";
import { type Description, describe } from "../http/describe.ts";
import { jsonAnswer } from "../http/stream.ts";
import type { RateVerdict } from "../lib/rate-limit.ts";
import { readRun } from "../resources/messages/messages.ts";
import type { RunView } from "../resources/messages/view.ts";
import { LimitedShape, RunShape } from "../resources/messages/shapes.ts";
import { callBody } from "./call-shapes.ts";
import { type CallOutcome, runCall } from "./call.ts";

const POLL_SECONDS = 2;

const CALL: Description = {
  tag: "Routing",
  summary: "Run an instruction through an inbox",
  description:
    "The instruction is trusted; content and attachments are data that the model reads but never obeys. Without any of these, and in no conversation with earlier turns, the tools of the inbox may change things as if the instruction had named them. Waits about 90 seconds for the result, then answers 202 and goes on. 200 means that the run has ended: `status` says how, and a run that failed is charged nothing.",
  answers: { 200: RunShape, 202: RunShape },
  limited: LimitedShape,
  errors: [
    "email_not_verified",
    "not_found",
    "plan_limit_reached",
    "inbox_required",
    "inbox_not_routed",
    "inbox_paused",
    "invalid_idempotency_key",
    "idempotency_key_reuse",
    "storage_full",
  ],
  headers: {
    "Idempotency-Key":
      "1 to 255 printable ASCII characters; a retry with the same key returns the original result.",
    Prefer:
      "`wait=N` waits at most N seconds for the result, `respond-async` does not wait for it (RFC 7240).",
  },
  answer_headers: {
    "RateLimit-Policy": "How many calls a minute allows.",
    RateLimit: "How many of them are left.",
    "Idempotent-Replayed": "`true` on the answer to a retry.",
    Location: "With a 202: where the result will be.",
    "Retry-After": "With a 202: seconds until it is worth asking.",
  },
};

const POLL: Description = {
  tag: "Routing",
  summary: "What has become of a message",
  answers: { 200: RunShape },
  answer_headers: { "Retry-After": "While it is processing: seconds until it is worth asking again." },
};

export function callRoutes(app: App) {
  return new Elysia({ prefix: "/v1" })
    .use(authenticated(app))
    .post(
      "/messages",
      async ({ caller, body, headers, request, set }) => {
        const outcome = await runCall(app, caller, body, {
          takeFiles: () => takeFiles(request),
          onStored: () => forgetBody(request),
          idempotency_key: headers["idempotency-key"] ?? null,
          wait_seconds: waitOf(headers["prefer"]),
          onRate: (rate) => Object.assign(set.headers, rateHeaders(rate)),
        });
        Object.assign(set.headers, headersOf(app, outcome));
        set.status = statusOf(outcome);
        return outcome.resets_at === undefined ? outcome.view : limitedBody(outcome, outcome.resets_at);
      },
      {
        body: callBody,
        ...describe(CALL),
      },
    )
    .get(
      "/messages/:id",
      async ({ user, params, set }) => {
        const view = await readRun(app, user, params.id);
        if (view.status === "processing") set.headers["retry-after"] = pollAfter(app, view);
        return jsonAnswer(app, { who: user.id, headers: set.headers }, view);
      },
      describe(POLL),
    );
}

/** The seconds of `Prefer: wait=10` (RFC 7240 §4.3); none are waited with `respond-async` alone (§4.1). */
function waitOf(prefer = ""): number | null {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(prefer)?.[1];
  if (seconds !== undefined) return Number(seconds);
  return /(?:^|[,;\s])respond-async(?:$|[,;\s])/i.test(prefer) ? 0 : null;
}

function statusOf({ view, resets_at }: CallOutcome): number {
  if (resets_at !== undefined) return 429;
  return view.status === "processing" ? 202 : 200;
}

/** The seconds until it is worth asking again: what a rule has wait is not begun before. */
function pollAfter(app: App, { waits_until }: RunView): string {
  return String(Math.max(POLL_SECONDS, (waits_until ?? 0) - app.now()));
}

function headersOf(app: App, { view, replayed }: CallOutcome): Record<string, string> {
  const headers: Record<string, string> = {};
  if (replayed) headers["idempotent-replayed"] = "true";
  if (view.status === "processing") {
    headers["location"] = `/v1/messages/${view.message_id}`;
    headers["retry-after"] = pollAfter(app, view);
  }
  return headers;
}

/** The header fields of draft-ietf-httpapi-ratelimit-headers-10. */
function rateHeaders({ limit, remaining, reset_seconds }: RateVerdict): Record<string, string> {
  if (limit === 0) return {};
  return {
    "ratelimit-policy": `"route";q=${limit};w=60`,
    ratelimit: `"route";r=${remaining};t=${reset_seconds}`,
  };
}

function limitedBody({ view }: CallOutcome, resets_at: number) {
  return { ...view, code: "credit_limit", credits: { ...view.credits, resets_at } };
}
