import { Elysia, t } from "elysia";
import type { App } from "../app.ts";
import { authenticated } from "../http/auth.ts";
import { readRouting } from "../messages/messages.ts";
import { type CallOutcome, runCall } from "./call.ts";

const MAX_INSTRUCTION_CHARS = 10_000;
const MAX_CONTENT_CHARS = 500_000;
const MAX_FILES = 10;
const POLL_SECONDS = 2;

const callBody = t.Object({
  instruction: t.String({ minLength: 1, maxLength: MAX_INSTRUCTION_CHARS, pattern: "\\S" }),
  content: t.Optional(t.String({ maxLength: MAX_CONTENT_CHARS })),
  inbox_id: t.Optional(t.String({ format: "uuid" })),
  conversation_id: t.Optional(t.String({ format: "uuid" })),
  attachments: t.Optional(
    t.Array(
      t.Object({
        filename: t.String({ minLength: 1, maxLength: 255 }),
        content_type: t.String({ minLength: 1, maxLength: 255, pattern: "^[\\w.+-]+/[\\w.+-]+(\\s*;.*)?$" }),
        data: t.String(),
      }),
      { maxItems: MAX_FILES },
    ),
  ),
  async: t.Optional(t.Boolean()),
});

export function routingRoutes(app: App) {
  return new Elysia({ prefix: "/v1" })
    .use(authenticated(app))
    .post(
      "/messages",
      async ({ user, body, headers, set }) => {
        const outcome = await runCall(
          app,
          user,
          { ...body, instruction: body.instruction.trim() },
          {
            idempotency_key: headers["idempotency-key"] ?? null,
            wait_seconds: waitOf(headers["prefer"]),
          },
        );
        Object.assign(set.headers, headersOf(outcome));
        set.status = statusOf(outcome);
        return outcome.resets_at === undefined ? outcome.view : limitedBody(outcome, outcome.resets_at);
      },
      { body: callBody },
    )
    .get("/messages/:id", async ({ user, params, set }) => {
      const view = await readRouting(app, user, params.id);
      if (view.status === "processing") set.headers["retry-after"] = String(POLL_SECONDS);
      return view;
    });
}

/** RFC 7240 §4.3: `Prefer: wait=10`. */
function waitOf(prefer: string | undefined): number | null {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i.exec(prefer ?? "")?.[1];
  return seconds === undefined ? null : Number(seconds);
}

function statusOf({ view }: CallOutcome): number {
  if (view.status === "limited") return 429;
  return view.status === "processing" ? 202 : 200;
}

function headersOf({ view, replayed, rate }: CallOutcome): Record<string, string> {
  const headers: Record<string, string> = {};
  if (replayed) headers["idempotent-replayed"] = "true";
  if (view.status === "processing") {
    headers["location"] = `/v1/messages/${view.message_id}`;
    headers["retry-after"] = String(POLL_SECONDS);
  }
  if (rate && rate.limit > 0) {
    headers["ratelimit-policy"] = `"route";q=${rate.limit};w=60`;
    headers["ratelimit"] = `"route";r=${rate.remaining};t=${rate.reset_seconds}`;
  }
  return headers;
}

function limitedBody({ view }: CallOutcome, resets_at: number) {
  return { ...view, code: "credit_limit", credits: { ...view.credits, resets_at } };
}
