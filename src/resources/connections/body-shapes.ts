import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { budgetBody } from "../billing/budget-shapes.ts";
import { kind } from "./shapes.ts";

const secret = (description: string) => t.Optional(t.String({ minLength: 1, maxLength: 4_000, description }));
const label = (description: string) =>
  t.Optional(t.String({ maxLength: 100, description, examples: ["Work"] }));
const url = (description: string) =>
  t.Optional(
    t.Nullable(t.String({ maxLength: 2_048, description, examples: ["https://api.openai.com/v1"] })),
  );

const members = {
  label: label("What you call it; else the name of its kind."),
  name: label("Another word for `label`."),
  credential: secret("Its API key or token: kept encrypted, and never shown again."),
  api_key: secret("Another word for `credential`."),
  token: secret("Another word for `credential`."),
  model: t.Optional(t.Nullable(t.String({ maxLength: 200, examples: ["gpt-5.4-mini"] }))),
  base_url: url(
    "Where it is; else the provider's own address. https, but for hosts that the operator allows.",
  ),
  url: url("Another word for `base_url`."),
  headers: t.Optional(
    t.Record(t.String(), t.String({ maxLength: 4_000 }), {
      description: "Sent along with every request; kept encrypted, replaced as a whole, never shown again.",
      examples: [{}],
    }),
  ),
  fallback_connection_id: t.Optional(
    t.Nullable(
      t.String({
        format: "uuid",
        description: "Another model connection of yours: the only one in `fallback_connection_ids`.",
      }),
    ),
  ),
  fallback_connection_ids: t.Optional(
    t.Array(t.String({ format: "uuid" }), {
      maxItems: 3,
      description:
        "Other model connections of yours, asked one after the other when this one does not answer. None is asked once a tool may have changed something: the message is then tried again with this one, or fails.",
      examples: [[]],
    }),
  ),
  monthly_budget: t.Optional(budgetBody),
  ask_tools: t.Optional(
    t.Array(t.String({ minLength: 1, maxLength: 200 }), {
      maxItems: 200,
      description:
        "Tools of it that are called only once you have consented, by name; `*` is each that may change something. It counts for all your connections to that server, and for those that an API key has made until you have saved them. An API key can add some, and take none away.",
      examples: [["*"]],
    }),
  ),
  config: t.Optional(
    t.Nullable(
      t.Record(t.String(), t.Unknown(), {
        description:
          "Settings of this kind alone, at most 8 KB, replaced as a whole. They are shown, so put no secret there; only `client_secret`, of an OAuth client that you registered by hand for an MCP server (with `client_id` and `issuer`), is kept encrypted and never shown again.",
        examples: [{}],
      }),
    ),
  ),
};
/** An example without the aliases. */
const EXAMPLE = { label: "Work", credential: "sk-your-key", model: "gpt-5.4-mini" };
export const newConnectionBody = t.Object(
  { kind, ...members },
  { examples: [{ kind: "openai", ...EXAMPLE }] },
);
export const connectionBody = t.Object({ kind: t.Optional(kind), ...members }, { examples: [EXAMPLE] });

export type ConnectionBody = Static<typeof connectionBody>;
/** The body with its aliases taken in: each member has one name. */
export type ConnectionInput = Omit<ConnectionBody, "name" | "api_key" | "token" | "url">;
export type NewConnection = ConnectionInput & Pick<Static<typeof newConnectionBody>, "kind">;
