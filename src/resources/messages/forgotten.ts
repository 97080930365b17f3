import type { ExpressionBuilder } from "kysely";
import { jsonMember } from "../../db/json.ts";
import type { MessageRow, Schema } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** The reason of a message that a rule of its inbox has left out, and of which nothing is kept. */
export const LEFT_OUT_BY_RULE = "rule";

/**
 * Whether a message has given up what it was about, as `--private` has it do once it is done, and a rule that leaves it out.
 */
export function isForgotten({
  state,
  reason,
  command,
}: Pick<MessageRow, "state" | "reason" | "command">): boolean {
  if (reason === LEFT_OUT_BY_RULE) return true;
  return state === "done" && isMeantPrivate({ command });
}

/** Whether the words of a message are never looked up: it has given them up, or will once it is done. */
export function isPrivate(message: Pick<MessageRow, "state" | "reason" | "command">): boolean {
  return isForgotten(message) || isMeantPrivate(message);
}

function isMeantPrivate({ command }: Pick<MessageRow, "command">): boolean {
  const { options } = storedJson<{ options?: { private?: unknown } }>(command ?? "{}", {});
  return options?.private === true;
}

/** As `isForgotten`, as a condition of a query. */
export function areForgotten(eb: ExpressionBuilder<Schema, "messages">) {
  const is_private = jsonMember("messages.command", "options.private").$castTo<number>();
  return eb.or([
    eb.and([eb("messages.state", "=", "done"), eb(eb.fn.coalesce(is_private, eb.lit(0)), "=", 1)]),
    eb(eb.fn.coalesce("messages.reason", eb.val("")), "=", LEFT_OUT_BY_RULE),
  ]);
}
