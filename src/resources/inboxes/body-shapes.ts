import { INTEGRATION_KINDS } from "../../config/integrations.ts";
import { type Static, Type } from "@sinclair/typebox";
import { t } from "elysia";
import { budgetBody } from "../billing/budget-shapes.ts";
import { rulesBody } from "./rules/rule-shapes.ts";

const MAX_PREFIX_CHARS = 100;
const MAX_RETENTION_DAYS = 3_650;
/** The longest list in a body, which is more than any plan allows: the plan's own cap answers with its numbers. */
const MAX_LIST = 1_000;

const settings = {
  // Its length is checked in `settings.ts`: a schema would count halves of an emoji.
  label: t.Optional(t.Nullable(t.String({ description: "At most 100 characters." }))),
  default_connection_id: t.Optional(t.Nullable(t.String({ format: "uuid" }))),
  mcp_connection_ids: t.Optional(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: MAX_LIST,
      description: "Connections of the kind mcp: the tool servers it may use.",
    }),
  ),
  context_ids: t.Optional(
    t.Nullable(
      t.Array(t.String({ format: "uuid" }), {
        maxItems: MAX_LIST,
        description:
          "The contexts that it has, and no others. Null: those for every inbox, and those that name this one.",
      }),
    ),
  ),
  reply_enabled: t.Optional(t.Boolean()),
  allowlist_senders: t.Optional(t.Array(t.String({ maxLength: 254 }), { maxItems: MAX_LIST })),
  scope: t.Optional(
    t.Nullable(
      t.Object({
        targets: t.Nullable(
          t.Array(t.String({ maxLength: 200 }), {
            maxItems: 100,
            description: `All that it may use: ${INTEGRATION_KINDS.join(", ")}, memory (earlier messages), or mcp: and the name of a tool server, such as mcp:calendar. Empty: no tools. Null: everything, as with a \`scope\` of null.`,
          }),
        ),
        autonomous: t.Optional(
          t.Array(t.String({ maxLength: 200 }), {
            maxItems: 100,
            description:
              "Those of them whose tools may change something without being named by the instruction.",
          }),
        ),
      }),
    ),
  ),
  inbound_policy: t.Optional(
    t.Object({
      reply_to_unauthenticated: t.Optional(t.Boolean()),
      process_bulk: t.Optional(t.Boolean()),
      process_unauthenticated: t.Optional(t.Boolean()),
    }),
  ),
  paused: t.Optional(
    t.Nullable(
      t.Union([t.Literal("keep"), t.Literal("refuse")], {
        description: "Whether new mail waits here or at its sender; null has the inbox go on.",
      }),
    ),
  ),
  // Its length is checked in `settings.ts`, as that of the label.
  default_instruction: t.Optional(t.Nullable(t.String({ description: "At most 10,000 characters." }))),
  rules: t.Optional(rulesBody),
  // Elysia's own integer would take "30" for one.
  retention_days: t.Optional(t.Nullable(Type.Integer({ minimum: 1, maximum: MAX_RETENTION_DAYS }))),
  monthly_budget: t.Optional(budgetBody),
  is_default: t.Optional(
    t.Boolean({
      description: "True: calls that name no inbox go to it from now on. One inbox is always the default.",
    }),
  ),
};
const EXAMPLE = { examples: [{ label: "Reports", allowlist_senders: ["bob@example.com"] }] };
export const newInboxBody = t.Object(
  {
    ...settings,
    prefix: t.Optional(t.String({ maxLength: MAX_PREFIX_CHARS })),
    domain_id: t.Optional(t.Nullable(t.String({ format: "uuid" }))),
    local_part: t.Optional(
      t.String({
        maxLength: MAX_PREFIX_CHARS,
        description:
          "What stands before the @, such as `billing`, in place of the prefix and a random part: at a domain of your own, and at the service's only if its operator allows that. Anybody can guess such an address.",
      }),
    ),
  },
  EXAMPLE,
);
export const inboxBody = t.Object(
  {
    ...settings,
    rules_version: t.Optional(
      t.String({
        maxLength: 64,
        description:
          "As you have read it: if the rules have changed since, the change is refused (409) before anything is replaced.",
      }),
    ),
  },
  EXAMPLE,
);

export type InboxPatch = Static<typeof inboxBody>;
/** What both a new inbox and a patch may set. */
export type InboxSettings = Omit<InboxPatch, "rules_version">;
export type NewInbox = Static<typeof newInboxBody>;
