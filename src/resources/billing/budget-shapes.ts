import { Type } from "@sinclair/typebox";
import { t } from "elysia";

const MAX_BUDGET = 1_000_000_000;

const WHAT =
  "What models may cost in a calendar month (UTC), in the currency of the server; null: without a limit. What would go beyond it ends as `limited`.";

/** A budget as it is set. Elysia's own number would take "30" for one. */
export const budgetBody = t.Nullable(
  Type.Number({
    minimum: 0,
    maximum: MAX_BUDGET,
    description: `${WHAT} 0 leaves those that cost nothing. An API key can lower it, and neither raise it nor take it away.`,
    examples: [20],
  }),
);

export const budget = t.Nullable(t.Number({ minimum: 0, description: WHAT, examples: [20] }));

export const cost = t.Nullable(
  t.Number({
    minimum: 0,
    description: "What they have cost, in the currency of the server; null where nobody knows.",
    examples: [0.00104],
  }),
);
