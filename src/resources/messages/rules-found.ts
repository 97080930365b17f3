import type { MessageRow } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  /** In millionths of the currency; absent where nobody knows. */
  cost?: number;
}

/** What two questions to a model came to; of one of which nothing is known, what the other did. */
export function sumOfUsage(one: Usage | null, other: Usage | null): Usage | null {
  if (one === null || other === null) return one ?? other;
  const known = [one.cost, other.cost].filter((cost) => cost !== undefined);
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    ...(known.length === 0 ? {} : { cost: known.reduce((sum, cost) => sum + cost, 0) }),
  };
}

/** What a message keeps of the rules of its inbox: the model is asked a question once, however often a run begins anew. */
export interface RulesFound {
  /** The names of the rules that were for it, in their order. */
  matched?: string[];
  /** Whether one of them has had the words of its author read as material: no later turn is reminded of them as an order. */
  as_material?: true;
  /** By the hash of a question, whether the answer was yes. */
  answers?: Record<string, boolean>;
  /** What the model has read and written for these answers. */
  usage?: Usage;
  /** Whether it was put back once, because a model did not answer a question for the moment. */
  asked_again?: true;
  /** Until when it waits, in unix seconds; while it does. */
  until?: number;
  /** Whether it has waited, and is not to wait again. */
  waited?: true;
  /** From its arrival to the end of that wait. */
  waited_ms?: number;
  /** The rule that leaves it out, and has it forwarded before: until that is done, its content is kept. */
  left_out_once_forwarded?: string;
}

/** Until when a message waits that is still to be worked on, in unix seconds; null where it does not. */
export function waitsUntil(message: Pick<MessageRow, "state" | "rules">): number | null {
  return message.state === "received" ? (rulesFound(message).until ?? null) : null;
}

/** What is kept of a message whose wait is over. */
export function withoutWait(message: Pick<MessageRow, "rules" | "accepted_ms">, now_ms: number): RulesFound {
  const { until: _, ...found } = rulesFound(message);
  return { ...found, waited: true, waited_ms: Math.max(0, now_ms - message.accepted_ms) };
}

/** Returns what is stored; nothing where it is damaged. */
export function rulesFound({ rules }: Pick<MessageRow, "rules">): RulesFound {
  return rules === "{}" ? {} : storedJson<RulesFound>(rules, {});
}
