import { INTEGRATION_KINDS, INTEGRATIONS } from "../../config/integrations.ts";
import { allOf } from "../../lib/lists.ts";
import { t } from "elysia";
import { budget } from "../billing/budget-shapes.ts";
import { CONNECTION_KINDS } from "./kinds.ts";
import { PING_CODES } from "./ping.ts";
import { moment } from "../../http/shapes.ts";

const words = (...names: string[]) => t.Union(names.map((name) => t.Literal(name)));

const NONE = { examples: [null] };

export const kind = t.Union(
  CONNECTION_KINDS.map((name) => t.Literal(name)),
  {
    description: `${allOf(
      INTEGRATION_KINDS.map(
        (name, index) => `\`${name}\` ${index === 0 ? "is " : ""}${INTEGRATIONS[name].label}`,
      ),
      "and",
    )}, unless the operator set up others.`,
  },
);

export const ConnectionShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    kind,
    category: words("llm", "mcp", "integration"),
    label: t.String({ examples: ["OpenAI"] }),
    target: t.Nullable(
      t.String({ description: "What an instruction calls it after the @; null for a model." }),
      NONE,
    ),
    model: t.Nullable(
      t.String({ description: "Null: the default one of its kind.", examples: ["gpt-5.4-mini"] }),
    ),
    base_url: t.Nullable(
      t.String({ description: "Null: the provider's own.", examples: ["https://api.openai.com/v1"] }),
    ),
    fallback_connection_id: t.Nullable(
      t.String({ format: "uuid", description: "The first of `fallback_connection_ids`." }),
      NONE,
    ),
    fallback_connection_ids: t.Array(t.String({ format: "uuid" }), {
      description:
        "Asked one after the other when this one does not answer, but never once a tool may have changed something.",
      examples: [[]],
    }),
    config: t.Nullable(
      t.Record(t.String(), t.Unknown(), {
        description: "Settings of this kind alone. Never a secret: it is shown.",
        examples: [{}],
      }),
    ),
    monthly_budget: budget,
    ask_tools: t.Array(t.String(), {
      description:
        "Its tools that are called only once you have consented; `*` is each that may change something.",
      examples: [[]],
    }),
    unconfirmed: t.Boolean({
      description:
        "An API key has made it, or changed its address, and nobody who is signed in has saved it since. While any of your connections has `ask_tools`, each change by its tools then waits for your yes.",
    }),
    status: t.Union(
      (["untested", "ok", "error", "needs_auth"] as const).map((name) => t.Literal(name)),
      {
        description:
          "As its last test found it, or, for a model, as messages have found it since. A test of a model lists what models there are and asks none of them, so that it costs nothing: only a message shows whether it answers.",
      },
    ),
    credential_hint: t.Nullable(t.String({ description: "The end of the credential.", examples: ["…abcd"] })),
    has_credential: t.Boolean(),
    auth: words("key", "oauth", "none"),
    expires_at: t.Nullable(moment("When the credential ends"), NONE),
    last_tested_at: t.Nullable(
      moment(
        "When it was last tested, or when messages since then began to find its model otherwise than that test did",
      ),
    ),
    last_error: t.Nullable(
      t.String({ description: "Why its last test failed, or its model has not answered since." }),
      NONE,
    ),
    used_by_inboxes: t.Integer({ minimum: 0 }),
    created: moment("When it was made"),
    updated: moment("When it was last changed"),
  },
  {
    $id: "Connection",
    description:
      "A model, a tool server or another service. Its credential and headers are never shown again.",
  },
);

export const ToolProgramShape = t.Object(
  {
    name: t.String({ description: "As the operator calls it.", examples: ["files"] }),
    base_url: t.String({
      description: "The `base_url` of a connection of kind `mcp` to it.",
      examples: ["stdio:files"],
    }),
  },
  { $id: "ToolProgram", description: "A tool server (MCP) that is a program of this server's machine." },
);

export const ConnectionTestShape = t.Object(
  {
    ok: t.Boolean(),
    kind,
    status: words("ok", "error", "needs_auth"),
    latency_ms: t.Integer({ minimum: 0, examples: [312] }),
    checked_at: moment("When it was tested"),
    detail: t.String({ description: "The verdict in words.", examples: ["24 models visible"] }),
    models: t.Array(t.String(), {
      description: "At most 200 of the models that the credential may use.",
      maxItems: 200,
      examples: [["gpt-5.4-mini"]],
    }),
    account: t.Nullable(t.String({ description: "Whose credential it is, such as octocat." }), NONE),
    server_info: t.Nullable(
      t.Object({ name: t.String(), version: t.String() }, { description: "What an MCP server says it is." }),
      NONE,
    ),
    tools: t.Array(t.String(), { description: "The tools of an MCP server.", maxItems: 200, examples: [[]] }),
    error: t.Nullable(
      t.Object({
        code: words(...PING_CODES),
        message: t.String({ description: "Names the cause and the mend." }),
        http_status: t.Nullable(t.Integer({ description: "What the provider answered, if it did." })),
      }),
      NONE,
    ),
    suggested_base_url: t.Optional(
      t.String({
        description: "Where its interface was found, if not at the base URL of the connection.",
        examples: ["https://models.example.com/v1"],
      }),
    ),
  },
  { $id: "ConnectionTest", description: "What a token-free ping of the provider found out." },
);
