import type { ExpressionBuilder } from "kysely";
import { jsonMember } from "../../db/json.ts";
import type { MessageRow, Schema } from "../../db/schema.ts";
import { storedJson } from "../../lib/stored-json.ts";

/** Whether the words and the material of a message are deleted, as `--private` asks for once it is done. */
export function isForgotten({ state, command }: Pick<MessageRow, "state" | "command">): boolean {
  const { options } = storedJson<{ options?: { private?: unknown } }>(command ?? "{}", {});
  return state === "done" && options?.private === true;
}

/** As `isForgotten`, as a condition of a query. */
export function areForgotten(eb: ExpressionBuilder<Schema, "messages">) {
  const is_private = jsonMember("messages.command", "options.private").$castTo<number>();
  return eb.and([eb("messages.state", "=", "done"), eb(eb.fn.coalesce(is_private, eb.lit(0)), "=", 1)]);
}
