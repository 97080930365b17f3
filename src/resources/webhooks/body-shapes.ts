import type { Static } from "@sinclair/typebox";
import { t } from "elysia";
import { EVENT_TYPES } from "./events.ts";

const MAX_URL_CHARS = 2_048;
const MAX_DESCRIPTION_CHARS = 500;
/** More than there are types: one that is named twice counts once. */
const MAX_EVENT_TYPES = 100;

const url = t.String({
  maxLength: MAX_URL_CHARS,
  description: "https on a public host.",
  examples: ["https://hooks.example.com/mailwright"],
});
const event_types = t.Array(t.Union([...EVENT_TYPES, "*" as const].map((name) => t.Literal(name))), {
  minItems: 1,
  maxItems: MAX_EVENT_TYPES,
  description: "What it is told of; `*` is everything.",
  examples: [["message.completed", "message.failed"]],
});
const more = {
  enabled: t.Optional(t.Boolean()),
  description: t.Optional(t.Nullable(t.String({ maxLength: MAX_DESCRIPTION_CHARS }))),
};
export const newEndpointBody = t.Object({ url, event_types, ...more });
export const endpointBody = t.Object(
  { url: t.Optional(url), event_types: t.Optional(event_types), ...more },
  { examples: [{ enabled: true }] },
);

export type EndpointSettings = Static<typeof endpointBody>;
export type NewEndpoint = Static<typeof newEndpointBody>;
