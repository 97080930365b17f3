import type { ExpressionBuilder } from "kysely";
import { jsonMember } from "../../db/json.ts";
import type { MessageRow, Schema } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { switchOf } from "../../lib/switch-of.ts";
import { hasAuthority } from "./authority.ts";

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
  return state === "done" && asksForPrivacy({ command });
}

/** Whether the words of a message are never looked up: it has given them up, or will once it is done. */
export function isPrivate(message: Pick<MessageRow, "state" | "reason" | "command">): boolean {
  return isForgotten(message) || asksForPrivacy(message);
}

/** Whether its author wanted nothing of it kept, as far as its flags were read. */
function asksForPrivacy({ command }: Pick<MessageRow, "command">): boolean {
  const { options } = storedJson<{ options?: { private?: unknown } }>(command ?? "{}", {});
  return switchOf(options?.private) === true;
}

/**
 * Whether the author of a message that ended before its flags were read may have wanted nothing of it kept. `words` are those that it
 * came with; undefined where nobody can look at them any more.
 */
export function mayAskForPrivacy(
  { subject, instruction, ...message }: Pick<MessageRow, "command" | "authority" | "subject" | "instruction">,
  words: string | undefined,
): boolean {
  if (message.command !== null || !hasAuthority(message)) return false;
  if (words === undefined && instruction === null) return true;
  return [subject, instruction, words].some((text) => PRIVATE_FLAG.test(text ?? ""));
}

/** A flag that asks for privacy, however a mail program has changed its hyphens. */
const PRIVATE_FLAG = /(?:--|[\u2012-\u2015\u2212])private\b/i;

/** As `isForgotten`, as a condition of a query. */
export function areForgotten(eb: ExpressionBuilder<Schema, "messages">) {
  const is_private = jsonMember("messages.command", "options.private").$castTo<number>();
  return eb.or([
    eb.and([eb("messages.state", "=", "done"), eb(eb.fn.coalesce(is_private, eb.lit(0)), "=", 1)]),
    eb(eb.fn.coalesce("messages.reason", eb.val("")), "=", LEFT_OUT_BY_RULE),
  ]);
}
