import { t } from "elysia";
import { moment } from "../../http/shapes.ts";
import { budget } from "./budget-shapes.ts";

const count = (what: string) => t.Integer({ minimum: 0, description: what });

export const HostedPageShape = t.Object(
  {
    url: t.String({
      format: "uri",
      description: "Open it in a browser.",
      examples: ["https://checkout.stripe.com/c/pay/cs_live_a1b2c3"],
    }),
  },
  { $id: "HostedPage", description: "A page of the payment provider." },
);

export const EventTakenShape = t.Object({ received: t.Literal(true) }, { $id: "EventTaken" });

const sums = {
  runs: count("Runs that ended as `done`."),
  credits: count("Credits that they cost."),
  input_tokens: count("Tokens that models read, as far as their providers say."),
  output_tokens: count("Tokens that models wrote, as far as their providers say."),
};

const costs = {
  cost: t.Number({ minimum: 0, description: "In that currency.", examples: [3.2] }),
  monthly_budget: budget,
};

export const UsageShape = t.Object(
  {
    since: moment("The first second that counts"),
    until: moment("The last second that counts"),
    storage: t.Object(
      {
        bytes: count("Stored now."),
        limit_bytes: t.Nullable(
          t.Integer({
            minimum: 0,
            description: "What the plan stores at most; null: no limit.",
            examples: [104_857_600_000],
          }),
        ),
      },
      {
        description:
          "Mails as they came in and were sent, files, what calls brought along, the words of messages, and contexts. Over the limit calls get 507 `storage_full`, and mail is put off.",
      },
    ),
    costs: t.Object(
      {
        month: t.String({ description: "In UTC.", examples: ["2026-01"] }),
        currency: t.String({ examples: ["USD"] }),
        ...costs,
        inboxes: t.Array(
          t.Object({
            inbox_id: t.Nullable(
              t.String({ format: "uuid", description: "Null: of inboxes that were deleted since." }),
            ),
            label: t.Nullable(t.String({ examples: ["Reports"] })),
            ...costs,
          }),
        ),
        connections: t.Array(
          t.Object({
            connection_id: t.Nullable(
              t.String({
                format: "uuid",
                description: "Null: of the server's own, and of connections that were deleted since.",
              }),
            ),
            label: t.Nullable(t.String({ examples: ["OpenAI"] })),
            ...costs,
          }),
        ),
      },
      {
        description:
          "What models have cost in the present month, whatever `since` and `until` are, as far as there is a price: each request that was answered, the dearest first.",
      },
    ),
    totals: t.Object(sums),
    days: t.Array(
      t.Object({ day: t.String({ description: "In UTC.", examples: ["2026-01-15"] }), ...sums }),
      { description: "Every day from the first to the last, also those on which nothing ran." },
    ),
    sources: t.Array(
      t.Object({
        source: t.Union([t.Literal("email"), t.Literal("api"), t.Literal("test"), t.Literal("replay")]),
        ...sums,
      }),
      { description: "The busiest first." },
    ),
    inboxes: t.Array(
      t.Object({
        inbox_id: t.Nullable(
          t.String({ format: "uuid", description: "Null: of inboxes that were deleted since." }),
        ),
        label: t.Nullable(t.String({ examples: ["Reports"] })),
        ...sums,
      }),
      { description: "The busiest first." },
    ),
  },
  { $id: "UsageReport", description: "What the runs of a time came to." },
);
