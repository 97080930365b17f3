import { useMe } from "../../api/session.ts";
import type { Usage } from "../../api/shapes.ts";

export type Sums = Usage["totals"];

function tokensOf({ input_tokens, output_tokens }: Sums): number {
  return input_tokens + output_tokens;
}

export interface Measure {
  name: string;
  of: (sums: Sums) => number;
}

const COUNTED: Measure[] = [
  { name: "Answered", of: ({ runs }) => runs },
  { name: "Tokens", of: tokensOf },
];
const WITH_CREDITS: Measure[] = [...COUNTED, { name: "Credits", of: ({ credits }) => credits }];

/** The measures in the order in which people ask for them; credits only where they are bounded. */
export function useMeasures(): Measure[] {
  return useMe().credits.unlimited ? COUNTED : WITH_CREDITS;
}
