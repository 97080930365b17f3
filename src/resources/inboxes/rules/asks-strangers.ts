import type { Actions, Condition, Rule } from "./rules.ts";

/** What a rule hands out: the answer to a question about a stranger's words may not decide on it. */
const GIFTS = ["context_ids", "connection_id", "model"] as const satisfies (keyof Actions)[];

/**
 * Whether strangers may decide by their own words, which a model has read, whether a rule is for them: it has a question, and no
 * condition that only people whom its owner has named can meet.
 */
export function asksStrangers({ question, match, when }: Pick<Rule, "question" | "match" | "when">): boolean {
  if (question === null) return false;
  return match === "all" ? !when.some(namesPeople) : when.length === 0 || !when.every(namesPeople);
}

function namesPeople({ field, is, not }: Pick<Condition, "field" | "is" | "not">): boolean {
  if (not) return false;
  return (
    field === "sender" ||
    (field === "authority" && is.every((authority) => authority === "owner" || authority === "listed"))
  );
}

/** The first thing that a rule hands out; undefined where it only takes away, or says what is to be done. */
export function giftOf(acts: Actions): (typeof GIFTS)[number] | undefined {
  return GIFTS.find((name) => acts[name] !== undefined);
}

export function withoutGifts(acts: Actions): Actions {
  const { context_ids: _contexts, connection_id: _connection, model: _model, ...rest } = acts;
  return rest;
}
