import type { Usage } from "../../api/shapes.ts";

export type Sums = Usage["totals"];

function tokensOf({ input_tokens, output_tokens }: Sums): number {
  return input_tokens + output_tokens;
}

/** What is counted, in the order in which people ask for it. */
export const MEASURES: { name: string; of: (sums: Sums) => number }[] = [
  { name: "Answered", of: ({ runs }) => runs },
  { name: "Tokens", of: tokensOf },
  { name: "Credits", of: ({ credits }) => credits },
];
