import { LIST_FIELDS } from "../../../mail/reading/machine-mail.ts";
import type { Actions, Rule } from "./rules.ts";

/** What nobody would have done with a mail that is left out in any case; the rest only takes something away. */
const WANTS: (keyof Actions)[] = [
  "keep",
  "instruction",
  "tags",
  "forward_to",
  "wait",
  "context_ids",
  "connection_id",
  "model",
];

/** Returns the first rule that wants mail of lists for something, as an inbox that leaves such mail out never asks it. */
export function ruleForLists(rules: Rule[]): Rule | undefined {
  return rules.find(
    ({ enabled, when, do: acts }) =>
      enabled &&
      WANTS.some((name) => acts[name] !== undefined) &&
      when.some(({ field, name, not }) => field === "header" && !not && LIST_FIELDS.includes(name)),
  );
}
