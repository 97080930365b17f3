import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { budget, budgetBody } from "../billing/budget-shapes.ts";
import { SECURITY_EVENT_KINDS } from "./security-events.ts";
import { moment } from "../../http/shapes.ts";

const count = (what: string) => t.Integer({ minimum: 0, description: what });
const client = t.Nullable(t.String({ description: "Address it came from.", examples: ["192.0.2.7"] }));

/** Its length is checked in code points. */
export const personName = t.String({ maxLength: 400, examples: ["Ada"] });

export const profileBody = t.Object({
  name: t.Optional(t.Nullable(personName)),
  timezone: t.Optional(t.String({ maxLength: 100, examples: ["Europe/Berlin"] })),
  reply_footer: t.Optional(t.Boolean()),
  monthly_budget: t.Optional(budgetBody),
});

export type ProfileInput = Static<typeof profileBody>;

export const MeShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    email: t.String({ examples: ["ada@example.com"] }),
    email_verified: t.Boolean(),
    is_admin: t.Boolean({ description: "Whether the account may use `/admin/…`." }),
    name: t.Nullable(t.String({ examples: ["Ada"] })),
    has_password: t.Boolean(),
    plan: t.Union([t.Literal("free"), t.Literal("pro"), t.Literal("team")]),
    credits: t.Object({
      allowance: count(
        "Credits of the plan for this period; 1,000,000,000, and more once those are used, where they are `unlimited`.",
      ),
      used: count("Credits of the allowance that are spent or set aside for a run."),
      topup: count("Credits that were bought and are left; they do not expire."),
      remaining: count("Credits left: `allowance` - `used` + `topup`."),
      unlimited: t.Boolean({
        description: "Whether the plan has no cap: then `remaining` never comes to an end.",
      }),
      period_start: moment("When the period began"),
      resets_at: moment("When the next one begins"),
    }),
    limits: t.Object({
      contexts: count("At most."),
      schedules: count("At most."),
      inboxes: count("At most."),
      connections: count("At most."),
      custom_domains: count("At most."),
      webhooks: count("At most."),
      api_keys: count("At most."),
      storage_mb: count("Stored at most, in MB; 0: no limit. `GET /usage` says how much is."),
    }),
    features: t.Array(t.String(), { description: "What the plan has beyond its numbers." }),
    timezone: t.String({ description: "IANA name.", examples: ["Europe/Berlin"] }),
    reply_footer: t.Boolean({ description: "Whether replies say that an AI sent them." }),
    monthly_budget: budget,
    currency: t.String({
      description: "The currency of costs and budgets (`costs.currency`).",
      examples: ["USD"],
    }),
    created: moment("When the account was made"),
  },
  { $id: "Me", description: "The account that asks." },
);

const keyMembers = {
  id: t.String({ format: "uuid" }),
  name: t.Nullable(t.String({ examples: ["laptop"] })),
  prefix: t.String({ description: "What the key begins with.", examples: ["mw_live_Ab12"] }),
  last4: t.String({ description: "What the key ends with.", examples: ["9xYz"] }),
  created: moment("When it was made"),
};

export const ApiKeyShape = t.Object(
  {
    ...keyMembers,
    last_used_at: t.Nullable(moment("When it was used last, within five minutes")),
    last_used_ip: client,
  },
  { $id: "ApiKey" },
);

export const NewApiKeyShape = t.Object(
  {
    ...keyMembers,
    key: t.String({
      description: "The key itself, shown this once.",
      examples: ["mw_live_0000000000000000000000000000000000000000000000"],
    }),
    replaced: t.Array(t.String({ format: "uuid" }), { description: "Keys that stopped working." }),
  },
  { $id: "NewApiKey" },
);

const retryAfter = t.Integer({
  minimum: 0,
  description: "Seconds until the next code can be sent.",
  examples: [60],
});

export const CodeRequestedShape = t.Object({ retry_after: retryAfter }, { $id: "CodeRequested" });

export const RegisteredShape = t.Object(
  {
    status: t.Literal("verification_required"),
    retry_after: retryAfter,
    registration_token: t.String({
      description: "Send it with the code, so that the password starts to work.",
      examples: ["Qk3vX0aB7cD1eF5gH9iJ2kL6mN4oP8qR-sT_uVwXyZa"],
    }),
  },
  { $id: "Registered" },
);

export const SecurityEventShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    kind: t.Union(SECURITY_EVENT_KINDS.map((kind) => t.Literal(kind))),
    client,
    api_key: t.Nullable(
      t.String({
        description: "The API key that did it; null for a browser, and for the shell of the server.",
        examples: ["laptop (mw_live_Ab12…9xYz)"],
      }),
    ),
    created: moment("When it happened, for the first time of `times`"),
    times: t.Integer({
      minimum: 1,
      description: "How often the same key, or the same client, did it within an hour.",
      examples: [1],
    }),
    left_out: count(
      "Events of this kind between this one and the next one that is shown, for which there was no room.",
    ),
  },
  { $id: "SecurityEvent" },
);

export const SessionShape = t.Object(
  {
    id: t.String({ format: "uuid", description: "Names the session; it signs nobody in." }),
    created: moment("When it signed in"),
    expires: moment("Until when it stays signed in"),
    client,
    user_agent: t.String({ description: "What the browser calls itself.", examples: ["Mozilla/5.0"] }),
    current: t.Boolean({ description: "Whether it is the browser that asks." }),
  },
  { $id: "Session", description: "A browser that is signed in." },
);
